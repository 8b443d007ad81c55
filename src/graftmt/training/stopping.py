"""Asking a run to stop: by a signal or by the clock, heard between updates. Layer 4."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn


class Stopped(Exception):
    """The run was asked to stop and has saved itself; `reason` is for the person, `exit_code` for the shell."""

    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__(reason)
        self.reason, self.exit_code = reason, exit_code
        self.standing: dict[str, Any] = {}
        """Where the run stands, for scripts; filled in by who started it."""


@dataclass
class StopRequest:
    """Set by a signal or the clock, read between updates."""

    deadline: float | None = None
    signal_number: int | None = None

    @property
    def asked(self) -> bool:
        return self.signal_number is not None or (self.deadline is not None and time.monotonic() >= self.deadline)

    def stop(self) -> NoReturn:
        """Called when this process, or another one of the run, was asked to."""
        if self.signal_number is not None:
            name = signal.Signals(self.signal_number).name
            raise Stopped(f"stopped by {name}", 128 + self.signal_number)
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise Stopped("the time given with --minutes is over", 0)
        raise Stopped("another process of the run was asked to stop", 0)


@contextmanager
def stop_on_signals(minutes: float | None = None) -> Iterator[StopRequest]:
    """SIGINT and SIGTERM ask for a stop after the update in progress; a second one stops at once, without saving."""
    request = StopRequest(deadline=time.monotonic() + 60 * minutes if minutes is not None else None)
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def ask(number: int, frame: Any) -> None:
        if request.signal_number is not None:
            raise KeyboardInterrupt
        request.signal_number = number

    previous = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
