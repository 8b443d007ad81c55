"""Files that anyone may have put there: opened only where they are files, and read up to a limit. Layer 0."""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

LARGEST_TEXT = 8 * 2**20
"""Bytes of a YAML or JSON document. The longest that graftmt has written has a hundredth of it."""


def open_regular(path: Path) -> io.BufferedReader:
    """Opens a file to read. A folder, a pipe or a device is an OSError, and is not waited for."""
    _check_regular(path, os.stat(path))
    handle = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    try:
        _check_regular(path, os.fstat(handle.fileno()))  # it may have been replaced in between
    except OSError:
        handle.close()
        raise
    return handle


def _check_regular(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is a folder" if stat.S_ISDIR(found.st_mode) else "it is no regular file", str(path))


def read_limited(path: Path, limit: int) -> bytes:
    """All bytes of a regular file; more than `limit` are a ValueError, before they are read."""
    with open_regular(path) as handle:
        size = os.fstat(handle.fileno()).st_size
        content = b"" if size > limit else handle.read(limit + 1)
    if size > limit or len(content) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    return content


def check_regular_or_new(path: Path) -> None:
    """An OSError if something is there that is no file, such as a pipe, whose opening would wait for ever."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return
    _check_regular(path, found)
