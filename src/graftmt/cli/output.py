"""What commands print, which commands no terminal, and standard streams that are closed, full or read by nobody any more."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from graftmt.errors import UNPRINTABLE, printable
from graftmt.progress import announce

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def plain(text: object) -> Text:
    """For rich, which would read a string as markup and hand control characters to the terminal."""
    from rich.text import Text

    return Text(printable(text))


def json_text(document: Any, indent: int | None = None) -> str:
    """JSON in which what would command a terminal is escaped; a program reads the same from it."""
    text = json.dumps(document, ensure_ascii=False, indent=indent)
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def tell(*lines: object) -> None:
    """Sentences about the result, on standard output, without what would command a terminal."""
    for line in lines:
        print(printable(line))


def hand_over(*lines: object) -> None:
    """Paths, translations and YAML, for other programs: as they are in a file or a pipe, safe to look at on a terminal."""
    for line in lines:
        print(printable(line) if sys.stdout.isatty() else line)


@contextmanager
def stoppable(*, as_json: bool = False, made: str | None = None) -> Iterator[None]:
    """Around training: a run that was asked to stop says so and ends with the code the shell expects.

    `made` is what the result would be called in JSON. Of several processes the first one speaks.
    """
    from graftmt.training import Stopped
    from graftmt.training.distribution import is_first_process

    try:
        yield
    except Stopped as stop:
        if is_first_process():
            announce(f"graftmt: {stop.reason}; everything is saved. Rerun the command to resume.")
            if as_json:
                nothing = {} if made is None else {made: None}
                print(json_text({"stopped": stop.reason, **nothing, **stop.standing}))
        raise typer.Exit(stop.exit_code) from None


def show_samples(console: Console, samples: list[dict[str, str]]) -> None:
    """Source, translation and, where it differs, the reference."""
    for sample in samples:
        right = sample["translation"] == sample["reference"]
        heading = plain(sample["direction"])
        heading.stylize("bold")
        console.print(heading.append(f"  {'same as the reference' if right else 'differs from the reference'}", "not bold"))
        lines = [sample["source"], sample["translation"], *([] if right else [f"reference: {sample['reference']}"])]
        for line in lines:
            console.print(plain(f"  {line}"), soft_wrap=True)


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
