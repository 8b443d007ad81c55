"""A second process is told that a folder or a file is in use; where there are no locks, only what needs them is refused."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from graftmt.errors import GraftError
from graftmt.files import write_text
from graftmt.locks import claimed, exclusive
from graftmt.partial import PartialFile


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
