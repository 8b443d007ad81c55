"""Standard input and output where they are closed, full or nobody reads them any more."""

from __future__ import annotations

import errno
import io
import os
import sys

from graftmt.errors import ConfigError
from graftmt.progress import announce

BROKEN_PIPE = 141
"""The exit code by which a shell knows that the reader of a pipe has gone."""


def open_streams() -> None:
    """Streams that were closed (`<&-`) get a file, or the next one to be opened would take their number.

    Reading that standard input and writing that standard output still fails. What is for people goes nowhere.
    """
    if sys.stdin is None:
        _take(0, os.O_WRONLY)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        _take(1, os.O_RDONLY)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        _take(2, os.O_WRONLY)
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Translations are UTF-8, whatever the locale says. A file name that is not becomes an escape, which JSON reads.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")


def _take(number: int, flags: int) -> None:
    handle = os.open(os.devnull, flags)
    if handle != number:
        os.dup2(handle, number)
        os.close(handle)


def check_arguments(arguments: list[str]) -> None:
    """Paths are kept in JSON and YAML, which are UTF-8; and no path may be a link that leads to itself."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise ConfigError(f"the argument {argument!r} is not valid UTF-8; rename the file, or link to it.") from None
        for path in (argument, argument.partition("=")[2]):
            try:
                os.stat(path)
            except (OSError, ValueError) as error:
                if getattr(error, "errno", None) == errno.ELOOP:
                    raise ConfigError(f"{path} is a link that leads to itself; give another path.") from None


def finish_output() -> None:
    """Writes what is still held back; an exit code says where that cannot be."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        drop_output()
        announce(f"graftmt: standard output cannot be written: {error.strerror}.")
        sys.exit(1)


def drop_output() -> None:
    """What could not be written is not tried again: Python would complain about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
