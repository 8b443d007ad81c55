"""The façade: load a base, translate lines, score directions. Layer 4."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from graftmt.base import Base
from graftmt.data import Corpus, Direction
from graftmt.decoding import SearchOptions, search_all
from graftmt.errors import DataError, LanguageError
from graftmt.evaluation import DirectionScores, score_direction

LONGEST_SOURCE = 1024
"""Tokens. Far more than a sentence; a longer line is refused rather than translated badly."""

OnBatch = Callable[[int], None]
"""Hears how many lines are done."""


class LongLine(DataError):
    """A line that is too long to translate, number `index` (from 0) of those given."""

    def __init__(self, index: int, characters: int, tokens: int, where: str = "") -> None:
        super().__init__(
            f"{where or f'line {index + 1}'} has {characters:,} characters ({tokens:,} tokens); at most {LONGEST_SOURCE:,} "
            "tokens can be translated as one. Split it into sentences, one a line."
        )
        self.index, self.characters, self.tokens = index, characters, tokens

    def at(self, where: str) -> LongLine:
        """The same, for a caller who knows a better name for the line than its number here."""
        return LongLine(self.index, self.characters, self.tokens, where)


class Request(NamedTuple):
    """One line to translate, and from what into what."""

    line: str
    source: str
    target: str


@dataclass(frozen=True)
class Translation:
    """One way to translate a line."""

    text: str
    score: float
    finished: bool
    """False where the maximum length cut it off."""


@dataclass(frozen=True)
class Evaluation:
    """The scores of one direction, and the lines they come from."""

    scores: DirectionScores
    sources: list[str]
    hypotheses: list[str]
    references: list[str]


class Translator:
    """Translates between the languages of a base.

    >>> Translator("runs/demo/base").translate(["5 kilometers"], source="en", target="fr")
    ['5 kilomètres']
    """

    def __init__(self, base: Base | str | Path, *, device: str = "cpu", dtype: str = "fp32") -> None:
        self.base = base if isinstance(base, Base) else Base.load(base, device=device, dtype=dtype)

    @property
    def languages(self) -> tuple[str, ...]:
        return self.base.languages

    def translate(
        self,
        lines: Sequence[str],
        *,
        source: str,
        target: str,
        options: SearchOptions | None = None,
        on_batch: OnBatch | None = None,
    ) -> list[str]:
        """One translation for each line, in order; an empty line gives an empty one."""
        if isinstance(lines, str):
            raise DataError("translate takes a list of lines; got one string. Wrap it: [text].")
        self.check_direction(source, target)
        found = self.translate_requests([Request(line, source, target) for line in lines], options, on_batch)
        return [translations[0].text for translations in found]

    def check_direction(self, source: str, target: str) -> None:
        """Both languages must be known, also the one whose code is not written."""
        for language in (source, target):
            self.base.tokenizer.vocabulary.code(language)
        if source == target:
            raise LanguageError(f"source and target are both {source!r}; there is nothing to translate.")

    def translate_requests(
        self, requests: Sequence[Request], options: SearchOptions | None = None, on_batch: OnBatch | None = None
    ) -> list[list[Translation]]:
        """The `options.n_best` best translations of each request, best first; directions mix freely."""
        tokenizer = self.base.tokenizer
        end = tokenizer.vocabulary.end_id
        encoded = [tokenizer.encode(request.line) for request in requests]
        for index, tokens in enumerate(encoded):
            if len(tokens) > LONGEST_SOURCE:
                raise LongLine(index, len(requests[index].line), len(tokens))
        rows = [row for row, tokens in enumerate(encoded) if tokens]
        found = search_all(
            self.base.model,
            [[*tokenizer.source_prefix(requests[row].source, requests[row].target), *encoded[row], end] for row in rows],
            [tokenizer.decoder_prefix(requests[row].target) for row in rows],
            options or SearchOptions(),
            end=end,
            forbidden=tokenizer.forbidden,
            on_batch=on_batch,
        )
        results = [[Translation("", 0.0, True)] for _ in requests]
        for row, hypotheses in zip(rows, found, strict=True):
            results[row] = [Translation(self._text(h.tokens), h.score, h.finished) for h in hypotheses]
        return results

    def _text(self, tokens: list[int]) -> str:
        """Bytes can spell any character, also a line break: whitespace is normalised so that a line stays a line."""
        return " ".join(self.base.tokenizer.decode(tokens).split())

    def evaluate(
        self,
        corpus: Corpus,
        directions: Sequence[Direction],
        *,
        lines: int | None = None,
        options: SearchOptions | None = None,
        tokenize: str | None = None,
        on_batch: OnBatch | None = None,
    ) -> list[Evaluation]:
        """BLEU and chrF of each direction on the first `lines` lines of a split that have text on both sides."""
        texts = corpus.texts(sorted({language for direction in directions for language in direction}), lines)
        numbered = {
            direction: [
                (number, *pair)
                for number, pair in enumerate(zip(texts[direction.source], texts[direction.target], strict=True), 1)
                if all(map(str.strip, pair))
            ]
            for direction in directions
        }
        pairs = {direction: [(source, target) for _, source, target in found] for direction, found in numbered.items()}
        for direction, found in pairs.items():
            self.check_direction(*direction)
            if not found:
                raise DataError(
                    f"the {corpus.split!r} split in {corpus.folder} has no line with text on both sides of {direction}."
                )
        requests = [Request(source, *direction) for direction, found in pairs.items() for source, _ in found]
        try:
            outputs = iter(self.translate_requests(requests, options, on_batch))
        except LongLine as error:
            number = [number for found in numbered.values() for number, _, _ in found][error.index]
            where = f"line {number} of the {requests[error.index].source!r} text of {corpus.split!r} in {corpus.folder}"
            raise error.at(where) from None
        texts_of = [
            ([source for source, _ in found], [next(outputs)[0].text for _ in found], [reference for _, reference in found])
            for found in pairs.values()
        ]
        jobs = [(hypotheses, references, *d, tokenize) for d, (_, hypotheses, references) in zip(pairs, texts_of, strict=True)]
        return [Evaluation(scores, *texts) for scores, texts in zip(score_all(jobs), texts_of, strict=True)]


Job = tuple[list[str], list[str], str, str, str | None]
"""Hypotheses, references, source, target, BLEU's tokeniser."""


def score_all(jobs: Sequence[Job]) -> list[DirectionScores]:
    """Many directions on all cores: chrF of a direction takes longer than its translation on a GPU."""
    if sum(len(job[0]) for job in jobs) < 20_000 or (os.cpu_count() or 1) < 2:
        return [_score(job) for job in jobs]
    with ProcessPoolExecutor(min(len(jobs), os.cpu_count() or 1), mp_context=get_context("spawn")) as pool:
        return list(pool.map(_score, jobs))


def _score(job: Job) -> DirectionScores:
    hypotheses, references, source, target, tokenize = job
    return score_direction(hypotheses, references, source=source, target=target, tokenize=tokenize)
