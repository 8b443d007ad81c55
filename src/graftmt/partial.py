"""A file that grows piece by piece, survives any kill, and takes its name when it is whole. Layer 0.

NAME.partial holds what there is so far. NAME.work.json says what the work is and how much of it is done; it stays, so that the
same work is not done twice. A piece is appended first and stated afterwards; what a kill leaves beyond the stated length is cut
off by the next process, and what does not have its checksum is made again.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Any

from graftmt.checked import BLOCK, as_text, file_checksum, read_checked_json, write_checked_json
from graftmt.configuration import check_numbers, differences, from_mapping, to_mapping, zero_or_more
from graftmt.errors import GraftError
from graftmt.files import open_regular, remove_left
from graftmt.folders import could_not_write, lock, make_folder, place_of


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
    pieces: int = 0
    """That these bytes were written in."""
    checksum: str | None = None
    """Of these bytes; what earlier versions began has none."""
    finished: bool = False
    replaces: bool = False
    """A file that has the name already is to be replaced: that was asked for when the work began."""

    def __post_init__(self) -> None:
        check_numbers(self, "at least 0", zero_or_more, "lines", "read", "written", "skipped", "pieces")


@dataclass(frozen=True, kw_only=True)
class Stored:
    """What NAME.work.json holds."""

    work: dict[str, Any]
    position: Position
    marks: tuple[Position, ...] = ()
    """Earlier positions, evenly spread: where to resume if what comes after is damaged."""


MARKS = 64
"""At most N are kept: damage costs one part in 32 of the work, or less."""


def spread(marks: Sequence[Position]) -> list[Position]:
    """Some of the marks, as far apart as it takes for there to be few."""
    step = 1
    while marks and marks[-1].pieces > MARKS * step:
        step *= 2
    return [mark for mark in marks if mark.pieces % step == 0]


class PartialFile:
    """The file `path` on its way; the process that has begun it has it alone."""

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        """`facts`, in plain JSON: all that the content depends on. Work that was begun with others is refused."""
        self.path, self.facts = path, dict(facts)
        self.partial, self.state = (path.with_name(path.name + ending) for ending in (".partial", ".work.json"))
        self.marks: list[Position] = []
        self.checksum = 0
        self.note = ""
        """What was found damaged when the work began, and is made again."""

    @contextmanager
    def begin(self, *, fresh: bool = False) -> Iterator[Position]:
        """Where to resume; `fresh` forgets what there is. Unless it is `finished`, `append` each piece, then `finish`."""
        make_folder(self.path.parent)
        for path in (self.path, self.partial, self.state):
            place_of(path)  # which refuses what may not be replaced
        with self._opened() as self.handle:
            self._lock()
            remove_left(self.state)
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

    def _opened(self) -> FileIO:
        if os.path.lexists(self.partial) and (self.partial.is_symlink() or not self.partial.is_file()):
            raise GraftError(f"{self.partial} is no plain file, and unfinished work goes there; remove it.")
        try:
            return FileIO(self.partial, "ab")
        except OSError as error:
            raise could_not_write(self.partial, error) from error

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
                "and rerun the command to resume."
            ) from error
        self._check_name()
        self.checksum = zlib.crc32(piece, self.checksum)
        position = replace(
            position,
            written=position.written + len(piece),
            pieces=position.pieces + 1,
            checksum=as_text(self.checksum),
        )
        self.marks = spread([*self.marks, position])
        return self._write(position)

    def finish(self, position: Position) -> None:
        """The file gets its name."""
        self._check_name()
        self._write(replace(position, finished=True))
        os.replace(self.partial, self.path)

    def _lock(self) -> None:
        """On the file itself: it goes with the process. One that has just taken its final name is no longer ours to write."""
        with suppress(BlockingIOError):
            lock(self.handle)
            if self._has_its_name():
                return
        raise GraftError(f"{self.partial} is in use by another process; wait for it, or write to another file.")

    def _check_name(self) -> None:
        if not self._has_its_name():
            raise GraftError(
                f"{self.partial} was removed or replaced while it was being written. Run the same command again to start over."
            )

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
        if os.path.lexists(self.state) and not fresh:
            stored = self._stored()
            position, changed = stored.position, differences(stored.work, self.facts)
            if not position.finished or self._size():
                return self._resumed(stored, changed)
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

    def _stored(self) -> Stored:
        try:
            return from_mapping(Stored, read_checked_json(self.state, "the work"))
        except GraftError as error:
            raise GraftError(
                f"{self.state}, which says how far {self.partial.name} is, is damaged ({str(error).rstrip('.')}). Start over "
                "with --fresh, or write to another file."
            ) from None

    def _resumed(self, stored: Stored, changed: Sequence[str]) -> Position:
        position = stored.position
        if changed:
            raise GraftError(
                f"{self.partial} was begun otherwise: {'; '.join(changed)}. Give the command as it was to finish that, start "
                "over with --fresh, or write to another file."
            )
        if self._size() < position.written and position.checksum is None:
            raise GraftError(
                f"{self.partial} has {self._size():,} bytes where {self.state.name} says {position.written:,}: it was changed "
                "or damaged. Start over with --fresh."
            )
        if self.path.exists() and not position.replaces:
            raise GraftError(
                f"{self.path} came into being while {self.partial.name} was unfinished. Move it away and give the same command "
                "again, or start over and replace it with --fresh."
            )
        return self._sound(stored)

    def _sound(self, stored: Stored) -> Position:
        """The last position up to which all bytes are as they were written."""
        sound, read, checksum = Position(replaces=stored.position.replaces), 0, 0
        with open_regular(self.partial) as handle:
            for mark in sorted((*stored.marks, stored.position), key=lambda mark: mark.written):
                while read < mark.written and (block := handle.read(min(BLOCK, mark.written - read))):
                    read, checksum = read + len(block), zlib.crc32(block, checksum)
                if read < mark.written or mark.checksum not in (None, as_text(checksum)):
                    self.note = (
                        f"{self.partial} is damaged somewhere after line {sound.lines:,}: what comes after that is made again"
                    )
                    return sound
                sound, self.checksum = mark, checksum
                self.marks = spread([*self.marks, mark]) if mark is not stored.position else self.marks
        return sound

    def _made_before(self, position: Position, changed: Sequence[str]) -> Position:
        size = self.path.stat().st_size
        if size != position.written:
            changed = [f"its size: {position.written:,} then, {size:,} now", *changed]
        elif position.checksum not in (None, file_checksum(self.path)):
            changed = ["its content, which was edited or damaged since", *changed]
        if changed:
            raise GraftError(
                f"{self.path} is there already, and was made otherwise: {'; '.join(changed)}. Write to another file, or "
                "replace it with --fresh."
            )
        return position

    def _write(self, position: Position) -> Position:
        marks = [to_mapping(mark) for mark in self.marks if mark.pieces < position.pieces]
        write_checked_json(self.state, {"work": self.facts, "position": to_mapping(position), "marks": marks})
        return position
