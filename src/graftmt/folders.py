"""Folders that are written to: made where missing, links followed, watched and locked while work is done in them. Layer 0.

The kernel frees a lock with the process that holds it, however that ends.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import IO, Any

from graftmt.errors import GraftError

FULL = (None, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk that is full. Those without a number are other libraries' words for it."""


def could_not_write(path: Path, error: OSError) -> GraftError:
    """The error to raise; a watched folder that is gone says so itself."""
    check_watched(path)
    reason = error.strerror or str(error)
    advice = "free some space or choose another folder" if error.errno in FULL else "choose another place"
    return GraftError(
        f"could not write {path}: {reason}. Nothing that was there before has changed; {advice}, then run the same command "
        "again."
    )


def make_folder(folder: Path) -> None:
    """Makes the folder, and those that it is in, unless it exists."""
    check_watched(folder)
    folder = place_of(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        file = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
        purpose = "" if file == folder else f" for {folder}"
        if file.is_symlink() and not file.exists():
            raise GraftError(f"{file} is a link to {os.readlink(file)}, which does not exist{purpose}; remove it.") from None
        raise GraftError(f"{file} is a file; a folder is needed{purpose}, choose another name.") from None
    except OSError as error:
        raise could_not_write(folder, error) from error


def followed(path: Path) -> Path:
    """Where a link leads: that is written, and the link stays. A path that is no link is returned as it is."""
    if not path.is_symlink():
        return path
    try:
        real = path.resolve()
    except (OSError, RuntimeError):
        real = path
    if real.is_symlink():
        raise GraftError(f"{path} is a link that leads back to itself; remove it, or choose another name.")
    if not real.parent.is_dir():
        raise GraftError(f"{path} is a link to {real}, and there is no folder {real.parent}; make that, or remove the link.")
    return real


def check_replaceable(path: Path) -> None:
    """An error if something is there that no file or folder may take the place of: a device, a pipe or a socket.

    A rename would replace it: with the rights of root, `-o /dev/null` would leave the machine without its device.
    """
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            raise GraftError(f"{path} is a device, a pipe or a socket, no plain file, and stays; choose another name.")


def expect_regular(path: Path, found: os.stat_result) -> None:
    """An OSError if what was found there is no file."""
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is a folder" if stat.S_ISDIR(found.st_mode) else "it is no regular file", str(path))


def check_regular_or_new(path: Path) -> None:
    """An OSError if something is there that is no file, such as a pipe, whose opening would wait for ever."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return
    expect_regular(path, found)


def place_of(path: Path) -> Path:
    """Where a file of this name is written: where a link leads, but for links in a folder that this process works in.

    Those are not ours, and may lead anywhere; what is written takes their place.
    """
    place = Path(os.path.abspath(path))
    found = path if any(folder in place.parents for folder, _ in _watched) else followed(path)
    check_replaceable(found)
    return found


_watched: list[tuple[Path, int]] = []
"""Folders that this process works in, each with a handle on it: as long as that is open, no other folder has its number."""


@contextmanager
def watched(folder: Path, *, stays: bool = True) -> Iterator[None]:
    """While the block runs, an existing folder that is removed, moved or replaced is an error wherever something is written.

    Without this it would be made anew, with the last files of the work alone. If it `stays`, the end of the block checks too.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise could_not_write(folder, error) from error
    entry = Path(os.path.abspath(folder)), handle
    _watched.append(entry)
    try:
        yield
        if stays:
            check_watched(folder)
    finally:
        _watched.remove(entry)
        os.close(handle)


def check_watched(path: Path) -> None:
    """An error if `path` is in a watched folder that is no longer there."""
    place = Path(os.path.abspath(path))
    for folder, handle in list(_watched):
        if place != folder and folder not in place.parents:
            continue
        with suppress(OSError):
            if os.path.samestat(os.fstat(handle), folder.stat()):
                continue
        raise GraftError(
            f"{folder} was removed, moved or replaced while it was being written to. The work in it cannot be finished: "
            "restore the folder and run the same command again, or start over."
        )


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
