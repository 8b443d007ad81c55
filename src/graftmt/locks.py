"""Locks that processes hold on files and folders. The kernel frees them with the process, however it ends. Layer 0."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import IO, Any

from graftmt.errors import GraftError
from graftmt.folders import could_not_write, make_folder, watched
from graftmt.reading import check_regular_or_new


def lock(handle: IO[Any] | FileIO, *, wait: bool = False) -> bool:
    """Locks a file until it is closed or its process is killed; False where the file system has no locks.

    Where another process has it, that is a BlockingIOError, unless it may `wait`.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


@contextmanager
def exclusive(folder: Path, what: str, *, stays: bool = False) -> Iterator[None]:
    """Holds `folder` for this process alone; a second one is told so instead of spoiling the work of the first.

    Where there are no locks, nobody is told, and the work continues. The folder is `watched`.
    """
    make_folder(folder)
    with _opened(folder / ".lock", "w") as handle:
        try:
            lock(handle)
        except BlockingIOError:
            raise GraftError(f"{what} {folder} is in use by another process; wait for it, or use another folder.") from None
        with watched(folder, stays=stays):
            yield  # the lock goes with the file handle, also when the process is killed


def _opened(path: Path, mode: str) -> IO[Any]:
    try:
        check_regular_or_new(path)
        return path.open(mode)
    except OSError as error:
        raise could_not_write(path, error) from error


@contextmanager
def claimed(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Holds the lock on the file `path`, which is made where it is missing and stays; False where another process has it.

    With `wait` it is True, sooner or later.
    """
    make_folder(path.parent)
    with _opened(path, "a") as handle:
        try:
            locked = lock(handle, wait=wait)
        except BlockingIOError:
            yield False
            return
        if not locked:
            raise GraftError(f"the file system of {path.parent} has no locks, by which processes share work; use another.")
        yield True  # as of `exclusive`, the lock goes with the file handle
