"""Translating the pivot's lines into other languages, in chunks that are kept as they are done (`chunks.py`). Layer 5.

A chunk's lines and so its batches are fixed: its translations do not depend on when or where they are made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heapreplace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftmt.augmentation.chunk_workers import ChunkEngine, map_chunks
from graftmt.augmentation.chunks import Chunk, Translated, Work
from graftmt.augmentation.line_choice import Plan
from graftmt.base import Base, read_base_document, read_base_text
from graftmt.data import Corpus
from graftmt.decoding import SearchOptions, batch_tokens_for
from graftmt.devices import choose_device
from graftmt.engines import Engine
from graftmt.errors import LanguageError, nearest
from graftmt.packs import Side, load_pack
from graftmt.text import languages_of
from graftmt.translation_requests import LongLine, Request
from graftmt.translator import Translator

LINES_TOGETHER = 4096
WITH_OTHERS = "Take another --teacher, add --packs, or name the --languages to augment with."


@dataclass(frozen=True, kw_only=True)
class Teacher:
    """Who translates: a base, with packs where it needs them. With Ray, its files are read on every machine."""

    base: Path
    packs: Mapping[str, Path] | Sequence[Path] = ()
    device: str = "cpu"
    dtype: str = "fp32"
    search: Engine | None = None
    """What searches for translations, where it is not graftmt itself."""

    def load(self) -> Translator:
        device, dtype = choose_device(self.device), self.dtype if self.search is None else "fp32"
        return Translator(self.base.absolute(), self.packs, device=device, dtype=dtype, engine=self.search)

    def facts(self) -> dict[str, Any]:
        """What its translations depend on."""
        named = self.packs.items() if isinstance(self.packs, Mapping) else [(str(path), path) for path in self.packs]
        packs = {name: load_pack(path).fingerprint for name, path in named}
        return {
            "fingerprint": read_base_document(self.base)["fingerprint"],
            "packs": packs,
            "dtype": self.dtype if self.search is None else self.search.how,
        }

    def check(self, source: str, targets: Sequence[str], way_out: str = WITH_OTHERS) -> None:
        """It has to read the pivot and to write all the others; said now rather than by a worker in an hour."""
        text = read_base_text(self.base)
        packs = [load_pack(path) for path in (self.packs.values() if isinstance(self.packs, Mapping) else self.packs)]
        asked: tuple[tuple[Side, Sequence[str]], ...] = (("source", [source]), ("target", targets))
        for side, wanted in asked:
            here = [
                *languages_of(text, side),
                *(language for pack in packs if pack.side == side for language in pack.languages),
            ]
            for language in wanted:
                if language not in here:
                    verb = "read" if side == "source" else "write"
                    raise LanguageError(
                        f"the teacher {self.base} cannot {verb} {language!r}{nearest(language, here) or '.'} It {verb}s: "
                        f"{', '.join(here)}. {way_out}"
                    )


class BackTranslator:
    """Chunks → Translated. The teacher is loaded at the first chunk, once in each process that has one of these."""

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

    def __call__(self, chunks: Sequence[Chunk]) -> list[Translated]:
        """Chunks of several languages are translated in the same batches."""
        requests = [Request(text, self.source, chunk.language) for chunk in chunks for text in chunk.texts]
        too_long: set[int] = set()
        while True:
            try:
                found = iter(self.translator.translate_requests(requests, self.options))
                break
            except LongLine as error:
                too_long.add(error.index)
                requests[error.index] = requests[error.index]._replace(line="")
        done, first = [], 0
        for chunk in chunks:
            best = [next(found)[0] for _ in chunk.lines]
            unfinished = tuple(line for line, one in zip(chunk.lines, best, strict=True) if not one.finished)
            kept = tuple(one.text if one.finished else "" for one in best)
            pairs = zip(chunk.lines, kept, chunk.texts, strict=True)
            copies = tuple(line for line, text, source in pairs if is_copy(text, source))
            without = tuple(line for index, line in enumerate(chunk.lines, first) if index in too_long)
            done.append(Translated(chunk.language, chunk.number, chunk.lines, kept, unfinished, without, copies))
            first += len(chunk.lines)
        return done


def is_copy(text: str, source: str) -> bool:
    """Whether a translation says the same in the same letters; figures alone are right to be copied."""
    return text.casefold() == " ".join(source.split()).casefold() and any(map(str.isalpha, text))


@dataclass(frozen=True)
class _Part:
    """What becomes a chunk when its lines are read."""

    language: str
    number: int
    lines: NDArray[np.int64]


def missing_chunks(
    plan: Plan,
    corpus: Corpus,
    work: Work,
    size: int,
    hear: Callable[[int], None] = lambda lines: None,
    *,
    together: int = 0,
) -> Iterator[list[Chunk]]:
    """What is left to translate, read from the corpus in one pass as it is asked for; `hear` is told of lines that are done.

    Chunks come several at a time, up to `together` lines, always the same ones, whatever is done of them: what is translated
    in one batch may differ by a rounding from what is translated in another.
    """
    groups = _groups(plan, size, together)
    done = {id(group): all(work.has(part.language, part.number, part.lines.tolist()) for part in group) for group in groups}
    hear(sum(len(part.lines) for group in groups if done[id(group)] for part in group))
    missing = [group for group in groups if not done[id(group)]]
    read = _read_parts([part for group in missing for part in group], corpus.lines(plan.pivot))
    for group in missing:
        yield list(islice(read, len(group)))


def _groups(plan: Plan, size: int, together: int) -> list[list[_Part]]:
    """All chunks there are, in the order in which one pass over the corpus has read them."""
    parts = [
        _Part(language, number, lines[start : start + size])
        for language, lines in ((language, plan.lines(language)) for language in plan.languages)
        for number, start in enumerate(range(0, len(lines), size))
    ]
    parts.sort(key=lambda part: int(part.lines[-1]))
    groups: list[list[_Part]] = []
    room = 0
    for part in parts:
        if len(part.lines) > room:
            groups.append([])
            room = max(together, len(part.lines))
        groups[-1].append(part)
        room -= len(part.lines)
    return groups


def _read_parts(parts: Sequence[_Part], texts: Iterable[str]) -> Iterator[Chunk]:
    """Of parts in the order of their last lines; a language's next part begins where the one before has ended."""
    waiting: dict[str, deque[_Part]] = {}
    for part in parts:
        waiting.setdefault(part.language, deque()).append(part)
    held: dict[str, list[str]] = {language: [] for language in waiting}
    whole: dict[tuple[str, int], tuple[str, ...]] = {}
    sought = [(int(queue[0].lines[0]), language) for language, queue in waiting.items()]
    heapify(sought)
    numbered = enumerate(texts) if parts else iter(())
    for due in parts:
        while (due.language, due.number) not in whole:
            line, text = next(numbered)
            while sought and sought[0][0] == line:
                language = sought[0][1]
                part, found = waiting[language][0], held[language]
                found.append(" ".join(text.split()))
                if len(found) == len(part.lines):
                    whole[language, part.number] = tuple(found)
                    found.clear()
                    waiting[language].popleft()
                if waiting[language]:
                    heapreplace(sought, (int(waiting[language][0].lines[len(found)]), language))
                else:
                    heappop(sought)
        yield Chunk(due.language, due.number, tuple(due.lines.tolist()), whole.pop((due.language, due.number)))


def back_translate(
    groups: Iterable[Sequence[Chunk]],
    translate: Callable[[Sequence[Chunk]], list[Translated]],
    work: Work,
    engine: ChunkEngine,
    hear: Callable[[int], None] = lambda lines: None,
) -> None:
    """Translates chunks and stores each as soon as it is done."""
    for group in map_chunks(translate, groups, engine):
        for done in group:
            work.store(done)
        hear(sum(len(done.lines) for done in group))


def lines_together(device: str, engine: ChunkEngine) -> int:
    """Lines of different chunks that a GPU translates in the same batches; a chunk of a few languages alone leaves it idle."""
    return LINES_TOGETHER if engine.name == "local" and device.startswith("cuda") else 0


def search_options(device: str, *, beam: int, batch_tokens: int = 0) -> SearchOptions:
    kind = device if device.startswith("cuda") else "cpu"
    return SearchOptions(beam=beam, batch_tokens=batch_tokens or batch_tokens_for(kind))
