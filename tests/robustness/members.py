"""Files of a folder that are none: pipes, devices, folders, links that lead nowhere, in a circle or outside."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

Change = Callable[[Path, Path], None]
"""Takes the file, and a file outside of the case's folder."""


def _remove(file: Path) -> None:
    shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink()


def pipe(file: Path, outside: Path) -> None:
    _remove(file)
    os.mkfifo(file)


def folder(file: Path, outside: Path) -> None:
    _remove(file)
    file.mkdir()


def filled_folder(file: Path, outside: Path) -> None:
    folder(file, outside)
    (file / file.name).write_bytes(b"x")


def make_device(path: Path, minor: int) -> None:
    """A device node of our own, as /dev/null (3) or /dev/zero (5) are; without the rights for that, a pipe.

    Never the machine's own: a fault that attacks are to find could replace it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(path):
        return
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
    except OSError:
        os.mkfifo(path)


def endless_device(file: Path, outside: Path) -> None:
    _remove(file)
    make_device(outside.with_name("zero"), 5)
    file.symlink_to(outside.with_name("zero"))


def empty_device(file: Path, outside: Path) -> None:
    _remove(file)
    make_device(outside.with_name("null"), 3)
    file.symlink_to(outside.with_name("null"))


def own_device(file: Path, outside: Path) -> None:
    """A device node in place of the file."""
    _remove(file)
    make_device(file, 5)


def telephone(file: Path, outside: Path) -> None:
    """A socket, which the folder keeps although nobody listens."""
    _remove(file)
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as listener:  # by its bare name: paths of sockets are short
        os.chdir(file.parent)
        try:
            listener.bind(file.name)
        finally:
            os.chdir(here)


def circle(file: Path, outside: Path) -> None:
    _remove(file)
    file.symlink_to(file.name)


def dead_link(file: Path, outside: Path) -> None:
    _remove(file)
    file.symlink_to(outside.with_name("nothing"))


def link_outside(file: Path, outside: Path) -> None:
    """To a sound copy of it that is somewhere else: may be read, but never written through."""
    shutil.move(file, outside)
    file.symlink_to(outside)


def endless_file(file: Path, outside: Path) -> None:
    """A terabyte that takes no room: a hole."""
    _remove(file)
    with file.open("wb") as handle, suppress(OSError):
        handle.truncate(1 << 40)


def longer_file(file: Path, outside: Path) -> None:
    """Sound at its start, a gigabyte of hole behind it."""
    with file.open("r+b") as handle, suppress(OSError):
        handle.truncate(1 << 30)


def missing(file: Path, outside: Path) -> None:
    _remove(file)


def empty(file: Path, outside: Path) -> None:
    file.write_bytes(b"")


def stranger(file: Path, outside: Path) -> None:
    """One more file, with a name that is no text."""
    with open(os.fsencode(file.parent) + b"/\xff\x1b[31m\n.txt", "wb") as handle:
        handle.write(b"x")


CHANGES: tuple[Change, ...] = (
    *(pipe, pipe, folder, filled_folder, endless_device, empty_device, own_device, telephone, circle, dead_link, link_outside),
    *(endless_file, longer_file, missing, empty, stranger),
)


def mutate_member(chance: Random, file: Path, outside: Path) -> str:
    change = chance.choice(CHANGES)
    change(file, outside)
    return change.__name__
