"""Files that are either whole or not there: atomic writes and checked reads. Layer 0."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from graftmt.errors import GraftError


def _failed(path: Path, error: OSError) -> GraftError:
    reason = error.strerror or str(error)
    return GraftError(
        f"could not write {path}: {reason}. Nothing that was there before has changed; "
        "free some space or choose another folder, then run the same command again."
    )


def make_folder(folder: Path) -> None:
    """The folder, with those that it is in, where it is not there yet."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        file = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
        purpose = "" if file == folder else f" for {folder}"
        raise GraftError(f"{file} is a file; a folder is needed{purpose}, choose another name.") from None


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yields a temporary path beside `path`; it takes its name when the block ends well, and is removed otherwise."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        make_folder(path.parent)
        yield temporary
        _synchronise(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise _failed(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path, *, unless: str | None = None) -> Iterator[Path]:
    """The same for a folder: the new one replaces the old one whole; `unless` that has a file of this name, and stays."""
    temporary: Path | None = None
    try:
        make_folder(path.parent)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
        temporary.chmod(0o755)
        yield temporary
        for written in temporary.iterdir():
            if written.is_file():
                _synchronise(written)
        _replace_folder(temporary, path, unless)
    except OSError as error:
        raise _failed(path, error) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _replace_folder(new: Path, path: Path, unless: str | None) -> None:
    """rename(2) does not replace a folder that has files, so the old one steps aside first, and comes back on failure."""
    try:
        os.replace(new, path)
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    if unless is not None and (path / unless).is_file():
        return
    aside = path.with_name(f".{path.name}.{os.getpid()}.old")
    shutil.rmtree(aside, ignore_errors=True)
    os.replace(path, aside)
    try:
        os.replace(new, path)
    except OSError:
        os.replace(aside, path)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _synchronise(path: Path) -> None:
    """Bytes reach the disk before the name does, so that a power cut leaves the old file or the new one."""
    with path.open("rb") as handle:
        os.fsync(handle.fileno())


@contextmanager
def exclusive(folder: Path, what: str) -> Iterator[None]:
    """Holds `folder` for this process alone; a second one is told so instead of spoiling the work of the first."""
    make_folder(folder)
    with (folder / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise GraftError(f"{what} {folder} is in use by another process; wait for it, or use another folder.") from None
        yield  # the lock goes with the file handle, also when the process is killed


@contextmanager
def claimed(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Holds the lock on the file `path`, which is made where it is missing and stays; False where another process has it.

    With `wait` it is True, sooner or later.
    """
    make_folder(path.parent)
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            free = True
        except BlockingIOError:
            free = False
        yield free  # as of `exclusive`, the lock goes with the file handle


def write_text(path: Path, text: str) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def read_json(path: Path, what: str) -> dict[str, Any]:
    """A JSON object, or an error that says which file is missing or damaged; `what` names it for a person."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise GraftError(f"{what}: there is no file {path}; check the path.") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise GraftError(f"{what}: {path} is damaged ({error}); restore it from a copy or make it again.") from None
    except OSError as error:
        raise GraftError(f"{what}: cannot read {path}: {error.strerror}.") from None
    if not isinstance(value, dict):
        raise GraftError(f"{what}: {path} holds a {type(value).__name__} where an object was expected.")
    return value
