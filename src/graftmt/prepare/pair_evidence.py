"""Whether two texts belong together: line by line, by length and what translations share, and as a whole, by language. Layer 4.

Lines are compared without knowing their languages. Numbers, names, web addresses, placeholders and marks are often the same on
both sides, and long sentences stay long. For one pair that says little; over some hundred lines it tells aligned text from any
other. Whether two texts stand in each other's place is told by their scripts and by language ID.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from graftmt.prepare.language_id import detector_code, language_detector
from graftmt.prepare.scripts import expected_scripts, length_of, letter_scripts

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

Value = TypeVar("Value", np.bool_, np.float64)

NEARBY = (7, -11, 19, -29)
"""Lines this far away are no translations, but of the same document: evidence is compared with what they share by chance."""
_TOKEN = re.compile(r"https?://\S+|%\(?\w*\)?[a-z]|\{\w*\}|\$\w+|\d+|[^\W\d_]+")
_MARKS = frozenset('([{<"/@=*&#|_\\+%$€')
_ENDINGS = {
    **dict.fromkeys(".。।።۔", "."),
    **dict.fromkeys("?？؟;", "?"),
    **dict.fromkeys("!！", "!"),
    **dict.fromkeys(":：", ":"),
    "…": "…",
    **dict.fromkeys(")）", ")"),
}
_STEM = 4
"""Letters of a word's beginning that related languages and loans share."""
_LENGTH_SLACK = 5.0
_MOST_SHARED = 0.5
"""Of all lines: what is in more of them says nothing about one."""


def clues(text: str) -> set[str]:
    """What a translation is likely to have too: numbers, names and words in Latin letters, placeholders, its ending."""
    folded = text.casefold()
    if not folded.isascii():
        folded = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    found: set[str] = set()
    for token in _TOKEN.findall(folded):
        if token[0].isdigit():
            found.add(str(int(token)) if len(token) < 20 else token)  # int() reads the digits of all scripts
        elif token.isascii() and len(token) > 1:
            found.add(token)
            if len(token) > _STEM and token.isalpha():
                found.add(f"{token[:_STEM]}-")
    found.add(f"end {_ENDINGS.get(folded[-1:], '')}")
    found.update(_MARKS.intersection(folded))
    return found


@dataclass(frozen=True)
class Side:
    """One side's lines in numbers. Clues are sorted by line, then by number."""

    present: NDArray[np.bool_]
    lengths: Floats
    """Standardised logarithms; 0 for empty lines."""
    line: Integers
    clue: Integers
    weight: Floats
    """Squared: the rarer a clue, the more it says."""
    norm: Floats


class Evidence:
    """The lines of two sides, and how well line i of the first goes with line i + offset of the second."""

    def __init__(self, first: Sequence[str], second: Sequence[str]) -> None:
        count = len(first)
        present = [
            np.fromiter((bool(text.strip()) for text in lines), dtype=np.bool_, count=count) for lines in (first, second)
        ]
        numbers: dict[str, int] = {}
        tables = [_clue_table(lines, numbers) for lines in (first, second)]
        width = max(1, len(numbers))
        often = sum(np.bincount(clue, minlength=width) for _, clue in tables)
        rarity = np.log(max(2, sum(int(one.sum()) for one in present)) / np.maximum(often, 1))
        rarity[rarity < -np.log(_MOST_SHARED)] = 0.0
        self.width = width
        self.count = count
        self.first, self.second = (
            _side(lines, there, table, rarity**2) for lines, there, table in zip((first, second), present, tables, strict=True)
        )
        self._known: dict[int, Floats] = {}
        nearby = [self._shared(offset)[self.pairs(offset)] for offset in NEARBY if abs(offset) < count]
        chance: Floats = np.concatenate(nearby) if nearby else np.zeros(0)
        self._mean, self._spread = (float(chance.mean()), float(chance.std())) if len(chance) else (0.0, 0.0)

    def pairs(self, offset: int) -> NDArray[np.bool_]:
        """Which lines of the first side have text, and text at that place of the second."""
        return self.first.present & _moved(self.second.present, offset)

    def scores(self, offset: int) -> Floats:
        """For each line about 0, with a spread of about 1, where it goes with its partner no better than by chance."""
        if offset not in self._known:
            self._known[offset] = self._scores(offset)
        return self._known[offset]

    def _scores(self, offset: int) -> Floats:
        lengths = np.clip(self.first.lengths * _moved(self.second.lengths, offset), -3.0, 3.0)
        shared = np.zeros(self.count)
        if self._spread > 0:
            shared = np.clip((self._shared(offset) - self._mean) / self._spread, -3.0, 6.0)
        return np.where(self.pairs(offset), (lengths + shared) / np.sqrt(2.0), 0.0)

    def by_chance(self) -> Floats:
        """The scores of lines nearby, one for each line."""
        nearby = [self.scores(offset) for offset in NEARBY if abs(offset) < self.count]
        return sum(nearby, np.zeros(self.count)) / max(1, len(nearby))

    def _shared(self, offset: int) -> Floats:
        """The cosine of both lines' clues."""
        first, second = self.first, self.second
        keys = first.line * self.width + first.clue
        others = (second.line - offset) * self.width + second.clue
        place = np.minimum(np.searchsorted(others, keys), max(0, len(others) - 1))
        hits = (others[place] == keys) if len(others) else np.zeros(len(keys), dtype=np.bool_)
        dots = np.bincount(first.line[hits], first.weight[hits], minlength=self.count)
        return dots / np.maximum(first.norm * _moved(second.norm, offset), 1e-9)


def _clue_table(lines: Iterable[str], numbers: dict[str, int]) -> tuple[Integers, Integers]:
    """(line, clue) of all clues; a clue that is new gets the next number."""
    counts, found = [], []
    for text in lines:
        its = sorted(numbers.setdefault(clue, len(numbers)) for clue in clues(text)) if text else []
        counts.append(len(its))
        found += its
    return np.repeat(np.arange(len(counts)), counts), np.array(found, dtype=np.int64)


def _side(lines: Sequence[str], present: NDArray[np.bool_], table: tuple[Integers, Integers], weights: Floats) -> Side:
    line, clue = table
    weight = weights[clue] if len(clue) else np.zeros(0)
    norm = np.sqrt(np.bincount(line, weight, minlength=len(lines)))
    return Side(present, _standard_lengths(lines, present), line, clue, weight, norm)


def _standard_lengths(lines: Sequence[str], present: NDArray[np.bool_], measure: Callable[[str], float] = length_of) -> Floats:
    lengths = np.log(np.fromiter(map(measure, lines), dtype=np.float64, count=len(lines)) + _LENGTH_SLACK)
    spread = float(lengths[present].std()) if present.any() else 0.0
    if spread == 0.0:
        return np.zeros(len(lines))
    return np.where(present, np.clip((lengths - lengths[present].mean()) / spread, -3.0, 3.0), 0.0)


def _moved(values: NDArray[Value], offset: int) -> NDArray[Value]:
    """values[i + offset] at place i; zeros where there is none."""
    moved = np.zeros_like(values)
    if offset >= 0:
        moved[: len(values) - offset or None] = values[offset:]
    elif -offset < len(values):
        moved[-offset:] = values[:offset]
    return moved


def best_lag(first: Sequence[str], second: Sequence[str], start: int, end: int) -> int:
    """The offset at which the lengths of the second side follow those of these lines of the first best, however far."""
    present = [np.array([bool(text) for text in lines], dtype=np.bool_) for lines in (first, second)]
    standard = [_standard_lengths(lines, there, len) for lines, there in zip((first, second), present, strict=True)]
    part = np.zeros(len(first))
    part[start:end] = standard[0][start:end]
    size = 1 << (2 * len(first)).bit_length()
    found = np.fft.irfft(np.conj(np.fft.rfft(part, size)) * np.fft.rfft(standard[1], size), size)
    best = int(found.argmax())
    return best if best < len(first) else best - size


CHUNKS, CHUNK_LETTERS = 40, 300
"""Lines are judged together, this number of letters at once: single ones are too short for certainty."""
FEWEST_CHUNKS = 3
NEARLY_ALL, HARDLY_ANY = 0.8, 0.2


def exchanged(
    first: Sequence[str], second: Sequence[str], languages: tuple[str, str]
) -> Literal["exchanged", "same language"] | None:
    """`exchanged` if each text is in the other's language, `same language` if both are in one; None if neither can be told."""
    chunks = (_chunks(first), _chunks(second))
    if min(map(len, chunks)) < FEWEST_CHUNKS or len(set(languages)) < 2:
        return None
    return _by_script(chunks, languages) or _by_language(chunks, languages)


def _chunks(lines: Sequence[str]) -> list[str]:
    """Up to CHUNKS stretches of text, evenly spread."""
    present = [line for line in lines if line.strip()]
    starts = [number * len(present) // CHUNKS for number in range(CHUNKS)] if len(present) > CHUNKS else [0]
    ends = [*starts[1:], len(present)]
    found = []
    for start, end in zip(starts, ends, strict=True):
        text = ""
        for line in present[start:end]:
            text += f"{line} "
            if len(text) > CHUNK_LETTERS:
                break
        found.append(text.strip())
    return found


def _by_script(chunks: tuple[list[str], list[str]], languages: tuple[str, str]) -> Literal["exchanged", "same language"] | None:
    """By the scripts that the languages are known to be written in, where these differ."""
    expected = [expected_scripts(name, detector_code(name), ()) for name in languages]
    found = [letter_scripts(" ".join(texts)) for texts in chunks]
    total = [sum(counts.values()) for counts in found]
    if not all(total):
        return None

    def share(side: int, scripts: frozenset[str]) -> float:
        return sum(found[side].get(script, 0.0) for script in scripts) / total[side]

    known = [side for side in (0, 1) if expected[side]]
    for side in known:
        other = 1 - side
        own, theirs = expected[side], expected[other]
        if theirs and own & theirs:
            return None
        wrong = share(side, own) < HARDLY_ANY and (not theirs or share(side, theirs) > NEARLY_ALL)
        if wrong and share(other, own) > NEARLY_ALL:
            return "exchanged"
        if theirs and share(side, own) > NEARLY_ALL and share(other, own) > NEARLY_ALL:
            return "same language"
    return None


def _by_language(
    chunks: tuple[list[str], list[str]], languages: tuple[str, str]
) -> Literal["exchanged", "same language"] | None:
    codes = [detector_code(name) for name in languages]
    known = language_detector(codes)
    if known is None or codes[0] == codes[1]:
        return None
    of_all = language_detector()
    between = known if all(code in known.labels for code in codes) else of_all  # of two languages the detector is surer
    has = [code in of_all.labels for code in codes]
    if not any(has):
        return None
    # Of a language that the detector does not know, all that can be seen is that the other one is in its place.
    away = [not has[side] or _share(between, chunks[side], codes[side]) < HARDLY_ANY for side in (0, 1)]
    crossed = [not has[1 - side] or _share(between, chunks[side], codes[1 - side]) > NEARLY_ALL for side in (0, 1)]
    if all(away) and all(crossed):
        return "exchanged"
    if all(has):
        for code in codes:
            if all(_share(of_all, texts, code) > NEARLY_ALL for texts in chunks):
                return "same language"
    return None


def _share(detector: Any, chunks: Sequence[str], code: str) -> float:
    """Of the chunks, those that are read as this language."""
    return sum(1 for text in chunks if detector.classify(text)[0] == code) / len(chunks)
