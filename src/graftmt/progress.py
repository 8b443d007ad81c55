"""Progress for people: a rich bar on a terminal, plain lines elsewhere, always on standard error. Layer 0."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from graftmt.errors import printable


def say(text: str) -> None:
    """A line for people, on standard error. Where nobody can read it any more, the work goes on."""
    with suppress(OSError):
        print(printable(text), file=sys.stderr, flush=True)


class Progress(Protocol):
    """What a long piece of work reports to."""

    def update(self, done: int, note: str = "") -> None:
        """`done` of the total is finished; `note` says what is worth knowing now."""

    def message(self, text: str) -> None:
        """A line that stays."""


class PlainProgress:
    """Lines on standard error, at most one every `seconds`."""

    def __init__(self, title: str, total: int, seconds: float = 10.0) -> None:
        self.title, self.total, self.seconds = title, total, seconds
        self.last = time.monotonic()

    def update(self, done: int, note: str = "") -> None:
        now = time.monotonic()
        finished = self.total > 0 and done >= self.total
        if now - self.last < self.seconds and not finished:
            return
        self.last = now
        total = f"/{self.total:,}" if self.total else ""
        self.message(f"{self.title}: {done:,}{total}{'  ' + note if note else ''}")

    def message(self, text: str) -> None:
        say(text)


class SilentProgress:
    """For callers that want none."""

    def update(self, done: int, note: str = "") -> None:
        pass

    def message(self, text: str) -> None:
        pass


class BarProgress:
    """A rich bar with rate, elapsed and remaining time."""

    def __init__(self, title: str, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self.bar = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self.task = self.bar.add_task(printable(title), total=total or None, note="")

    def update(self, done: int, note: str = "") -> None:
        self.bar.update(self.task, completed=done, note=printable(note))

    def message(self, text: str) -> None:
        self.bar.console.print(printable(text), highlight=False, markup=False)


@contextmanager
def progress(title: str, total: int, *, quiet: bool = False) -> Iterator[Progress]:
    """The progress that fits where standard error goes."""
    if quiet:
        yield SilentProgress()
    elif sys.stderr.isatty():
        bar = BarProgress(title, total)
        with bar.bar:
            yield bar
    else:
        yield PlainProgress(title, total)


def pace(done: int, left: int, seconds: float) -> str:
    """`120 lines/s, 3 min left`."""
    rate = done / max(seconds, 1e-9)
    remaining = left / rate if rate else 0.0
    if remaining >= 5400:
        return f"{rate:,.0f} lines/s, {remaining / 3600:.1f} h left"
    return (
        f"{rate:,.0f} lines/s, {remaining / 60:.0f} min left"
        if remaining >= 90
        else f"{rate:,.0f} lines/s, {remaining:.0f} s left"
    )
