"""What the text for a pack looks like before it is trained on, in figures and, where something is amiss, in words. Layer 6."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftmt.adding.pack_text import AddCorpus, hash_lines, usable_lines
from graftmt.data import Corpus, Direction
from graftmt.prepare.language_id import LanguageCheck, detector_code, foreign_lines
from graftmt.text import Text, pieces_of
from graftmt.text.pretokenization import lowercase

UNEQUAL = 3
"""Pairs whose longer side has more than N times the other's characters are hardly translations."""
SMALL = 5_000
COVERED_UNKNOWN_RATE, COVERED_TOKENS = 0.001, 1.3
TOLERATED_WRONG_LANGUAGE = 0.05
ANOTHER_LANGUAGE = 0.8
"""A share of lines in another language from which on the file is rather the wrong one than an unclean one."""
TOLERATED_COPIES = 0.02
TOLERATED_UNKNOWN_RATE = 0.005


@dataclass(frozen=True, kw_only=True)
class VocabularyFit:
    """How a text fares under a vocabulary."""

    tokens_per_line: float
    unknown_rate: float
    byte_rate: float
    """The share of single bytes, which some vocabularies write instead of `<unk>`."""


@dataclass(frozen=True, kw_only=True)
class LanguageExamination:
    """One new language. Lines, pairs and duplicates are counted in all of the text, the rest in the sample."""

    lines: int
    """With a translation into a partner."""
    sampled: int
    words_per_line: float
    words_in_long_lines: float
    """The 95th percentile."""
    under_base: VocabularyFit
    under_pack: VocabularyFit | None
    new_characters: dict[str, int]
    """The most frequent of the characters that the base's vocabulary does not have, and how often they occur."""
    duplicates: float
    """The share of lines whose text was there before."""
    copies: float
    """The share of pairs with the same text on both sides."""
    unequal: float
    """The share of pairs with one side more than three times as long as the other, in characters."""


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Subwords of the pack's vocabulary that the base's has too: their embeddings start from the base's."""

    shared: int
    total: int

    @property
    def share(self) -> float:
        return self.shared / self.total if self.total else 0.0


@dataclass(frozen=True, kw_only=True)
class Examination:
    """The figures by language and pair, and what to do about them."""

    languages: dict[str, LanguageExamination]
    pairs: dict[str, int]
    """`el-en` → lines with text in both."""
    wrong_language: dict[str, LanguageCheck]
    """For the new languages and their partners."""
    overlap: Overlap | None
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def rows(self) -> list[tuple[str, str]]:
        """For a table of two columns."""
        rows = [(f"{pair}: line pairs", f"{count:,}") for pair, count in self.pairs.items()]
        for language, found in self.languages.items():
            rows += [(f"{language}: {name}", value) for name, value in _language_rows(found)]
        for language, check in self.wrong_language.items():
            rows.append((f"{language}: in another language", check.reason if check.share is None else _percent(check.share)))
        if self.overlap is not None:
            shared = f"{self.overlap.shared:,} of {self.overlap.total:,} ({_percent(self.overlap.share)})"
            rows.append(("subwords the base has too", shared))
        return rows


def examine(
    corpus: AddCorpus, base: Text, pack: Text | None, *, known: Sequence[str] | None = None, limit: int = 20_000
) -> Examination:
    """Counts lines in all of the training text and looks closely at `limit` lines of each new language, evenly spread.

    `known` are the base's languages; by default, those that its text has codes for.
    """
    hashes = hash_lines(corpus.train, (*corpus.new, *corpus.partners))
    languages: dict[str, LanguageExamination] = {}
    sides: dict[str, list[str]] = {}
    for language in corpus.new:
        usable = np.flatnonzero(usable_lines(hashes, language, corpus.partners))
        sample = _sample(corpus.train, (language, *corpus.partners), _evenly(usable, limit))
        for side, lines in sample.items():
            sides.setdefault(side, []).extend(line for line in lines if line)
        distinct = len(np.unique(hashes[language][usable]))
        languages[language] = _examine_language(language, sample, base, pack, lines=len(usable), distinct=distinct)
    pairs = {
        str(Direction(language, partner)): int(usable_lines(hashes, language, [partner]).sum())
        for language in corpus.new
        for partner in corpus.partners
    }
    candidates = (*corpus.new, *(base.languages if known is None else known))
    checks = foreign_lines(sides, candidates=candidates)
    return Examination(
        languages=languages,
        pairs=pairs,
        wrong_language=checks,
        overlap=_overlap(base, pack) if pack else None,
        warnings=(*_language_warnings(languages), *_wrong_language_warnings(checks)),
    )


def _evenly(lines: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    count = min(limit, len(lines))
    return lines[np.arange(count) * len(lines) // max(1, count)]


def _sample(corpus: Corpus, languages: Sequence[str], wanted: NDArray[np.int64]) -> dict[str, list[str]]:
    """These lines of these languages, without margins."""
    return {language: list(_pick(corpus.lines(language), wanted)) for language in languages}


def _pick(lines: Iterator[str], wanted: NDArray[np.int64]) -> Iterator[str]:
    numbers = iter(wanted.tolist())
    number = next(numbers, None)
    for index, line in enumerate(lines):
        if number is None:
            return
        if index == number:
            yield line.strip()
            number = next(numbers, None)


def _examine_language(
    language: str, sample: Mapping[str, list[str]], base: Text, pack: Text | None, *, lines: int, distinct: int
) -> LanguageExamination:
    texts = sample[language]
    words = [len(text.split()) for text in texts]
    pairs = [
        (text, other)
        for side, others in sample.items()
        if side != language
        for text, other in zip(texts, others, strict=True)
        if other
    ]
    copies = sum(text == other for text, other in pairs)
    unequal = sum(max(len(text), len(other)) > UNEQUAL * min(len(text), len(other)) for text, other in pairs)
    characters = Counter(character for text in texts for character in lowercase(text) if not character.isspace())
    alphabet = {piece for piece in pieces_of(base) if len(piece) == 1}
    unseen = Counter({char: count for char, count in characters.items() if char not in alphabet})
    return LanguageExamination(
        lines=lines,
        sampled=len(texts),
        words_per_line=float(np.mean(words)),
        words_in_long_lines=float(np.percentile(words, 95)),
        under_base=_fit(base, texts),
        under_pack=_fit(pack, texts) if pack else None,
        new_characters=dict(unseen.most_common(10)),
        duplicates=1 - distinct / lines,
        copies=copies / len(pairs),
        unequal=unequal / len(pairs),
    )


def _fit(tokenizer: Text, texts: Sequence[str]) -> VocabularyFit:
    counts = tokenizer.count(texts)
    return VocabularyFit(
        tokens_per_line=counts.pieces / counts.lines, unknown_rate=counts.unknown_rate, byte_rate=counts.byte_rate
    )


def _overlap(base: Text, pack: Text) -> Overlap:
    pieces = set(pieces_of(pack))
    return Overlap(shared=len(pieces & set(pieces_of(base))), total=len(pieces))


def _language_warnings(languages: Mapping[str, LanguageExamination]) -> Iterator[str]:
    for language, found in languages.items():
        under_base, under_pack = found.under_base, found.under_pack
        if (
            under_pack is not None
            and under_base.unknown_rate < COVERED_UNKNOWN_RATE
            and under_base.tokens_per_line <= COVERED_TOKENS * under_pack.tokens_per_line
        ):
            yield (
                f"The base's vocabulary already covers this text in {language} ({_percent(under_base.unknown_rate)} <unk>, "
                f"{under_base.tokens_per_line:.1f} tokens per line against {under_pack.tokens_per_line:.1f} with the pack's): "
                f"a pack may gain little. Is {language} perhaps close to a language the base has, or the text in one of them?"
            )
        if found.lines < SMALL:
            yield (
                f"There is little text in {language}: {found.lines:,} lines, where {SMALL:,} or more are better. "
                "Expect modest translations; more text, or back-translated text (`graftmt augment`), helps most."
            )
        if found.copies > TOLERATED_COPIES:
            yield (
                f"In {language}, {_percent(found.copies)} of the pairs have the same text on both sides, which teaches "
                "copying; remove those that are not meant to stay the same."
            )
        if under_pack is not None and under_pack.unknown_rate > TOLERATED_UNKNOWN_RATE:
            yield (
                f"The pack's own vocabulary does not know {_percent(under_pack.unknown_rate)} of the tokens in {language}; "
                "look for stray characters in the text, or keep the rare ones with subwords.min_character_count=2 or "
                "subwords.byte_fallback=true at the end of the command."
            )


def _wrong_language_warnings(checks: Mapping[str, LanguageCheck]) -> Iterator[str]:
    exchanged = [pair for pair in combinations(checks, 2) if _is_read_as(checks, *pair) and _is_read_as(checks, *pair[::-1])]
    for one, other in exchanged:
        yield (
            f"The text in {one} and that in {other} seem to be exchanged: nearly all lines in {one} look like {other}, such as "
            f"«{checks[one].examples[0]}», and nearly all in {other} like {one}. Give each its own file (--train)."
        )
    told = {language for pair in exchanged for language in pair}
    for language, check in checks.items():
        if language in told or check.share is None or check.share <= TOLERATED_WRONG_LANGUAGE:
            continue
        found = (
            f"About {_percent(check.share)} of the lines in {language} seem to be in another language (close languages may be "
            f"taken for each other), such as «{check.examples[0]}»."
        )
        if check.share > ANOTHER_LANGUAGE:
            yield f"{found} Is this text in {language} at all? See whether {language} was given the right file (--train)."
        else:
            yield f"{found} Clean the text first (graftmt prepare clean): such lines cost translation quality."


def _is_read_as(checks: Mapping[str, LanguageCheck], language: str, other: str) -> bool:
    """Whether nearly all of a text is in another language, and most of it in this one, as the detector says of the examples."""
    check = checks[language]
    alike = [example for example in check.examples if example.startswith(f"{detector_code(other)}: ")]
    return (check.share or 0.0) > ANOTHER_LANGUAGE and 2 * len(alike) > len(check.examples)


def _language_rows(found: LanguageExamination) -> Iterator[tuple[str, str]]:
    yield "lines with a translation", f"{found.lines:,}"
    yield "words per line", f"{found.words_per_line:.1f}; at most {found.words_in_long_lines:.0f} in 95 % of the lines"
    yield "under the base's vocabulary", _describe(found.under_base)
    if found.under_pack is not None:
        yield "under the pack's vocabulary", _describe(found.under_pack)
    yield "characters new to the base", " ".join(found.new_characters) or "none"
    yield "repeated lines", _percent(found.duplicates)
    yield "same text on both sides", _percent(found.copies)
    yield "one side over three times as long", _percent(found.unequal)


def _describe(fit: VocabularyFit) -> str:
    as_bytes = f", {_percent(fit.byte_rate)} single bytes" if fit.byte_rate else ""
    return f"{fit.tokens_per_line:.1f} tokens per line, {_percent(fit.unknown_rate)} <unk>{as_bytes}"


def _percent(share: float) -> str:
    if 0 < share < 0.0001:
        return "under 0.01 %"
    return f"{100 * share:.2f} %" if 0 < share < 0.01 else f"{100 * share:.1f} %"
