"""What a file is known by: checksums of unfinished work, and which files were hashed before and have not changed. Layer 0.

Checksums find damage of the same length before it becomes part of a result. They are CRC-32: against accidents of disks and
memory, not against people; bases and packs have fingerprints for that. On one core of 2020 it takes half a second for a
gigabyte, a third of what SHA-256 takes. What earlier versions wrote has none, and is read without.

So that gigabytes are not hashed each time, a file is known by its path, device, inode, size and the times of its last changes,
to the nanosecond. The time of the last change of its inode cannot be set by a program, so a file with new content is always
another one. What changed less than two seconds before it was read is not remembered: the clock of a file system may be too
coarse to tell the next change from it.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from graftmt.documents import read_json
from graftmt.errors import DataError, GraftError
from graftmt.files import open_regular, write_text
from graftmt.folders import make_folder
from graftmt.places import check_outside_models, default_cache_folder

KEY = "checksum"
FILE = "checksums.json"
BLOCK = 1 << 20


def file_checksum(path: Path) -> str:
    """Of all its bytes."""
    value = 0
    with open_regular(path) as handle:
        while block := handle.read(BLOCK):
            value = zlib.crc32(block, value)
    return as_text(value)


def file_mark(path: Path) -> str:
    """The size of a file and its checksum."""
    return f"{path.stat().st_size}-{file_checksum(path)}"


def has_mark(path: Path, mark: str) -> bool:
    """Whether a file is as it was when it had this mark; one of another size is not read."""
    size, _, checksum = mark.rpartition("-")
    return str(path.stat().st_size) == (size or str(path.stat().st_size)) and file_checksum(path) == checksum


def as_text(value: int) -> str:
    return f"{value:08x}"


def write_checked_json(path: Path, document: dict[str, Any], *, tidy: bool = True, indent: int | None = 2) -> None:
    """A JSON object with a checksum of all else that is in it."""
    value = json.loads(json.dumps(document))
    text = json.dumps({**value, KEY: _checksum(value)}, ensure_ascii=False, indent=indent)
    write_text(path, text + "\n", tidy=tidy)


def read_checked_json(path: Path, what: str) -> dict[str, Any]:
    """The same without the checksum; an error names a file that is missing or damaged."""
    document = read_json(path, what)
    stored = document.pop(KEY, None)
    if stored is not None and stored != _checksum(document):
        raise DataError(f"{what}: {path} is damaged (its content does not have the checksum that it states).")
    return document


def _checksum(value: dict[str, Any]) -> str:
    return as_text(zlib.crc32(json.dumps(value, sort_keys=True).encode()))


def write_checksums(folder: Path) -> None:
    """checksums.json: those of all files that are in the folder now."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != FILE)
    write_checked_json(folder / FILE, {path.name: file_mark(path) for path in files})


def check_files(folder: Path, what: str) -> None:
    """An error names the first file of the folder that does not have its checksum, or is missing."""
    if not (folder / FILE).exists():
        return
    for name, stored in read_checked_json(folder / FILE, what).items():
        path = folder / name
        try:
            sound = isinstance(stored, str) and has_mark(path, stored)
        except OSError as error:
            raise DataError(f"{what}: {path} cannot be read ({error.strerror}).") from None
        if not sound:
            raise DataError(f"{what}: {path} is truncated or damaged (its content does not have its checksum).")


KNOWN = "known-files"
SETTLED = 2.0
"""Seconds without a change before a file is remembered."""


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
    return default_cache_folder() / KNOWN / f"{name}.json"


def _identity(path: Path, found: os.stat_result) -> list[str | int]:
    return [
        os.fsdecode(path.resolve()).encode("utf-8", "backslashreplace").decode("utf-8"),
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    ]
