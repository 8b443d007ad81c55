"""A file that was checked is not hashed again, and one that may have changed in any way always is."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graftmt import base as module
from graftmt.base import TENSORS, Base, check_stored
from graftmt.checked import KNOWN, SETTLED, is_known, remember
from graftmt.errors import CheckpointError
from graftmt.places import default_cache_folder

MARK = "what was found"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAFTMT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every file had been there for a while."""
    now = time.time
    monkeypatch.setattr("graftmt.checked.time.time", lambda: now() + 2 * SETTLED)


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many bytes of tensors were hashed by each load."""
    counts: list[int] = []
    begun = module._begun

    class Counting:
        def __init__(self, digest: object) -> None:
            self.digest = digest
            counts.append(0)

        def update(self, data: object) -> None:
            counts[-1] += len(data)  # type: ignore[arg-type]
            self.digest.update(data)  # type: ignore[attr-defined]

        def hexdigest(self) -> str:
            return self.digest.hexdigest()  # type: ignore[attr-defined,no-any-return]

    monkeypatch.setattr(module, "_begun", lambda *known: Counting(begun(*known)))
    yield counts


@pytest.fixture
def stored(base_copy: Path) -> Path:
    return base_copy


@pytest.mark.usefixtures("settled")
def test_a_base_is_hashed_once(stored: Path, hashed: list[int]) -> None:
    for dtype in ("fp32", "bf16", "fp32"):
        Base.load(stored, dtype=dtype)
    assert hashed[0] > 1000 and hashed[1:] == [0, 0]


@pytest.mark.usefixtures("settled")
def test_inspect_and_verify_hash_in_any_case(stored: Path, hashed: list[int]) -> None:
    Base.load(stored)
    assert check_stored(stored) == Base.load(stored, verify=True).fingerprint
    assert len(set(hashed)) == 1 and hashed[0] > 0


def test_what_changed_a_moment_ago_is_hashed_again(stored: Path, hashed: list[int]) -> None:
    (stored / TENSORS).touch()
    Base.load(stored)
    Base.load(stored)
    assert hashed[0] == hashed[1] > 0


def flip(path: Path) -> None:
    with path.open("r+b") as handle:
        handle.seek(-3, os.SEEK_END)
        byte = handle.read(1)
        handle.seek(-3, os.SEEK_END)
        handle.write(bytes([byte[0] ^ 1]))


def flip_and_restore_the_time(path: Path) -> None:
    before = path.stat()
    flip(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(path: Path) -> None:
    """By another file of the same size and time."""
    other = path.with_name("other")
    shutil.copy2(path, other)
    flip_and_restore_the_time(other)
    other.replace(path)


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("change", [flip, flip_and_restore_the_time, replace])
def test_a_changed_file_is_refused_though_it_was_known(stored: Path, change: Callable[[Path], None]) -> None:
    Base.load(stored)
    time.sleep(0.02)  # clocks of file systems tick a hundred times a second or more
    change(stored / TENSORS)
    with pytest.raises(CheckpointError, match=r"fingerprint|not finite"):
        Base.load(stored)


@pytest.mark.usefixtures("settled")
def test_another_architecture_or_text_is_refused_though_the_tensors_are_known(stored: Path) -> None:
    Base.load(stored)
    document = stored / "base.json"
    content = document.read_text(encoding="utf-8")
    document.write_text(content.replace('"norm_epsilon": 1e-05', '"norm_epsilon": 1e-06'), encoding="utf-8")
    assert document.read_text(encoding="utf-8") != content
    with pytest.raises(CheckpointError, match="fingerprint"):
        Base.load(stored)


@pytest.mark.usefixtures("settled")
def test_a_moved_base_is_hashed_again_and_a_damaged_note_too(stored: Path, hashed: list[int]) -> None:
    Base.load(stored)
    moved = stored.rename(stored.with_name("moved"))
    Base.load(moved)
    assert hashed[-1] > 0
    for note in (default_cache_folder() / KNOWN).iterdir():
        note.write_text("{", encoding="utf-8")
    Base.load(moved)
    assert hashed[-1] > 0


@pytest.mark.usefixtures("settled")
def test_a_cache_that_cannot_be_written_is_no_error(stored: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("GRAFTMT_CACHE", str(tmp_path / "file" / "cache"))
    assert Base.load(stored).fingerprint == Base.load(stored).fingerprint


@pytest.mark.usefixtures("settled")
def test_nothing_is_remembered_of_a_file_that_changed_while_it_was_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("some", encoding="utf-8")
    before = path.stat()
    path.write_text("other", encoding="utf-8")
    remember(path, before, path.stat(), MARK)
    assert not is_known(path, path.stat(), MARK)
    remember(path, path.stat(), path.stat(), MARK)
    assert is_known(path, path.stat(), MARK) and not is_known(path, path.stat(), "another")
