"""A file that grows piece by piece: wherever a process dies, the next one goes on, and nothing is lost or twice."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graftmt.errors import GraftError
from graftmt.partial import MARKS, PartialFile, Position, spread

PIECES = [b"one\n", b"", b"three, longer\n", b"four\n"]
WHOLE = b"".join(PIECES)


def write(path: Path, pieces: list[bytes] = PIECES, *, fresh: bool = False, stop: int | None = None, **facts: Any) -> int:
    """All pieces, or up to number `stop`; returns how many were there already."""
    file = PartialFile(path, facts)
    with file.begin(fresh=fresh) as position:
        before = position.lines
        if not position.finished:
            for number in range(position.lines, len(pieces)):
                if number == stop:
                    return before
                position = file.append(pieces[number], replace(position, lines=number + 1))
            file.finish(position)
    return before


def die_at(call: int, work: Callable[[], object]) -> bool:
    """Does the work in a process that ends without a word before its `call`-th touch of the disk; False: it got through."""
    child = os.fork()
    if child == 0:
        calls = itertools.count(1)

        def mortal(function: Callable[..., Any]) -> Callable[..., Any]:
            def run(*arguments: Any, **options: Any) -> Any:
                if next(calls) == call:
                    os._exit(9)
                return function(*arguments, **options)

            return run

        try:
            for owner, name in ((os, "fsync"), (os, "replace"), (Path, "unlink"), (Path, "open"), (fcntl, "flock")):
                setattr(owner, name, mortal(getattr(owner, name)))
            work()
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9)
    return code == 9


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("earlier", [None, b"an earlier file\n"])
def test_it_may_die_before_any_touch_of_the_disk(tmp_path: Path, earlier: bytes | None) -> None:
    died = True
    for call in itertools.count(1):
        folder = tmp_path / str(call)
        folder.mkdir()
        if earlier is not None:
            (folder / "out").write_bytes(earlier)
        if not (died := die_at(call, lambda folder=folder: write(folder / "out", fresh=earlier is not None))):
            break
        if (folder / "out.work.json").exists() or not (folder / "out").exists():
            write(folder / "out")
        else:  # nothing was begun
            assert (folder / "out").read_bytes() == earlier
            write(folder / "out", fresh=True)
        assert (folder / "out").read_bytes() == WHOLE
        assert names(folder) == {"out", "out.work.json"}
    assert not died
    assert call > 15  # it died everywhere between the first and the last


@pytest.mark.slow
def test_what_dies_while_it_goes_on_goes_on(tmp_path: Path) -> None:
    """Each process dies a little later than the one before, all on the same file."""
    for call in itertools.count(2):
        if not die_at(call, lambda: write(tmp_path / "out")):
            break
    assert (tmp_path / "out").read_bytes() == WHOLE
    assert names(tmp_path) == {"out", "out.work.json"}


def test_it_goes_on_after_the_last_piece_that_was_stated_and_cuts_off_what_is_beyond(tmp_path: Path) -> None:
    write(tmp_path / "out", stop=3)
    assert not (tmp_path / "out").exists()
    with (tmp_path / "out.partial").open("ab") as handle:
        handle.write(b"fo")  # half of a piece
    assert write(tmp_path / "out") == 3
    assert (tmp_path / "out").read_bytes() == WHOLE


def test_no_pieces_give_an_empty_file(tmp_path: Path) -> None:
    write(tmp_path / "new" / "out", [])
    assert (tmp_path / "new" / "out").read_bytes() == b""
    assert names(tmp_path / "new") == {"out", "out.work.json"}


def test_work_that_was_begun_otherwise_is_refused_and_kept(tmp_path: Path) -> None:
    write(tmp_path / "out", stop=2, beam=5, input={"bytes": 3})
    kept = (tmp_path / "out.partial").read_bytes()
    with pytest.raises(GraftError, match=r"beam: 5 then, 1 now; input\.bytes: 3 then, 4 now\. .*--fresh"):
        write(tmp_path / "out", beam=1, input={"bytes": 4})
    assert (tmp_path / "out.partial").read_bytes() == kept
    assert write(tmp_path / "out", beam=1, input={"bytes": 4}, fresh=True) == 0
    assert (tmp_path / "out").read_bytes() == WHOLE


def test_a_file_that_is_there_is_replaced_only_if_asked_for_and_only_when_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"mine")
    with pytest.raises(GraftError, match=r"out is there already\. .*--fresh"):
        write(path)
    assert names(tmp_path) == {"out"}
    write(path, fresh=True, stop=2)
    assert path.read_bytes() == b"mine"
    assert write(path) == 2  # it was asked for when the work began
    assert path.read_bytes() == WHOLE


def test_the_same_work_is_not_done_again_unless_its_file_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, beam=5)
    before = path.stat()
    assert write(path, beam=5) == len(PIECES)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert names(tmp_path) == {"out", "out.work.json"}
    with pytest.raises(GraftError, match=r"out is there already.*: beam: 5 then, 1 now\. .*--fresh"):
        write(path, beam=1)
    path.unlink()
    assert write(path, beam=1) == 0
    assert path.read_bytes() == WHOLE
    path.write_bytes(b"mine")
    with pytest.raises(GraftError, match=rf"size: {len(WHOLE)} then, 4 now"):
        write(path, beam=1)
    assert path.read_bytes() == b"mine"
    assert names(tmp_path) == {"out", "out.work.json"}


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    write(tmp_path / "out", stop=2)
    (tmp_path / "out").write_bytes(b"mine")
    with pytest.raises(GraftError, match="came into being while"):
        write(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda folder: (folder / "out.work.json").unlink(), "is there without out.work.json"),
        (lambda folder: (folder / "out.work.json").write_text("{"), r"out\.work\.json.* is damaged"),
        (lambda folder: change(folder, lines=-3), r"out\.work\.json.* is damaged .*lines is -3"),
        (lambda folder: change(folder, written="4"), r"out\.work\.json.* is damaged .*written"),
        (lambda folder: change(folder, finished=[]), r"out\.work\.json.* is damaged .*finished"),
        (lambda folder: (folder / "out.work.json").write_text('{"work": {}, "position": []}'), "is damaged .*position"),
        (lambda folder: (folder / "out.work.json").write_text('{"work": [], "position": {}}'), "is damaged .*work"),
        (lambda folder: change(folder, signed=True, lines=3), r"out\.work\.json.* is damaged .*checksum"),
    ],
)
def test_damage_is_named_and_fresh_starts_over(tmp_path: Path, harm: Callable[[Path], object], words: str) -> None:
    write(tmp_path / "out", stop=2)
    harm(tmp_path)
    with pytest.raises(GraftError, match=words):
        write(tmp_path / "out")
    write(tmp_path / "out", fresh=True)
    assert (tmp_path / "out").read_bytes() == WHOLE


def change(folder: Path, *, signed: bool = False, **values: Any) -> None:
    """Other values in the position; without its checksum, unless it is to be a `signed` one that no longer fits."""
    path = folder / "out.work.json"
    document = json.loads(path.read_text())
    document["position"] |= values
    if not signed:
        del document["checksum"]
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("harm", "kept"),
    [
        (lambda content: content[:2], 0),  # shorter, within the first piece
        (lambda content: b"", 0),
        (lambda content: b"0" + content[1:], 0),  # as long as before
        (lambda content: content[:6] + b"_" + content[7:], 2),  # in the third piece: the first two stay
        (lambda content: content[:-1], 2),
        (lambda content: content + b"beyond", 3),  # of a piece that was not stated: no damage
    ],
)
def test_what_is_damaged_is_made_again_from_the_last_sound_piece_on(
    tmp_path: Path, harm: Callable[[bytes], bytes], kept: int
) -> None:
    write(tmp_path / "out", stop=3)
    partial = tmp_path / "out.partial"
    partial.write_bytes(harm(partial.read_bytes()))
    file = PartialFile(tmp_path / "out", {})
    with file.begin() as position:
        assert position.lines == kept
    assert ("out.partial is damaged" in file.note) == (kept < 3)
    assert write(tmp_path / "out") == kept
    assert (tmp_path / "out").read_bytes() == WHOLE


def test_work_of_earlier_versions_has_no_checksum_and_goes_on(tmp_path: Path) -> None:
    write(tmp_path / "out", stop=3)
    path = tmp_path / "out.work.json"
    document = json.loads(path.read_text())
    position = {key: document["position"][key] for key in ("lines", "read", "written", "skipped", "finished", "replaces")}
    path.write_text(json.dumps({"work": document["work"], "position": position}))
    assert write(tmp_path / "out") == 3
    assert (tmp_path / "out").read_bytes() == WHOLE
    path.write_text(json.dumps({"work": document["work"], "position": {**position, "written": 10**6}}))
    (tmp_path / "out").rename(tmp_path / "out.partial")
    with pytest.raises(GraftError, match=r"bytes where out\.work\.json says 1,000,000"):
        write(tmp_path / "out")


def test_a_finished_file_that_was_edited_is_not_taken_for_the_work(tmp_path: Path) -> None:
    write(tmp_path / "out")
    (tmp_path / "out").write_bytes(WHOLE.replace(b"one", b"two"))
    with pytest.raises(GraftError, match=r"out is there already.*: its content"):
        write(tmp_path / "out")


def test_marks_stay_few_and_evenly_spread() -> None:
    marks: list[Position] = []
    for number in range(1, 5001):
        marks = spread([*marks, Position(pieces=number, lines=number)])
        assert len(marks) <= MARKS
    gaps = [later.lines - earlier.lines for earlier, later in itertools.pairwise([Position(), *marks])]
    assert max(gaps) <= 5000 / MARKS * 2


@pytest.mark.parametrize("gone", ["file", "folder"])
def test_a_partial_file_that_is_removed_in_mid_work_is_an_error(tmp_path: Path, gone: str) -> None:
    folder = tmp_path / "work"
    file = PartialFile(folder / "out", {})
    with pytest.raises(GraftError, match=r"out\.partial was removed"), file.begin() as position:
        position = file.append(b"one\n", position)
        shutil.rmtree(folder) if gone == "folder" else (folder / "out.partial").unlink()
        file.append(b"two\n", position)
    assert not (folder / "out").exists()


def test_a_second_process_is_told_so(tmp_path: Path) -> None:
    with PartialFile(tmp_path / "out", {}).begin() as position:
        assert position == Position()
        with pytest.raises(GraftError, match="in use by another process"):
            write(tmp_path / "out", fresh=True)
    assert json.loads((tmp_path / "out.work.json").read_text())["position"]["lines"] == 0


def test_a_full_disk_is_an_error_for_people_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "out", stop=2)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(GraftError, match=r"out\.partial: No space left on device\. .*kept"):
            write(tmp_path / "out")
    assert write(tmp_path / "out") == 2
    assert (tmp_path / "out").read_bytes() == WHOLE
