"""SIGKILL at the n-th file operation of a command, the way a crash or the kernel would: nothing of Python runs after it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from robustness.isolation import run_isolated

EVENTS = {
    "open",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.mkdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "os.listdir",
    "os.scandir",
}
"""Audit events of operations on files; Python announces each before it does it."""


def kill_at(action: Callable[[], None], folder: Path, number: int) -> Callable[[], None]:
    """The action, killed just before its operation `number` (from 1) on something below `folder`, or on a file's bytes."""

    def reached(count: int) -> None:
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return _watched(action, folder, reached)


def operations_in(action: Callable[[], None], folder: Path, environment: Mapping[str, str]) -> int:
    """How many operations there are when nothing disturbs it; it runs beside `folder`."""
    reading, writing = os.pipe()
    counts: list[int] = [0]

    def counting() -> None:
        try:
            _watched(action, folder, lambda count: counts.__setitem__(0, count))()
        finally:
            os.write(writing, str(counts[0]).encode())

    outcome = run_isolated(counting, environment=environment, folder=folder.parent)
    os.close(writing)
    with os.fdopen(reading, "rb") as handle:
        total = int(handle.read() or b"0")
    assert outcome.code == 0 and total, outcome
    return total


def _watched(action: Callable[[], None], folder: Path, reached: Callable[[int], None]) -> Callable[[], None]:
    below = str(folder)

    def run() -> None:
        count = 0

        def happened() -> None:
            nonlocal count
            count += 1
            reached(count)

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            named = event in EVENTS and arguments and isinstance(arguments[0], str | bytes | os.PathLike)
            if named and os.path.abspath(os.fsdecode(arguments[0])).startswith(below):
                happened()

        plain = os.fsync

        def fsync(handle: Any) -> None:
            happened()
            plain(handle)

        os.fsync = fsync
        sys.addaudithook(hook)
        action()

    return run
