"""What work says while it is under way: a rich bar on a terminal, plain lines in other places. Layer 0.

Work calls `say` and `progress`, and does not know who listens. By default that is the logger `graftmt`, so Python programs see
nothing but warnings until they ask for it (`logging.basicConfig(level=logging.INFO)`). The command line listens on standard
error (`on_standard_error`); `silence`, `heard_by` and `indented` change who hears what is inside of them.
"""

from __future__ import annotations

import logging
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Protocol

from graftmt.errors import printable

LOGGER = logging.getLogger("graftmt")
WARNING = "warning: "
"""How a message begins that matters to the result."""

Listener = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Audience:
    """Who hears of the work: messages, and how far it is."""

    hear: Listener
    bars: bool = False
    """Whether it is a terminal's owner, who wants bars where there is a terminal."""
    counts: bool = True
    """Whether it wants to know how far the work is."""


_AUDIENCE: ContextVar[Audience | None] = ContextVar("graftmt_audience", default=None)


def audience() -> Audience:
    """Who listens here; the logger, if nobody else does."""
    return _AUDIENCE.get() or Audience(hear=_log, counts=LOGGER.isEnabledFor(logging.INFO))


def _log(text: str) -> None:
    """Warnings are warnings to a program too: Python shows those without being asked."""
    is_warning = text.startswith(WARNING)
    LOGGER.log(logging.WARNING if is_warning else logging.INFO, "%s", text.removeprefix(WARNING))


def say(text: str) -> None:
    """A line about the work, for whoever listens."""
    audience().hear(text)


def announce(text: str) -> None:
    """A line on standard error, whoever listens: errors, and how a command ended. A closed standard error stops no work."""
    with suppress(OSError):
        print(wrapped(printable(text)) if sys.stderr.isatty() else printable(text), file=sys.stderr, flush=True)


def wrapped(text: str) -> str:
    """Broken between words for the terminal; what is indented stays so."""
    width = shutil.get_terminal_size().columns
    lines = []
    for line in text.split("\n"):
        margin = " " * (len(line) - len(line.lstrip()))
        broken = textwrap.wrap(
            line, width, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
        )
        lines += broken if len(line) > width else [line]
    return "\n".join(lines)


@contextmanager
def _listening(who: Audience) -> Iterator[None]:
    before = _AUDIENCE.set(who)
    try:
        yield
    finally:
        _AUDIENCE.reset(before)


def on_standard_error() -> AbstractContextManager[None]:
    """Messages and progress go to standard error: how the command line listens."""
    return _listening(Audience(hear=announce, bars=True))


def heard_by(listener: Listener) -> AbstractContextManager[None]:
    """Messages inside go to `listener`, without counts of how far the work is."""
    return _listening(Audience(hear=listener, counts=False))


def silence() -> AbstractContextManager[None]:
    """Nobody hears messages inside."""
    return heard_by(lambda text: None)


def indented() -> AbstractContextManager[None]:
    """Messages inside are a part of something larger."""
    outer = audience()
    return _listening(replace(outer, hear=lambda text: outer.hear(f"   {text}")))


class Progress(Protocol):
    """What a long piece of work reports to."""

    def update(self, done: int, note: str = "") -> None:
        """`done` of the total is finished; `note` says what is worth knowing now."""

    def message(self, text: str) -> None:
        """A line that stays."""


class PlainProgress:
    """Lines for whoever listens, at most one every `seconds`."""

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
        audience().hear(text)


class SilentProgress:
    """For callers that want none."""

    def update(self, done: int, note: str = "") -> None:
        pass

    def message(self, text: str) -> None:
        pass


WIDE = 100
"""Columns of a terminal from which on there is room for a bar."""


class BarProgress:
    """A line that says what, how far, what is worth knowing now, and the time that is left; 80 columns are enough."""

    def __init__(self, title: str, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        console = Console(stderr=True)
        self.bar = RichProgress(
            TextColumn("{task.description}", markup=False),
            *([BarColumn(bar_width=16)] if console.width >= WIDE else []),  # on a narrow terminal figures say more
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
            transient=True,
        )
        self.task = self.bar.add_task(printable(title), total=total or None, note="")

    def update(self, done: int, note: str = "") -> None:
        said = note.rpartition(", ")[0] if note.endswith(" left") else note  # the bar has a time of its own
        self.bar.update(self.task, completed=done, note=printable(said))

    def message(self, text: str) -> None:
        self.bar.console.print(printable(text), highlight=False, markup=False)


@contextmanager
def progress(title: str, total: int) -> Iterator[Progress]:
    """The progress that fits who listens, and where standard error goes."""
    who = audience()
    if not who.counts:
        yield SilentProgress()
    elif who.bars and sys.stderr.isatty():
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
