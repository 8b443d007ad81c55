"""The folder of an augmentation that is not finished: chunks of lines that are translated, each a file of its own. Layer 5.

`work.json` says what the work is, LANGUAGE-NUMBER.json is a chunk that is done, written atomically and with a checksum.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graftmt.augmentation.line_choice import Plan
from graftmt.checked import read_checked_json, write_checked_json
from graftmt.configuration import changes, from_mapping
from graftmt.errors import ConfigError, DataError, GraftError
from graftmt.files import sweep
from graftmt.progress import say
from graftmt.training.checkpoints import CannotGoOn

WAY_OUT = "start over with --fresh, or write to another folder (-o)"


@dataclass(frozen=True)
class Chunk:
    """Some of the lines to be translated into one language."""

    language: str
    number: int
    lines: tuple[int, ...]
    """Where they stand in the corpus, from 0."""
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Translated:
    """A chunk that is done. A text is empty where there is no translation worth having."""

    language: str
    number: int
    lines: tuple[int, ...]
    texts: tuple[str, ...]
    unfinished: tuple[int, ...] = ()
    """Lines whose translation had no end: the model went round in circles."""
    too_long: tuple[int, ...] = ()
    """Lines that are too long for the teacher."""
    copies: tuple[int, ...] = ()
    """Lines whose translation is the text itself."""


@dataclass(frozen=True, kw_only=True)
class _StoredChunk:
    """What the file of a chunk holds; see `Translated`."""

    lines: tuple[int, ...]
    texts: tuple[str, ...]
    unfinished: tuple[int, ...] = ()
    too_long: tuple[int, ...] = ()
    copies: tuple[int, ...] = ()


@dataclass(frozen=True)
class Work:
    """The folder of chunks that are done; a message names what is damaged."""

    folder: Path

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Resumes the work in the folder, if it is the same; another's is refused, since its chunks would not fit."""
        path = self.folder / "work.json"
        if path.is_file():
            try:
                before = read_checked_json(path, "the work folder")
            except GraftError as error:
                raise CannotGoOn(
                    f"{str(error).rstrip('.')}. Restore {path.name} from a copy to finish that work", WAY_OUT
                ) from None
            if changed := differences(before, facts):
                raise CannotGoOn(
                    f"{self.folder} holds unfinished work that was begun otherwise: {'; '.join(changed)}. Give the command as "
                    "it was to finish that",
                    WAY_OUT,
                )
        else:
            write_checked_json(path, dict(facts))
        sweep(self.folder)

    def clear(self) -> None:
        """Forgets all that is done; needs the folder's lock, which stays."""
        for path in self.folder.iterdir():
            if path.name != ".lock":
                path.unlink()

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, language: str, number: int) -> Path:
        return self.folder / f"{language}-{number:06d}.json"

    def has(self, language: str, number: int, lines: Sequence[int]) -> bool:
        """Whether the chunk is there and whole; a damaged one is named, and made again."""
        if not os.path.lexists(self.path(language, number)):
            return False
        try:
            return self.read(language, number).lines == tuple(lines)
        except GraftError as error:
            say(f"{error} It is translated again.")
            return False

    def store(self, done: Translated) -> None:
        document = {
            "lines": done.lines,
            "texts": done.texts,
            **{name: value for name in ("unfinished", "too_long", "copies") if (value := getattr(done, name))},
        }
        # There may be a hundred thousand chunks, and what was left half written went when the work began.
        write_checked_json(self.path(done.language, done.number), document, tidy=False, indent=None)

    def read(self, language: str, number: int) -> Translated:
        path = self.path(language, number)
        try:
            stored = from_mapping(_StoredChunk, read_checked_json(path, "a translated chunk"))
        except ConfigError as error:
            raise DataError(f"a translated chunk: {path} is damaged ({str(error).rstrip('.')}).") from None
        known = set(stored.lines)
        if len(stored.lines) != len(stored.texts) or not known.issuperset(
            (*stored.unfinished, *stored.too_long, *stored.copies)
        ):
            raise DataError(f"a translated chunk: {path} is damaged (its lines and texts do not agree).")
        return Translated(language, number, stored.lines, stored.texts, stored.unfinished, stored.too_long, stored.copies)

    def results(self, plan: Plan, language: str, size: int) -> Iterator[Translated]:
        """All chunks of a language, in order."""
        for number in range(-(-int(plan.chosen[language].sum()) // size)):
            yield self.read(language, number)


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """`beam was 5, is 1`: what two descriptions do not have in common."""
    found = []
    for change in changes(before, json.loads(json.dumps(now))):
        if (file := change.key.removeprefix("text.")) != change.key:
            both = change.old and change.new
            found.append(f"{file} has changed" if both else f"{file} was {'added' if change.new else 'removed'}")
        else:
            found.append(f"{change.key.replace('.', ' ')} was {_short(change.old)}, is {_short(change.new)}")
    return found


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= 40 else f"{text[:16]}…"
