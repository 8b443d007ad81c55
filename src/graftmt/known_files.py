"""Which files were checked before and have not changed since, so that gigabytes are not hashed each time. Layer 0.

A file is known by its path, device, inode, size and the times of its last changes, to the nanosecond. The time of the last
change of its inode cannot be set by a program, so that a file with new content is always another one. What changed less than
two seconds before it was read is not remembered: the clock of a file system may be too coarse to tell the next change from it.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from graftmt.checked import read_checked_json, write_checked_json
from graftmt.errors import GraftError
from graftmt.folders import make_folder
from graftmt.places import check_outside_models

FOLDER = "known-files"
SETTLED = 2.0
"""Seconds without a change before a file is remembered."""


def default_cache_folder() -> Path:
    """`$GRAFTMT_CACHE`, or graftmt's folder in the user's cache."""
    if configured := os.environ.get("GRAFTMT_CACHE"):
        return Path(configured)
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return Path(caches) / "graftmt"
    try:
        return Path.home() / ".cache" / "graftmt"
    except RuntimeError:
        raise GraftError("there is no home folder to keep tokenised text in; name a folder in GRAFTMT_CACHE.") from None


def is_known(path: Path, found: os.stat_result, mark: str) -> bool:
    """Whether this open file had this mark before, and has not changed since."""
    try:
        kept = read_checked_json(_note(path), "a note of a file")
    except (GraftError, OSError):  # there is none, or it is damaged: then the file is read and hashed
        return False
    return kept == {"file": _identity(path, found), "mark": mark}


def remember(path: Path, before: os.stat_result, after: os.stat_result, mark: str) -> None:
    """Notes the mark of a file that was read between two looks at it; nothing is noted where it may have changed.

    A cache that cannot be written is no error: the next process hashes the file again.
    """
    changed = max(before.st_mtime, before.st_ctime)
    if _identity(path, before) != _identity(path, after) or time.time() - changed < SETTLED or not before.st_ino:
        return
    with suppress(GraftError, OSError):
        note = _note(path)
        check_outside_models(note.parent, itself=True)
        make_folder(note.parent)
        write_checked_json(note, {"file": _identity(path, before), "mark": mark})


def _note(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
    return default_cache_folder() / FOLDER / f"{name}.json"


def _identity(path: Path, found: os.stat_result) -> list[str | int]:
    return [
        os.fsdecode(path.resolve()).encode("utf-8", "backslashreplace").decode("utf-8"),
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    ]
