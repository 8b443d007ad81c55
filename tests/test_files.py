"""Files are whole or not there: after errors, on a full disk, and while others read."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from patience import PATIENCE

import graftmt
from graftmt import files
from graftmt.errors import GraftError
from graftmt.files import atomic_file, atomic_folder, remove_left, sweep, write_text
from graftmt.folders import claimed, exclusive


def content(folder: Path) -> dict[str, str]:
    """Everything under a folder, hidden and temporary files included."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in files}


def test_a_write_makes_the_folders_it_needs(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "file.txt", "héllo\n")
    assert content(tmp_path) == {"a/b/file.txt": "héllo\n"}


@pytest.mark.parametrize("inside", ["", "deep/in"])
def test_a_file_where_a_folder_is_needed_is_named(tmp_path: Path, inside: str) -> None:
    file = tmp_path / "clean.el"
    file.write_text("text\n", encoding="utf-8")
    folder = file / inside
    message = rf"clean\.el is a file; a folder is needed{' for .*deep/in' * bool(inside)}, choose another name"
    with pytest.raises(GraftError, match=message), exclusive(folder, "the run"):
        pass
    with pytest.raises(GraftError, match=message), claimed(folder / "job.lock"):
        pass
    with pytest.raises(GraftError, match=message):
        write_text(folder / "file.txt", "new")
    with pytest.raises(GraftError, match=message), atomic_folder(folder / "folder"):
        pass
    assert content(tmp_path) == {"clean.el": "text\n"}


def test_a_write_replaces_what_was_there(tmp_path: Path) -> None:
    for text in ("old", "new"):
        write_text(tmp_path / "file.txt", text)
    assert content(tmp_path) == {"file.txt": "new"}


@pytest.mark.parametrize("problem", [ValueError, KeyboardInterrupt, GraftError])
def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path: Path, problem: type[BaseException]) -> None:
    write_text(tmp_path / "file.txt", "old")
    with pytest.raises(problem), atomic_file(tmp_path / "file.txt") as temporary:
        temporary.write_text("half of the n", encoding="utf-8")
        raise problem("in the middle")
    assert content(tmp_path) == {"file.txt": "old"}


@pytest.mark.parametrize("problem", [ValueError, KeyboardInterrupt, GraftError])
def test_an_exception_leaves_the_old_folder_and_nothing_else(tmp_path: Path, problem: type[BaseException]) -> None:
    write_folder(tmp_path / "folder", "old", "a", "b")
    before = content(tmp_path)
    with pytest.raises(problem), atomic_folder(tmp_path / "folder") as temporary:
        (temporary / "a").write_text("new", encoding="utf-8")
        raise problem("in the middle")
    assert content(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def write_folder(folder: Path, text: str, *names: str) -> None:
    with atomic_folder(folder) as temporary:
        for name in names:
            (temporary / name).write_text(text, encoding="utf-8")


def test_a_new_folder_replaces_the_old_one_whole(tmp_path: Path) -> None:
    write_folder(tmp_path / "folder", "old", "a", "b")
    write_folder(tmp_path / "folder", "new", "b", "c")
    assert content(tmp_path) == {"folder/b": "new", "folder/c": "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_folder_is_readable_as_any_other(tmp_path: Path) -> None:
    write_folder(tmp_path / "folder", "text", "a")
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o755


def test_a_reader_sees_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    texts = ["a" * 200_000, "b" * 300_000]
    write_text(path, texts[0])
    finished = threading.Event()

    def write_often() -> None:
        for number in range(60):
            write_text(path, texts[number % 2])
        finished.set()

    writer = threading.Thread(target=write_often)
    writer.start()
    while not finished.is_set():
        assert path.read_text(encoding="utf-8") in texts
    writer.join()


@pytest.mark.parametrize("step", ["os.fsync", "os.replace"])
def test_a_failing_step_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    write_text(tmp_path / "file.txt", "old")
    write_folder(tmp_path / "folder", "old", "a")
    before = content(tmp_path)

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(step, fail)
    with pytest.raises(GraftError, match=r"could not write .*file\.txt: Input/output error\b"):
        write_text(tmp_path / "file.txt", "new")
    with pytest.raises(GraftError, match=r"could not write .*folder: Input/output error"):
        write_folder(tmp_path / "folder", "new", "a")
    assert content(tmp_path) == before


def test_the_old_folder_comes_back_when_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "folder", "old", "a")
    before, replace = content(tmp_path), os.replace

    def fail_to_move_in(source: Path, target: Path) -> None:
        if source.name == "new" and not target.exists():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail_to_move_in)
    with pytest.raises(GraftError, match="Input/output error"):
        write_folder(tmp_path / "folder", "new", "a")
    assert content(tmp_path) == before


def test_a_folder_that_another_process_has_just_made_is_replaced(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "folder") as temporary:
        (temporary / "a").write_text("mine", encoding="utf-8")
        write_folder(tmp_path / "folder", "theirs", "a")
    assert content(tmp_path) == {"folder/a": "mine"}


def test_a_folder_in_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file.txt" / "inside").mkdir(parents=True)
    with pytest.raises(GraftError, match=r"could not write .*file\.txt"):
        write_text(tmp_path / "file.txt", "text")
    with pytest.raises(GraftError, match=r"could not write .*inside"):
        write_text(tmp_path / "file.txt" / "inside", "text")
    (tmp_path / "plain").write_text("text", encoding="utf-8")
    with pytest.raises(GraftError, match="plain is a file; a folder"):
        write_text(tmp_path / "plain" / "inside" / "file.txt", "text")
    with pytest.raises(GraftError, match="could not write"):
        write_folder(tmp_path / "plain", "text", "a")
    assert content(tmp_path) == {"plain": "text"}


FULL_DISK = """
import pathlib, sys
from graftmt.errors import GraftError
from graftmt.files import atomic_folder, write_text

folder = pathlib.Path(sys.argv[1])
write_text(folder / "file.txt", "old")
with atomic_folder(folder / "folder") as temporary:
    (temporary / "a").write_text("old")
{restrict}
try:
    write_text(folder / "file.txt", "x" * 1_000_000)
except GraftError as error:
    print(error)
try:
    with atomic_folder(folder / "folder") as temporary:
        (temporary / "a").write_text("x" * 1_000_000)
except GraftError as error:
    print(error)
for path in sorted(folder.rglob("*")):
    if path.is_file():
        print(path.relative_to(folder), path.read_text())
    elif path.name != "folder":
        print("left over:", path)
"""


def run_on_full_disk(folder: Path, restrict: str = "", *, within: tuple[str, ...] = ()) -> list[str]:
    """The lines that the program above prints in a process of its own."""
    package = Path(graftmt.__file__).parents[1]
    command = [*within, sys.executable, "-c", FULL_DISK.format(restrict=restrict), str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(package)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_full_disk_loses_nothing_and_says_so(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare, to mount a disk that no other process sees")
    # A disk of 64 kB, in a mount namespace that ends with the process.
    within = (
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        f'mount -t tmpfs -o size=64k none {tmp_path} && exec "$@"',
        "-",
    )
    if subprocess.run([*within, "true"], capture_output=True).returncode:
        pytest.skip("may not mount a small disk here")
    first, second, *files = run_on_full_disk(tmp_path, within=within)
    assert "file.txt: No space left on device. Nothing that was there before has changed; free some space" in first
    assert "folder: No space left on device. Nothing that was there before has changed" in second
    assert files == ["file.txt old", "folder/a old"]


def test_a_limit_on_the_size_of_files_loses_nothing_and_says_so(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    restrict = "\n".join(
        [
            "import resource, signal",
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)",
            "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))",
        ]
    )
    first, second, *files = run_on_full_disk(tmp_path, restrict)
    assert "file.txt: File too large. Nothing that was there before has changed" in first
    assert "folder: File too large. Nothing that was there before has changed" in second
    assert files == ["file.txt old", "folder/a old"]


# What a kill leaves

KILLED = """
import os, pathlib, signal, sys, threading
from graftmt.files import atomic_file, atomic_folder
from graftmt.folders import claimed, exclusive

path, kind = pathlib.Path(sys.argv[1]), sys.argv[2]
write = atomic_folder if kind == "folder" else atomic_file
with write(path) as temporary:
    (temporary / "a" if kind == "folder" else temporary).write_text("half")
    print("writing", flush=True)
    threading.Event().wait()
"""


@contextmanager
def writing_elsewhere(path: Path, kind: str) -> Iterator[subprocess.Popen[str]]:
    """Another process, in the middle of writing `path`; killed when the block ends."""
    environment = {**os.environ, "PYTHONPATH": str(Path(graftmt.__file__).parents[1])}
    command = [sys.executable, "-c", KILLED, str(path), kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        try:
            yield process
        finally:
            process.kill()


def write_either(path: Path, kind: str, text: str) -> None:
    write_folder(path, text, "a") if kind == "folder" else write_text(path, text)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_kill_left_is_removed_by_the_next_to_write_the_same(tmp_path: Path, kind: str) -> None:
    with writing_elsewhere(tmp_path / "corpus", kind):
        pass
    assert len(list(tmp_path.iterdir())) == 1
    write_either(tmp_path / "other", kind, "other")  # of another name: not its business
    assert len(list(tmp_path.iterdir())) == 2
    write_either(tmp_path / "corpus", kind, "new")
    assert {path.name for path in tmp_path.iterdir()} == {"corpus", "other"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_another_process_is_writing_stays(tmp_path: Path, kind: str) -> None:
    with writing_elsewhere(tmp_path / "corpus", kind):
        half = [path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes() == b"half"]
        write_either(tmp_path / "corpus", kind, "new")
        remove_left(tmp_path / "corpus")
        assert [path.read_text(encoding="utf-8") for path in half] == ["half"]
    write_either(tmp_path / "corpus", kind, "newer")
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_where_there_are_no_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with writing_elsewhere(tmp_path / "corpus", kind):
        pass
    left = content(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", unsupported)
        write_either(tmp_path / "corpus", kind, "new")
        assert content(tmp_path).items() >= left.items()
        with (atomic_folder if kind == "folder" else atomic_file)(tmp_path / "corpus") as temporary:
            file = temporary / "a" if kind == "folder" else temporary
            file.write_text("newer", encoding="utf-8")
            remove_left(tmp_path / "corpus")
            assert file.read_text(encoding="utf-8") == "newer"


def test_a_folder_written_without_locks_is_not_removed_by_one_who_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with atomic_folder(tmp_path / "corpus") as temporary:
        (temporary / "a").write_text("mine", encoding="utf-8")
        monkeypatch.undo()
        remove_left(tmp_path / "corpus")
    assert content(tmp_path) == {"corpus/a": "mine"}


@pytest.mark.parametrize(
    "name", [".aug.v2.k3jd8_xa.tmp", ".aug.k3jd.tmp", ".aug.k3jd8_xa.tmp", ".aug.4711.tmp", ".aug.work.tmp", "aug.k3jd8_xa.tmp"]
)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_names_that_others_gave_are_left_alone(tmp_path: Path, name: str, kind: str) -> None:
    if kind == "folder":
        (tmp_path / name).mkdir()
    (tmp_path / name / "theirs" if kind == "folder" else tmp_path / name).write_text("theirs", encoding="utf-8")
    write_folder(tmp_path / "aug", "new", "a")
    assert {path.name for path in tmp_path.iterdir()} == {"aug", name}


@pytest.mark.slow
def test_a_folder_of_a_longer_name_stays_though_its_writer_is_dead(tmp_path: Path) -> None:
    with writing_elsewhere(tmp_path / "aug.v2", "folder"):
        pass
    left = content(tmp_path)
    write_folder(tmp_path / "aug", "new", "a")
    assert content(tmp_path) == {**left, "aug/a": "new"}


def test_a_kill_between_two_folders_brings_the_old_one_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old one has stepped aside, the new one has not taken its place, and the process is no more."""
    write_folder(tmp_path / "folder", "old", "a")
    replace = os.replace

    class Killed(BaseException):
        pass

    def die_before_moving_in(source: Path, target: Path) -> None:
        if source.name == "new" and not target.exists():
            raise Killed
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", die_before_moving_in)
        patch.setattr(files, "_clear", lambda place, path: None)
        with pytest.raises(Killed):
            write_folder(tmp_path / "folder", "new", "a")
    assert not (tmp_path / "folder").exists()
    remove_left(tmp_path / "folder")
    assert content(tmp_path) == {"folder/a": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("can_come_back", [True, False])
def test_an_interruption_between_two_folders_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_come_back: bool
) -> None:
    write_folder(tmp_path / "folder", "old", "a")
    replace = os.replace

    def interrupted(source: Path, target: Path) -> None:
        if source.name == "new" and not target.exists():
            raise KeyboardInterrupt
        replace(source, target)

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "folder") as temporary:
            (temporary / "a").write_text("new", encoding="utf-8")
            if not can_come_back:
                patch.setattr(Path, "rename", fail)
    assert (tmp_path / "folder").exists() == can_come_back
    remove_left(tmp_path / "folder")
    assert content(tmp_path) == {"folder/a": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_many_writers_of_one_name_take_nothing_from_each_other(tmp_path: Path) -> None:
    problems: list[BaseException] = []

    def write_often(number: int) -> None:
        try:
            for _ in range(40):
                write_text(tmp_path / "file", f"{number}")
                with atomic_folder(tmp_path / f"folder{number}") as temporary:
                    (temporary / "a").write_text("a", encoding="utf-8")
                    for other in range(4):
                        remove_left(tmp_path / f"folder{other}")
        except BaseException as problem:
            problems.append(problem)

    writers = [threading.Thread(target=write_often, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert problems == []
    assert {path.name for path in tmp_path.iterdir()} == {"file", *(f"folder{number}" for number in range(4))}


# Links and folders that are removed in mid-work


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "old").touch()
    (tmp_path / "link").symlink_to("real")
    with atomic_folder(tmp_path / "link") as folder:
        (folder / "new").touch()
    assert (tmp_path / "link").is_symlink()
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["new"]
    (tmp_path / "file").symlink_to(tmp_path / "real" / "new")
    write_text(tmp_path / "file", "through the link")
    assert (tmp_path / "file").is_symlink()
    assert (tmp_path / "real" / "new").read_text(encoding="utf-8") == "through the link"


def test_a_link_to_nothing_is_made_where_it_leads_if_that_has_a_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "later")
    with atomic_folder(tmp_path / "link") as folder:
        (folder / "new").touch()
    assert (tmp_path / "later" / "new").is_file()
    (tmp_path / "far").symlink_to(tmp_path / "unmounted" / "disk")
    with pytest.raises(GraftError, match=r"far is a link to .*no folder \S+unmounted"), atomic_folder(tmp_path / "far"):
        pass
    with pytest.raises(GraftError, match=r"far is a link to .*no folder \S+unmounted"):
        write_text(tmp_path / "far", "x")
    assert not (tmp_path / "unmounted").exists()


def test_space_is_advised_where_it_would_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, helps in ((errno.ENOSPC, True), (errno.EACCES, False), (errno.EROFS, False)):
        monkeypatch.setattr("os.fsync", lambda handle, number=number: (_ for _ in ()).throw(OSError(number, "no")))
        with pytest.raises(GraftError) as caught:
            write_text(tmp_path / "file", "x")
        assert ("free some space" in str(caught.value)) == helps


@pytest.mark.parametrize("how", ["removed", "moved", "replaced"])
def test_a_folder_that_goes_in_mid_work_is_not_made_anew(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "work"

    def go() -> None:
        shutil.move(folder, tmp_path / "aside") if how == "moved" else shutil.rmtree(folder)
        if how == "replaced":
            folder.mkdir()

    for act in (
        lambda: write_text(folder / "inner" / "file", "x"),
        lambda: atomic_folder(folder / "folder").__enter__(),
        lambda: exclusive(folder / "inner", "inner").__enter__(),
        lambda: None,  # the end of the block tells too
    ):
        with pytest.raises(GraftError, match=r"work was removed, moved or replaced"), exclusive(folder, "it", stays=True):
            write_text(folder / "first", "x")
            go()
            act()
        assert not (folder / "inner").exists()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(tmp_path / "aside", ignore_errors=True)


def test_a_folder_may_be_removed_by_whoever_holds_it(tmp_path: Path) -> None:
    with exclusive(tmp_path / "work", "it"):
        shutil.rmtree(tmp_path / "work")
    write_text(tmp_path / "work" / "file", "x")  # it is no longer watched


def test_what_a_process_left_that_was_killed_before_it_had_its_lock_or_after_goes(tmp_path: Path) -> None:
    for name, inside in (("begun", ["unlocked"]), ("empty", []), ("full", ["unlocked", "new"])):
        place = tmp_path / f".{name}.abcdefgh.tmp"
        place.mkdir()
        for file in inside:
            (place / file).touch()
    sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {".full.abcdefgh.tmp"}


@pytest.mark.parametrize("moment", ["before it is locked", "while another has the lock", "after it is locked"])
def test_a_place_that_another_process_takes_for_a_dead_ones_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Whichever of the two locks the file first, nothing is written into a place that the other removes."""
    lock, calls = files.lock, []

    def disturbed(handle: IO[Any], **options: Any) -> bool:
        calls.append(handle)
        if len(calls) > 1:
            return lock(handle, **options)
        (place,) = tmp_path.glob(".folder.*.tmp")
        if moment == "before it is locked":
            sweep(tmp_path)
        elif moment == "while another has the lock":
            with (place / "unlocked").open("r+b") as other:
                assert lock(other)
                return lock(handle, **options)  # refused
        else:
            assert lock(handle, **options)
            sweep(tmp_path)  # the lock is respected
        return lock(handle, **options)

    monkeypatch.setattr(files, "lock", disturbed)
    with atomic_folder(tmp_path / "folder") as folder:
        (folder / "new").touch()
    monkeypatch.undo()
    sweep(tmp_path)
    assert content(tmp_path).keys() == {"folder/new"}
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_place_that_another_process_removes_while_it_is_empty_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def make(**options: str) -> str:
        made.append(mkdtemp(**options))
        if len(made) == 1:
            sweep(tmp_path)
        return made[-1]

    mkdtemp = files.tempfile.mkdtemp
    monkeypatch.setattr(files.tempfile, "mkdtemp", make)
    with atomic_folder(tmp_path / "folder") as folder:
        (folder / "new").touch()
    assert len(made) == 2
    assert content(tmp_path).keys() == {"folder/new"}
