"""Files and folders that are written whole or not at all, and files that are read with care. Layer 0.

Anyone may have put there what is read: it is opened only where it is a file, and read up to a limit.
"""

from __future__ import annotations

import errno
import io
import os
import re
import reprlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from graftmt.errors import ConfigError, GraftError
from graftmt.folders import check_watched, could_not_write, expect_regular, lock, make_folder, place_of

LARGEST_TEXT = 8 * 2**20
"""Bytes of a YAML or JSON document. The longest that graftmt has written has a hundredth of it."""
LEFT = re.compile(r"\.(.+)\.(?:\d+|[a-z0-9_]{8})\.tmp")
"""What a process that was killed may leave of what was to have the name in the middle."""


@contextmanager
def atomic_file(path: Path, *, tidy: bool = True) -> Iterator[Path]:
    """Yields a temporary file next to `path`; it takes that name when the block ends well, and is removed otherwise.

    A `path` that is a link is followed. Without `tidy` nothing is looked for that a killed process may have left, which takes a
    listing of the folder.
    """
    make_folder(path.parent)
    path = place_of(path)
    with ExitStack() as stack:
        try:
            if tidy:
                remove_left(path)
            temporary = stack.enter_context(_own_file(path))
            yield temporary
            _synchronise(temporary)
            check_watched(path)
            os.replace(temporary, path)
        except OSError as error:
            raise could_not_write(path, error) from error


@contextmanager
def atomic_folder(path: Path, *, unless: str | None = None) -> Iterator[Path]:
    """The same for a folder: the new one replaces the old one whole; `unless` that has a file of this name, and stays."""
    make_folder(path.parent)
    path = place_of(path)
    with ExitStack() as stack:
        try:
            remove_left(path)
            place = stack.enter_context(_own_place(path))
            new = place / "new"
            new.mkdir()
            new.chmod(0o755)
            yield new
            for written in new.iterdir():
                if written.is_file():
                    _synchronise(written)
            check_watched(path)
            _replace_folder(new, path, unless)
        except OSError as error:
            raise could_not_write(path, error) from error


def _replace_folder(new: Path, path: Path, unless: str | None) -> None:
    """rename(2) does not replace a folder that has files, so the old one steps aside first; `_clear` has it back on failure."""
    try:
        os.replace(new, path)
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    if unless is not None and (path / unless).is_file():
        return
    os.replace(path, new.with_name("old"))
    os.replace(new, path)


@contextmanager
def _own_file(path: Path) -> Iterator[Path]:
    """An empty file next to `path`, locked while the block runs."""
    temporary, handle = _new_file(path)
    with handle:
        try:
            yield temporary
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _new_file(path: Path) -> tuple[Path, BinaryIO]:
    """Made and locked; one that another process locked first, taking it for a dead one's, is left to that."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.randbelow(9 * 10**11) + 10**11}.tmp")
        handle = temporary.open("xb")
        with suppress(BlockingIOError):
            if not lock(handle) or temporary.exists():
                return temporary, handle
        handle.close()


@contextmanager
def _own_place(path: Path) -> Iterator[Path]:
    """A folder next to `path` with a locked file `lock`; it is removed with all in it when the block ends."""
    place, handle = _new_place(path)
    try:
        with handle:
            try:
                yield place
            finally:
                _clear(place, path)
    finally:
        with suppress(OSError):
            place.rmdir()


def _new_place(path: Path) -> tuple[Path, BinaryIO]:
    """Made and locked. Another process may take it for a dead one's and remove it before it is locked; then there is a next."""
    while True:
        place = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
        with suppress(FileNotFoundError, BlockingIOError):
            return place, _locked_file(place)
        make_folder(path.parent)  # an error if that is what is gone


def _locked_file(place: Path) -> BinaryIO:
    """`lock` in a new place, which has this name once it is locked: without locks never, and nobody removes the place."""
    handle = (place / "unlocked").open("wb")
    try:
        if lock(handle):
            (place / "unlocked").rename(place / "lock")
    except OSError:
        handle.close()
        raise
    return handle


def remove_left(path: Path) -> None:
    """Removes what processes that were killed as they wrote `path` left next to it; nothing that is being written.

    A folder that had stepped aside for a new one comes back where that did not take its place.
    """
    ours = re.compile(rf"\.{re.escape(path.name)}\.(?:\d{{12}}|(?P<folder>[a-z0-9_]{{8}}))\.tmp")
    with suppress(OSError):
        for found in filter(None, map(ours.fullmatch, os.listdir(path.parent))):
            left = path.with_name(found[0])
            with suppress(OSError):
                _remove_folder(left, path) if found["folder"] else _remove_file(left)


def sweep(folder: Path) -> None:
    """The same for all that is in one of our folders, by whatever name it was to go."""
    with suppress(OSError):
        names = {found[1] for name in os.listdir(folder) if (found := LEFT.fullmatch(name))}
        for name in sorted(names):
            remove_left(folder / name)


def _remove_file(left: Path) -> None:
    # Opened to write, though nothing is written: otherwise NFS gives no lock.
    with left.open("r+b") as handle:
        if lock(handle):
            left.unlink()


def _remove_folder(left: Path, path: Path) -> None:
    if not (left / "lock").exists():
        _remove_begun(left)
        return
    with (left / "lock").open("r+b") as handle:
        if not lock(handle):
            return
        _clear(left, path)
    left.rmdir()


def _remove_begun(left: Path) -> None:
    """Of a process that was killed before it had the lock, or after: empty, or with the file that was to become the lock.

    A process that is alive and was about to lock that file finds it locked or gone, and begins again in another place.
    """
    if os.listdir(left) == ["unlocked"]:
        with (left / "unlocked").open("r+b") as handle:
            if lock(handle):
                (left / "unlocked").unlink()
    left.rmdir()  # refused if something is in it


def _clear(place: Path, path: Path) -> None:
    """Removes what is in a place, but an old folder comes back to `path` where no new one is; if it cannot, it stays.

    The lock goes last: as long as there is something, another process can tell whether it may be removed.
    """
    with suppress(OSError):
        if (place / "old").is_dir() and not path.exists():
            (place / "old").rename(path)
        for inside in sorted(place.iterdir(), key=lambda path: path.name == "lock"):
            if inside.is_dir():
                shutil.rmtree(inside, ignore_errors=True)
            else:
                inside.unlink(missing_ok=True)


def _synchronise(path: Path) -> None:
    """Bytes reach the disk before the name does, so that a power cut leaves the old file or the new one."""
    with path.open("rb") as handle:
        os.fsync(handle.fileno())


def write_text(path: Path, text: str, *, tidy: bool = True) -> None:
    with atomic_file(path, tidy=tidy) as temporary:
        temporary.write_text(text, encoding="utf-8")


def open_regular(path: Path) -> io.BufferedReader:
    """Opens a file to read. A folder, a pipe or a device is an OSError, and is not waited for."""
    expect_regular(path, os.stat(path))
    handle = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    try:
        expect_regular(path, os.fstat(handle.fileno()))  # it may have been replaced in between
    except OSError:
        handle.close()
        raise
    return handle


def read_limited(path: Path, limit: int) -> bytes:
    """All bytes of a regular file; more than `limit` are a ValueError, before they are read."""
    with open_regular(path) as handle:
        size = os.fstat(handle.fileno()).st_size
        content = b"" if size > limit else handle.read(limit + 1)
    if size > limit or len(content) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    return content


def as_path(value: str | os.PathLike[str], what: str) -> Path:
    """The path that a Python program gave; `what` it is of, with its article."""
    if not isinstance(value, str | os.PathLike):
        raise ConfigError(f"{what} is {reprlib.repr(value)} ({type(value).__name__}); expected a path.")
    return Path(value)


def kind_of_path(path: Path) -> str:
    """What is there in place of a file, for an error message."""
    if path.is_dir():
        return "a folder"
    if path.is_fifo():
        return "a named pipe"
    if path.is_socket():
        return "a socket"
    if path.is_char_device() or path.is_block_device():
        return "a device"
    return "a link to something that is not there" if path.is_symlink() else "no file"


def check_regular(path: Path) -> None:
    """A pipe or a device may have no end, and cannot be read twice: an error, before it is opened."""
    if os.path.lexists(path) and not path.is_file():
        raise GraftError(f"{path} is {kind_of_path(path)}; a file was expected, give one.")
