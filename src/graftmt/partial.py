"""A file that grows piece by piece, survives any kill, and takes its name when it is whole. Layer 0.

NAME.partial holds what there is so far. NAME.work.json says what the work is and how much of it is done; it stays, so that the
same work is not done twice. A piece is appended first and stated afterwards; what a kill leaves beyond the stated length is cut
off by the next process.
"""

from __future__ import annotations

import fcntl
import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graftmt.configuration import differences, from_mapping, to_mapping
from graftmt.errors import GraftError
from graftmt.files import read_json, write_json


@dataclass(frozen=True, kw_only=True)
class Position:
    """How far the work is."""

    lines: int = 0
    """Of the input, that are done."""
    read: int = 0
    """Bytes of the input that they take, uncompressed."""
    written: int = 0
    """Bytes that they gave."""
    skipped: int = 0
    """Lines that could not be used, and gave an empty one."""
    finished: bool = False
    replaces: bool = False
    """A file that has the name already is to be replaced: that was asked for when the work began."""


class PartialFile:
    """The file `path` on its way; the process that has begun it has it alone."""

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        """`facts`, in plain JSON: all that the content depends on. Work that was begun with others is refused."""
        self.path, self.facts = path, dict(facts)
        self.partial, self.state = (path.with_name(path.name + ending) for ending in (".partial", ".work.json"))

    @contextmanager
    def begin(self, *, fresh: bool = False) -> Iterator[Position]:
        """Where to go on; `fresh` forgets what there is. Unless it is `finished`, `append` each piece, then `finish`."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.partial.open("ab", buffering=0) as self.handle:
            self._lock()
            for left in self.path.parent.glob(f".{glob.escape(self.state.name)}.*.tmp"):  # by a process killed as it wrote
                left.unlink(missing_ok=True)
            try:
                position = self._position(fresh)
                if not self._is_named(position):
                    self.handle.truncate(position.written)
                    if position.finished:  # of a process that was killed before the last step
                        os.replace(self.partial, self.path)
                yield position
            finally:
                if self._has_its_name() and self._size() == 0:
                    self.partial.unlink()

    def append(self, piece: bytes, position: Position) -> Position:
        """One more piece, after which the work is at `position`; returns that with the new length."""
        rest = memoryview(piece)
        try:
            while rest:
                rest = rest[self.handle.write(rest) :]
            os.fsync(self.handle.fileno())
        except OSError as error:
            raise GraftError(
                f"could not write {self.partial}: {error.strerror or error}. What was done before is kept: free some space, "
                "and the same command goes on from there."
            ) from error
        return self._write(replace(position, written=position.written + len(piece)))

    def finish(self, position: Position) -> None:
        """The file gets its name."""
        self._write(replace(position, finished=True))
        os.replace(self.partial, self.path)

    def _lock(self) -> None:
        """On the file itself: it goes with the process. One that has just taken its final name is no longer ours to write."""
        with suppress(BlockingIOError):
            fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._has_its_name():
                return
        raise GraftError(f"{self.partial} is in use by another process; wait for it, or write to another file.")

    def _has_its_name(self) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self.handle.fileno()), self.partial.stat())
        return False

    def _size(self) -> int:
        return os.fstat(self.handle.fileno()).st_size

    def _is_named(self, position: Position) -> bool:
        """Whether the work is finished to the last step, and the partial file that was opened is an empty new one."""
        return position.finished and self._size() == 0 and self.path.exists()

    def _position(self, fresh: bool) -> Position:
        stored = read_json(self.state, "the work") if self.state.is_file() and not fresh else None
        if stored is not None:
            position = from_mapping(Position, stored.get("position") or {}, f"{self.state}: position")
            changed = differences(stored.get("work"), self.facts)
            if not position.finished or self._size():
                return self._resumed(position, changed)
            if self.path.exists():
                return self._made_before(position, changed)
            return self._write(Position())  # what was made is gone: it is wanted again
        if fresh:
            # Stated before it is done: a kill in between leaves bytes beyond the stated length, as any other.
            return self._write(Position(replaces=self.path.exists()))
        if self._size():
            raise GraftError(
                f"{self.partial} is there without {self.state.name}, which says what it is. Remove it, write to another file, "
                "or start over with --fresh."
            )
        if self.path.exists():
            raise GraftError(f"{self.path} is there already. Write to another file, or replace it with --fresh.")
        return self._write(Position())

    def _resumed(self, position: Position, changed: Sequence[str]) -> Position:
        if changed:
            raise GraftError(
                f"{self.partial} was begun otherwise: {'; '.join(changed)}. Give the command as it was to finish that, start "
                "over with --fresh, or write to another file."
            )
        if self._size() < position.written:
            raise GraftError(
                f"{self.partial} has {self._size():,} bytes where {self.state.name} says {position.written:,}: it was changed "
                "or damaged. Start over with --fresh."
            )
        if self.path.exists() and not position.replaces:
            raise GraftError(
                f"{self.path} came into being while {self.partial.name} was unfinished. Move it away and give the same command "
                "again, or start over and replace it with --fresh."
            )
        return position

    def _made_before(self, position: Position, changed: Sequence[str]) -> Position:
        if self.path.stat().st_size != position.written:
            changed = [f"its size: {position.written:,} then, {self.path.stat().st_size:,} now", *changed]
        if changed:
            raise GraftError(
                f"{self.path} is there already, and was made otherwise: {'; '.join(changed)}. Write to another file, or "
                "replace it with --fresh."
            )
        return position

    def _write(self, position: Position) -> Position:
        write_json(self.state, {"work": self.facts, "position": to_mapping(position)})
        return position
