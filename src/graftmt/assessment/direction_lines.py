"""Whole directions of a corpus: the lines that each has, their translations, and the scores of these. Layer 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graftmt.assessment.scoring_pool import ScoringJob, scorer
from graftmt.data import Corpus, Direction
from graftmt.decoding import SearchOptions
from graftmt.engines import OnBatch
from graftmt.errors import DataError, LanguageError, nearest
from graftmt.evaluation import Scores
from graftmt.packs import Side
from graftmt.translation_requests import LONGEST_SOURCE, LongLine, Request
from graftmt.translator import Translator


@dataclass(frozen=True)
class Evaluation:
    """The scores of one direction, and the lines they come from."""

    direction: Direction
    scores: Scores
    sources: list[str]
    hypotheses: list[str]
    references: list[str]


@dataclass(frozen=True)
class DirectionLines:
    """The lines of a corpus that have text on both sides of a direction."""

    direction: Direction
    numbers: list[int]
    """Where they stand in the corpus, from 1."""
    sources: list[str]
    references: list[str]
    origin: str
    """The split and its folder, for a person."""


def lacking_languages(known: Sequence[str], corpus: Corpus) -> dict[str, str]:
    """Languages that only the models know, or only the corpus has → what is missing for their directions."""
    folder, split = corpus.folder, corpus.split
    without_text = {
        language: f"{folder} has no {split} text in {language!r}, no file such as {split}.{language}.txt; it has "
        f"{', '.join(corpus.languages)}."
        for language in known
        if language not in corpus.languages
    }
    without_model = {
        language: f"neither the base nor a pack knows {language!r}, though {folder} has text in it; they know "
        f"{', '.join(known)}. A pack is given with --packs."
        for language in corpus.languages
        if language not in known
    }
    return without_text | without_model


LONGEST_SENTENCE = LONGEST_SOURCE // 2
"""Characters of a source beyond which it is far longer than a sentence."""


def direction_lines(
    corpus: Corpus, directions: Sequence[Direction], *, lines: int | None = None, pairs: int | None = None
) -> list[DirectionLines]:
    """For each direction those of the split's first `lines` lines; at most `pairs`, none of them far longer than a sentence."""
    texts = corpus.texts(sorted({language for direction in directions for language in direction}), lines)
    found = []
    for direction in directions:
        filled = _filled(texts, direction)
        chosen = filled if pairs is None else _sentences(filled)[:pairs]
        if not chosen:
            raise DataError(f"the {corpus.split!r} split in {corpus.folder} has no {_lacking(direction, bool(filled))}.")
        numbers, sources, references = (list(column) for column in zip(*chosen, strict=True))
        found.append(DirectionLines(direction, numbers, sources, references, f"{corpus.split!r} in {corpus.folder}"))
    return found


def with_sentences(corpus: Corpus, directions: Sequence[Direction]) -> list[Direction]:
    """The directions that have lines where `pairs` are asked for: text on both sides, not far longer than a sentence."""
    possible = [direction for direction in directions if set(direction) <= set(corpus.languages)]
    texts = corpus.texts(sorted({language for direction in possible for language in direction})) if possible else {}
    return [direction for direction in possible if _sentences(_filled(texts, direction))]


def _filled(texts: Mapping[str, Sequence[str]], direction: Direction) -> list[tuple[int, str, str]]:
    """(number, source, reference) of the lines with text on both sides."""
    pairs = zip(texts[direction.source], texts[direction.target], strict=True)
    return [(number, *pair) for number, pair in enumerate(pairs, 1) if all(map(str.strip, pair))]


def _sentences(lines: Sequence[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    return [line for line in lines if len(line[1]) <= LONGEST_SENTENCE]


def _lacking(direction: Direction, filled: bool) -> str:
    """`line with …`: what a split has none of; of `filled` lines each one is too long."""
    if filled:
        return (
            f"line of {direction} whose {direction.source} text is at most {LONGEST_SENTENCE} characters long; split the lines "
            "into sentences, one a line"
        )
    return f"line with text on both sides of {direction}"


def evaluate_directions(
    translator: Translator,
    corpus: Corpus,
    directions: Sequence[Direction],
    *,
    lines: int | None = None,
    pairs: int | None = None,
    pivot: str | None = None,
    source_pack: str | None = None,
    target_pack: str | None = None,
    options: SearchOptions | None = None,
    tokenize: str | None = None,
    on_batch: OnBatch | None = None,
) -> list[Evaluation]:
    """BLEU and chrF of each direction, of those of the split's first `lines` lines that have text on both sides.

    `pairs`: at most this number of them for a direction, none far longer than a sentence. With a `pivot`, directions that
    neither come from it nor lead to it go through it. A pack that is named is used for the directions of its languages,
    and the others do without it.
    """
    check_directions(translator, directions, pivot, source_pack, target_pack)
    found = direction_lines(corpus, directions, lines=lines, pairs=pairs)
    translated = translate_directions(
        translator, found, pivot=pivot, source_pack=source_pack, target_pack=target_pack, options=options, on_batch=on_batch
    )
    with scorer(None, sum(len(one.sources) for one in found)) as scoring:
        pending = [
            scoring.submit(ScoringJob(*one.direction, hypotheses, one.references, tokenize))
            for one, hypotheses in zip(found, translated, strict=True)
        ]
        return [
            Evaluation(one.direction, future.result().scores, one.sources, hypotheses, one.references)
            for future, one, hypotheses in zip(pending, found, translated, strict=True)
        ]


def translate_directions(
    translator: Translator,
    found: Sequence[DirectionLines],
    *,
    pivot: str | None = None,
    source_pack: str | None = None,
    target_pack: str | None = None,
    options: SearchOptions | None = None,
    on_batch: OnBatch | None = None,
) -> list[list[str]]:
    """The lines of many directions in one go, for each direction in order; what `evaluate_directions` scores."""
    chosen = check_directions(translator, [one.direction for one in found], pivot, source_pack, target_pack)
    requests = [Request(source, *one.direction, pivot, *chosen[one.direction]) for one in found for source in one.sources]
    try:
        outputs = iter(translator.translate_requests(requests, options, on_batch))
    except LongLine as error:
        number, origin = [(number, one.origin) for one in found for number in one.numbers][error.index]
        raise error.at(f"line {number} of the {requests[error.index].source!r} text of {origin}") from None
    return [[next(outputs)[0].text for _ in one.sources] for one in found]


def check_directions(
    translator: Translator,
    directions: Sequence[Direction],
    pivot: str | None = None,
    source_pack: str | None = None,
    target_pack: str | None = None,
) -> dict[Direction, tuple[str | None, str | None]]:
    """All must be possible; returns the packs that were named for each, where it takes them."""
    chosen = {
        direction: (
            _pack_named(translator, source_pack, "source", direction.source),
            _pack_named(translator, target_pack, "target", direction.target),
        )
        for direction in directions
    }
    for direction, packs in chosen.items():
        translator.check_direction(*direction, pivot, *packs)
    return chosen


def _pack_named(translator: Translator, name: str | None, side: Side, language: str) -> str | None:
    """The pack of this name where it is one for the language; a name that no pack of the side has is an error."""
    if name is None:
        return None
    known = [own for own, pack in translator.packs.items() if pack.side == side]
    if name not in known:
        hint = nearest(name, known) or ";"
        raise LanguageError(f"there is no {side} pack {name!r}{hint} those here: {', '.join(known) or 'none'}.")
    return name if language in translator.packs[name].languages else None
