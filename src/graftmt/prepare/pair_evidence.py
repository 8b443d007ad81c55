"""How much one line looks like the translation of another: by length, and by what translations share. Layer 4.

Nothing is known about the languages. Numbers, names, web addresses, placeholders and marks are often the same on both sides,
and long sentences stay long. For one pair that says little; over some hundred lines it tells aligned text from any other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from graftmt.prepare.scripts import length_of

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
