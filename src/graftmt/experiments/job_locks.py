"""Which process does what, where several work on one folder: a lock a job, and one for each text that jobs share. Layer 7.

OUTPUT/locks/NAME.lock is locked by the kernel, so what a killed process held is free. A process that does a job also locks
what that needs and is not there: base, packs, text. Where another has one of these, it does not wait with the job in its hands,
but gives it back (`Held`) and does something else first: so no two can wait for each other. It waits only for what takes
moments and needs nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graftmt.folders import claimed
from graftmt.progress import say


class Held(Exception):
    """Another process has it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class JobLocks:
    """What this process has locked, among those that work on one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mine: set[str] = set()

    @contextmanager
    def take(self, name: str, *, wait: bool = False) -> Iterator[None]:
        """Whoever has taken it looks again whether what it wants is there by now; raises `Held` unless it may `wait`."""
        if name in self._mine:
            yield
            return
        if wait and self.is_held(name):
            say(f"waiting for another process, which makes {name} …")
        with claimed(self._path(name), wait=wait) as free:
            if not free:
                raise Held(name)
            self._mine.add(name)
            try:
                yield
            finally:
                self._mine.discard(name)

    def is_held(self, name: str) -> bool:
        """By another process, now."""
        if name in self._mine or not self._path(name).is_file():
            return False
        with claimed(self._path(name)) as free:
            return not free

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.lock"
