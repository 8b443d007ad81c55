"""Translating the pivot's lines into other languages, in chunks that are files of their own and survive anything. Layer 5.

The work folder holds `work.json`, which says what the work is, and LANGUAGE-NUMBER.json for each chunk that is done, written
atomically. A chunk's lines and so its batches are fixed: its translations do not depend on when or where they are made.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from graftmt.augmentation.engines import Engine, map_chunks
from graftmt.augmentation.plan import Plan
from graftmt.base import Base, choose_device, read_base_document
from graftmt.data import Corpus
from graftmt.decoding import SearchOptions, batch_tokens_for
from graftmt.errors import DataError, GraftError, LanguageError, nearest
from graftmt.files import read_json, write_json, write_text
from graftmt.packs import load_pack
from graftmt.training.checkpoints import CannotGoOn
from graftmt.translator import LongLine, Request, Translator

WAY_OUT = "start over with --fresh, or write to another folder (-o)"


@dataclass(frozen=True, kw_only=True)
class Teacher:
    """Who translates: a base, with packs where it needs them. With Ray, its files are read on every machine."""

    base: Path
    packs: Mapping[str, Path] | Sequence[Path] = ()
    device: str = "cpu"
    dtype: str = "fp32"

    def load(self) -> Translator:
        return Translator(self.base.absolute(), self.packs, device=choose_device(self.device), dtype=self.dtype)

    def facts(self) -> dict[str, Any]:
        """What its translations depend on."""
        named = self.packs.items() if isinstance(self.packs, Mapping) else [(str(path), path) for path in self.packs]
        packs = {name: load_pack(path).fingerprint for name, path in named}
        return {"fingerprint": read_base_document(self.base)["fingerprint"], "packs": packs, "dtype": self.dtype}

    def check(self, source: str, targets: Sequence[str]) -> None:
        """It has to read the pivot and to write all the others; said now rather than by a worker in an hour."""
        known = list(read_base_document(self.base)["languages"])
        packs = [load_pack(path) for path in (self.packs.values() if isinstance(self.packs, Mapping) else self.packs)]
        for side, wanted in (("source", [source]), ("target", targets)):
            here = [*known, *(language for pack in packs if pack.side == side for language in pack.languages)]
            for language in wanted:
                if language not in here:
                    verb = "read" if side == "source" else "write"
                    raise LanguageError(
                        f"the teacher {self.base} cannot {verb} {language!r}{nearest(language, here) or '.'} It knows: "
                        f"{', '.join(here)}. Take another --teacher, add --packs, or name the --languages to augment with."
                    )


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


class BackTranslator:
    """Chunk → Translated. The teacher is loaded at the first chunk, once in each process that has one of these."""

    def __init__(self, teacher: Teacher, source: str, options: SearchOptions, resident: Base | None = None) -> None:
        self.teacher, self.source, self.options = teacher, source, options
        if resident is not None:
            self.translator = Translator(resident, teacher.packs)

    def __getstate__(self) -> dict[str, Any]:
        """For other machines: without the model, which each loads itself."""
        return {name: value for name, value in self.__dict__.items() if name != "translator"}

    @cached_property
    def translator(self) -> Translator:
        return self.teacher.load()

    def __call__(self, chunk: Chunk) -> Translated:
        texts, too_long = list(chunk.texts), []
        while True:
            try:
                found = self.translator.translate_requests(
                    [Request(text, self.source, chunk.language) for text in texts], self.options
                )
                break
            except LongLine as error:
                too_long.append(chunk.lines[error.index])
                texts[error.index] = ""
        best = [translations[0] for translations in found]
        unfinished = tuple(line for line, one in zip(chunk.lines, best, strict=True) if not one.finished)
        kept = tuple(one.text if one.finished else "" for one in best)
        copies = tuple(line for line, text, source in zip(chunk.lines, kept, chunk.texts, strict=True) if is_copy(text, source))
        return Translated(chunk.language, chunk.number, chunk.lines, kept, unfinished, tuple(too_long), copies)


def is_copy(text: str, source: str) -> bool:
    """Whether a translation says the same in the same letters; figures alone are right to be copied."""
    return text.casefold() == " ".join(source.split()).casefold() and any(map(str.isalpha, text))


@dataclass(frozen=True)
class Work:
    """The folder of chunks that are done."""

    folder: Path

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Goes on with the work that is there, where it is the same; another's is refused, since its chunks would not fit."""
        path = self.folder / "work.json"
        if path.is_file():
            before = read_json(path, "the work folder")
            if changed := differences(before, facts):
                raise CannotGoOn(
                    f"{self.folder} holds unfinished work that was begun otherwise: {'; '.join(changed)}. Give the command as "
                    "it was to finish that",
                    WAY_OUT,
                )
        else:
            write_json(path, facts)
        for left in self.folder.glob(".*.tmp"):  # of a process that was killed while it wrote
            left.unlink(missing_ok=True)

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
        """Whether the chunk is there and whole; a damaged one is made again."""
        with suppress(GraftError):
            return self.path(language, number).is_file() and self.read(language, number).lines == tuple(lines)
        return False

    def store(self, done: Translated) -> None:
        document = {
            "lines": done.lines,
            "texts": done.texts,
            **{name: value for name in ("unfinished", "too_long", "copies") if (value := getattr(done, name))},
        }
        text = json.dumps(document, ensure_ascii=False) + "\n"
        # There may be a hundred thousand chunks, and what was left half written went when the work began.
        write_text(self.path(done.language, done.number), text, tidy=False)

    def read(self, language: str, number: int) -> Translated:
        path = self.path(language, number)
        document = read_json(path, "a translated chunk")
        names = ("lines", "texts", "unfinished", "too_long", "copies")
        values = [document.get(name, ()) for name in names]
        if not all(isinstance(value, list | tuple) for value in values) or len(values[0]) != len(values[1]):
            raise DataError(f"{path} is damaged; delete it, and the same command makes it again.")
        return Translated(language, number, *map(tuple, values))

    def results(self, plan: Plan, language: str, size: int) -> Iterator[Translated]:
        """All chunks of a language, in order."""
        for number in range(-(-int(plan.chosen[language].sum()) // size)):
            yield self.read(language, number)


def differences(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """`beam was 5, is 1`: what two descriptions do not have in common."""
    found = []
    for key in dict.fromkeys((*before, *now)):
        old, new = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            found += differences(old, new, f"{prefix}{key} ")
        elif old != json.loads(json.dumps(new)):
            if prefix == "text ":
                found.append(f"{key} has changed" if old and new else f"{key} was {'added' if new else 'removed'}")
            else:
                found.append(f"{prefix}{key} was {_short(old)}, is {_short(new)}")
    return found


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= 40 else f"{text[:16]}…"


def missing_chunks(
    plan: Plan, corpus: Corpus, work: Work, size: int, hear: Callable[[int], None] = lambda lines: None
) -> Iterator[Chunk]:
    """What is left to translate, read from the corpus as it is asked for; `hear` is told of lines that are done already."""
    for language in plan.languages:
        lines = plan.lines(language)
        cut = {number: lines[start : start + size] for number, start in enumerate(range(0, len(lines), size))}
        missing = {number: part for number, part in cut.items() if not work.has(language, number, part.tolist())}
        hear(len(lines) - sum(map(len, missing.values())))
        texts = enumerate(corpus.lines(plan.pivot)) if missing else iter(())
        for number, part in missing.items():
            wanted = iter(part.tolist())
            sought, found = next(wanted, None), []
            for line, text in texts:
                if line == sought:
                    found.append(" ".join(text.split()))
                    sought = next(wanted, None)
                    if sought is None:
                        break
            yield Chunk(language, number, tuple(part.tolist()), tuple(found))


def back_translate(
    chunks: Iterator[Chunk] | Sequence[Chunk],
    translate: Callable[[Chunk], Translated],
    work: Work,
    engine: Engine,
    hear: Callable[[int], None] = lambda lines: None,
) -> None:
    """Translates chunks and stores each as soon as it is done."""
    for done in map_chunks(translate, chunks, engine):
        work.store(done)
        hear(len(done.lines))


def search_options(device: str, *, beam: int, batch_tokens: int = 0) -> SearchOptions:
    kind = device if device.startswith("cuda") else "cpu"
    return SearchOptions(beam=beam, batch_tokens=batch_tokens or batch_tokens_for(kind))
