"""A folder or file in use is not shared, devices, pipes and sockets are never replaced, and named links are followed."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from graftmt.errors import GraftError
from graftmt.files import atomic_folder, write_text
from graftmt.folders import claimed, exclusive, watched
from graftmt.partial import PartialFile
from graftmt.places import BASE, check_file, check_place


def test_a_folder_in_use_is_refused_until_it_is_left(tmp_path: Path) -> None:
    with exclusive(tmp_path / "run", "the run"), pytest.raises(GraftError, match="in use by another process"):  # noqa: SIM117
        with exclusive(tmp_path / "run", "the run"):
            pass
    with exclusive(tmp_path / "run", "the run"):
        pass


def test_a_file_that_another_has_claimed_is_not_free(tmp_path: Path) -> None:
    with claimed(tmp_path / "job.lock") as first, claimed(tmp_path / "job.lock") as second:
        assert (first, second) == (True, False)
    with claimed(tmp_path / "job.lock", wait=True) as free:
        assert free


def test_without_locks_a_run_goes_on_and_work_that_is_shared_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with exclusive(tmp_path / "run", "the run"):
        write_text(tmp_path / "run" / "file.txt", "text")
    assert (tmp_path / "run" / "file.txt").read_text(encoding="utf-8") == "text"
    for wait in (False, True):
        with (
            pytest.raises(GraftError, match="has no locks, by which processes share work"),
            claimed(tmp_path / "job.lock", wait=wait),
        ):
            pass
    with PartialFile(tmp_path / "out", {}).begin() as position:
        assert not position.finished


def device(path: Path) -> None:
    """One of our own, never the machine's: what is tested here is that it would be replaced."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except OSError:
        pytest.skip("no rights to make a device")


def folder(path: Path) -> None:
    with atomic_folder(path):
        pass


def partial(path: Path) -> None:
    with PartialFile(path, {}).begin(fresh=True):
        pass


WRITERS: list[Callable[[Path], None]] = [
    lambda path: write_text(path, "text"),
    folder,
    partial,
    check_file,
    lambda path: check_place(path, BASE),
]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("make", [device, os.mkfifo])
@pytest.mark.parametrize("linked", [False, True])
def test_what_is_no_file_stays(
    tmp_path: Path, write: Callable[[Path], None], make: Callable[[Path], None], linked: bool
) -> None:
    special, named = tmp_path / "special", tmp_path / ("link" if linked else "special")
    make(special)
    if linked:
        named.symlink_to(special)
    kind = stat.S_IFMT(special.lstat().st_mode)
    with pytest.raises(GraftError, match="special"):
        write(named)
    assert stat.S_IFMT(special.lstat().st_mode) == kind
    assert {path.name for path in tmp_path.iterdir()} == {special.name, named.name}


def test_a_link_in_a_folder_that_is_worked_in_is_replaced_and_not_followed(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir()
    (work / "notes.txt").symlink_to(outside)
    with watched(work):
        write_text(work / "notes.txt", "text")
    assert not outside.exists()
    assert (work / "notes.txt").read_text(encoding="utf-8") == "text"


def test_a_link_that_was_named_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_text(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text(encoding="utf-8") == "text"
