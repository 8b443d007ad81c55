"""Whether line i of one side is the translation of line i of the other; where not, from which line on and why. Layer 4.

A chain of states is laid over the lines: in step, some lines ahead or behind, or not related at all. Its likeliest course says
where the text is out of step. Each stretch is then tested by itself, against lines nearby, before it is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice, pairwise
from typing import Any, Literal

import numpy as np

from graftmt.prepare.pair_evidence import Evidence, Floats, best_lag, exchanged
from graftmt.text.languages import words_for

Kind = Literal["in step", "shifted", "unrelated", "exchanged", "same language", "too little"]

FEWEST_PAIRS = 500
"""Below which text without any sign of alignment may still be aligned."""
FARTHEST = 3
"""Lines that the text may be out of step, looked for everywhere; farther ones are found by the lengths alone."""
TOLERATED = 0.02
"""The share of lines out of step up to which text is only warned of."""
_PART = 200_000
"""Lines that are in memory at once."""
_BLOCK, _BLOCKS, _GAP = 250, 24, 40
"""Of longer text, stretches of 250 lines are looked at, and where something changes what lies between."""
_SWITCH = 16.0
"""The log-likelihood that a change of state costs, besides that of its place."""
_SHORTEST = 100
"""Lines in a stretch that is out of step."""
_CERTAIN = 6.0
"""Standard errors by which another offset must be better."""
_NO_SIGN = 3.5
"""Standard errors above chance, below which there is no sign that lines belong together."""
_SIGN = 10.0
"""The sum of scores above which lines at the edge of a text are a sign of another state than that of their neighbours."""
_UNRELATED = FARTHEST + 1


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Lines that are not in step, counted from 1."""

    kind: Kind
    first: int
    last: int
    offset: int = 0
    """The translation of line i is line i + offset of the second side."""


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """What was found of two sides."""

    first: str
    second: str
    """The languages."""
    kind: Kind
    pairs: int
    share: float = 0.0
    """Of the lines, those that are not in step."""
    stretches: tuple[Stretch, ...] = ()
    lines: int = 0
    """The number of the last line."""
    first_line: int = 1

    @property
    def is_bad(self) -> bool:
        """Whether this should not be trained on."""
        return self.kind not in ("in step", "too little") and self.share > TOLERATED

    def counted_from(self, first: int) -> Alignment:
        """The same for a file whose first line of text is this one, as after a header."""
        moved = tuple(_moved(stretch, first - 1) for stretch in self.stretches)
        return replace(self, stretches=moved, lines=self.lines + first - 1, first_line=first)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return _in_words(self)


def check_alignment(pairs: Iterable[tuple[str, str]], languages: tuple[str, str]) -> Alignment:
    """Looks at as many of the lines as it takes, a part of a large text after the other; empty lines have no translation."""
    stream = iter(pairs)
    parts: list[Alignment] = []
    lines = 0
    while part := list(islice(stream, _PART)):
        found = _check_part([one for one, _ in part], [other for _, other in part], languages)
        parts.append(replace(found, stretches=tuple(_moved(stretch, lines) for stretch in found.stretches)))
        lines += len(part)
    return _together(parts, languages)


def _check_part(first: Sequence[str], second: Sequence[str], languages: tuple[str, str]) -> Alignment:
    pairs = sum(1 for one, other in zip(first, second, strict=True) if one.strip() and other.strip())
    found = Alignment(first=languages[0], second=languages[1], kind="in step", pairs=pairs, lines=len(first))
    if (kind := exchanged(first, second, languages)) is not None:
        stretches = [Stretch(kind=kind, first=1, last=len(first))]
    elif pairs < _SHORTEST:
        return replace(found, kind="too little")
    else:
        stretches = _stretches(first, second)
    if stretches:
        return replace(found, kind=stretches[0].kind, stretches=tuple(stretches))
    return found if pairs >= FEWEST_PAIRS else replace(found, kind="too little")


def _together(parts: Sequence[Alignment], languages: tuple[str, str]) -> Alignment:
    lines, pairs = sum(part.lines for part in parts), sum(part.pairs for part in parts)
    stretches: list[Stretch] = []
    for stretch in (one for part in parts for one in part.stretches):
        before = stretches[-1] if stretches else None
        if before and (before.kind, before.offset, before.last + 1) == (stretch.kind, stretch.offset, stretch.first):
            stretch = replace(stretch, first=stretches.pop().first)
        stretches.append(stretch)
    found = Alignment(first=languages[0], second=languages[1], kind="in step", pairs=pairs, lines=lines)
    if not stretches:
        return found if any(part.kind == "in step" for part in parts) else replace(found, kind="too little")
    worst = max(stretches, key=lambda one: one.last - one.first)
    share = sum(one.last - one.first + 1 for one in stretches) / lines
    return replace(found, kind=worst.kind, share=share, stretches=tuple(stretches))


def _moved(stretch: Stretch, lines: int) -> Stretch:
    return replace(stretch, first=stretch.first + lines, last=stretch.last + lines)


# Finding what is out of step


def _stretches(first: Sequence[str], second: Sequence[str]) -> list[Stretch]:
    numbers = _looked_at(len(first))
    seen = [["" if number < 0 else lines[number] for number in numbers] for lines in (first, second)]
    evidence = Evidence(seen[0], seen[1])
    out = _out_of_step(evidence)
    if not out and _tested(evidence, _UNRELATED, 0, evidence.count)[0] == "unrelated":
        return [_with_lag(Stretch(kind="unrelated", first=1, last=len(first)), first, second)]
    found = []
    for kind, offset, begin, end in out:
        inside = [number for number in numbers[begin:end] if number >= 0]
        around = (inside[0], inside[-1])
        start = _refined(first, second, around, offset) if begin else 0
        stop = _refined(first, second, around, offset, ends=True) if end < len(numbers) else len(first)
        begins, ends = (start, stop) if offset else (min(start, inside[0]), max(stop, inside[-1] + 1))
        if begins >= ends:  # too short a stretch to be refined: as it was found
            begins, ends = inside[0], inside[-1] + 1
        stretch = Stretch(kind=kind, first=begins + 1, last=ends, offset=offset)
        found.append(_with_lag(stretch, first, second))
    return found


def _out_of_step(evidence: Evidence) -> list[tuple[Kind, int, int, int]]:
    """(kind, offset, begin, end) of each stretch that is certain, neighbours of one kind joined."""
    found: list[tuple[Kind, int, int, int]] = []
    for state, begin, end in _runs(_states(evidence)):
        kind, offset = _tested(evidence, state, begin, end)
        if kind == "in step":
            continue
        if found and found[-1][:2] == (kind, offset) and _goes_on(evidence, offset, found[-1][3], begin):
            begin = found.pop()[2]
        elif not found and _reaches_the_edge(evidence, offset, 0, begin):
            begin = 0
        found.append((kind, offset, begin, end))
    if found and _reaches_the_edge(evidence, found[-1][1], found[-1][3], evidence.count):
        found[-1] = (*found[-1][:3], evidence.count)
    return found


def _reaches_the_edge(evidence: Evidence, offset: int, begin: int, end: int) -> bool:
    """Whether nothing says that lines before the first stretch, or after the last one, are in step."""
    if not offset:
        return _goes_on(evidence, offset, begin, end)
    gains = (evidence.scores(0) - evidence.scores(offset))[begin:end]
    from_the_edge = np.cumsum(gains if begin == 0 else gains[::-1])
    return float(from_the_edge.max(initial=0.0)) < _SIGN


def _goes_on(evidence: Evidence, offset: int, begin: int, end: int) -> bool:
    """Whether nothing says that lines next to stretches of one kind are of another."""
    here = slice(begin, end)
    usable = evidence.pairs(0)[here]
    expected = evidence.scores(offset) if offset else evidence.by_chance()
    return not usable.any() or _errors((evidence.scores(0) - expected)[here][usable]) < (2.0 if offset else _NO_SIGN)


def _looked_at(count: int) -> list[int]:
    """The numbers of the lines to look at; between stretches of long text -1, for lines that are left empty."""
    if count <= _BLOCK * _BLOCKS + _GAP * _BLOCKS:
        return list(range(count))
    starts = [place * (count - _BLOCK) // (_BLOCKS - 1) for place in range(_BLOCKS)]
    return [number for start in starts for number in (*range(start, start + _BLOCK), *[-1] * _GAP)][:-_GAP]


def _states(evidence: Evidence) -> list[int]:
    """The likeliest state of each line: 0 in step, 1 to 3 and -1 to -3 out of step, _UNRELATED."""
    offsets = [*range(-FARTHEST, FARTHEST + 1)]
    scores = np.stack([evidence.scores(offset) for offset in offsets])
    strength = _strength(scores, evidence)
    gains = np.concatenate([strength * scores - strength**2 / 2 * (scores != 0), np.zeros((1, evidence.count))])
    names = [*offsets, _UNRELATED]
    cost = _SWITCH + np.log(max(1, evidence.count))
    total, back = gains[:, 0].copy(), []
    total[names.index(0)] += cost  # in step, unless something speaks against it
    for column in gains.T[1:]:
        best = int(total.argmax())
        stays = total >= total[best] - cost
        back.append((stays, best))
        total = np.where(stays, total, total[best] - cost) + column
    state = int(total.argmax())
    course = [state]
    for stays, best in reversed(back):
        state = state if stays[state] else best
        course.append(state)
    return [names[state] for state in reversed(course)]


def _strength(scores: Floats, evidence: Evidence) -> float:
    """The mean score of lines that belong together: of the best offset in each of some stretches."""
    parts = np.array_split(np.arange(evidence.count), max(1, min(16, evidence.count // 200)))
    best = []
    for part in parts:
        counts = np.maximum(1, np.count_nonzero(scores[:, part], axis=1))
        best.append(float((scores[:, part].sum(axis=1) / counts).max()))
    return float(np.clip(np.median(best), 0.2, 2.0))


def _runs(states: Sequence[int]) -> list[tuple[int, int, int]]:
    """(state, begin, end) of each stretch that is not in step."""
    edges = [0, *(place for place in range(1, len(states)) if states[place] != states[place - 1]), len(states)]
    runs = [(states[begin], begin, end) for begin, end in pairwise(edges)]
    return [run for run in runs if run[0] != 0]


def _tested(evidence: Evidence, state: int, begin: int, end: int) -> tuple[Kind, int]:
    """What the lines of this stretch say by themselves."""
    here = slice(begin, end)
    in_step = evidence.scores(0)[here]
    if np.count_nonzero(evidence.pairs(0)[here]) < _SHORTEST and state == _UNRELATED:
        return "in step", 0
    if state != _UNRELATED:
        moved = evidence.scores(state)[here]
        usable = (evidence.pairs(state) | evidence.pairs(0))[here]
        if usable.sum() >= _SHORTEST and _errors((moved - in_step)[usable]) > _CERTAIN:
            return "shifted", state
        return "in step", 0
    usable = evidence.pairs(0)[here]
    if usable.sum() < FEWEST_PAIRS:
        return "in step", 0
    return ("unrelated", 0) if _errors((in_step - evidence.by_chance()[here])[usable]) < _NO_SIGN else ("in step", 0)


def _errors(values: Floats) -> float:
    """The mean in standard errors."""
    spread = float(values.std())
    return float(values.mean()) / spread * float(np.sqrt(len(values))) if spread > 0 else 0.0


def _refined(first: Sequence[str], second: Sequence[str], inside: tuple[int, int], offset: int, *, ends: bool = False) -> int:
    """The line where a stretch begins, or the text after it if it `ends`. `inside`: its first and last line that was seen.

    Between the lines that were looked at, and in poor ones among these, it may have begun earlier or later, and ended so too.
    """
    reach = max(2 * _BLOCK, 2 * len(first) // _BLOCKS)
    seen = inside[1] + 1 if ends else inside[0]
    low, high = max(0, seen - reach), min(len(first), seen + reach)
    low, high = (max(low, inside[0]), high) if ends else (low, min(high, inside[1] + 1))
    evidence = Evidence(first[low:high], second[low:high])
    if offset:
        gains = np.cumsum(evidence.scores(offset) - evidence.scores(0))
        return low + 1 + int(gains.argmax() if ends else gains.argmin())
    states = _states(evidence)
    changes = [at for at in range(1, len(states)) if (states[at] == 0) == ends and (states[at - 1] == 0) != ends]
    return low + changes[0] if changes else seen


def _with_lag(stretch: Stretch, first: Sequence[str], second: Sequence[str]) -> Stretch:
    """Lines that seem unrelated may be far out of step."""
    if stretch.kind != "unrelated":
        return stretch
    lag = best_lag(first, second, stretch.first - 1, stretch.last)
    low, high = max(0, stretch.first - 1, stretch.first - 1 + lag), min(len(first), stretch.last, stretch.last + lag)
    if not lag or high - low < FEWEST_PAIRS:
        return stretch
    most = min(high - low, _BLOCK * _BLOCKS)
    begin = min(max(stretch.first - 1, -lag), len(first) - most)
    ours, theirs = list(first[begin : begin + most]), list(second[begin + lag : begin + lag + most])
    shortest = min(len(ours), len(theirs))
    evidence = Evidence(ours[:shortest], theirs[:shortest])
    usable = evidence.pairs(0)
    if usable.sum() < _SHORTEST or _errors((evidence.scores(0) - evidence.by_chance())[usable]) < 2 * _CERTAIN:
        return stretch
    return replace(stretch, kind="shifted", offset=lag)


# In words


def _in_words(found: Alignment) -> str:
    both = f"{found.first} and {found.second}"
    if found.kind == "in step":
        return f"{both} are in step: line i of one goes with line i of the other"
    if found.kind == "too little":
        return f"{both}: too little text to tell whether the lines belong together ({found.pairs:,} pairs)"
    said = "; ".join(_stretch_in_words(found, stretch) for stretch in found.stretches[:3])
    more = len(found.stretches) - 3
    return said + (f"; and {more} more such stretches" if more > 0 else "")


def _stretch_in_words(found: Alignment, stretch: Stretch) -> str:
    if stretch.first == found.first_line and stretch.last == found.lines:
        where = "all lines"
    elif stretch.last == found.lines:
        where = f"line {stretch.first:,} on"
    else:
        where = f"lines {stretch.first:,} to {stretch.last:,}"
    first, second = (words_for(code) or code for code in (found.first, found.second))
    if stretch.kind == "exchanged":
        return f"{where}: the text in {first} and that in {second} are exchanged, each is in the other's language"
    if stretch.kind == "same language":
        return f"{where}: the text in {first} and that in {second} are in the same language, so one of them is the wrong one"
    if stretch.kind == "unrelated":
        return f"{where}: the {first} side and the {second} side do not belong together (shuffled, sorted, or of other texts)"
    ahead, behind = (first, second) if stretch.offset > 0 else (second, first)
    count = abs(stretch.offset)
    lines, there = ("one line", "a line is") if count == 1 else (f"{count:,} lines", "lines are")
    return (
        f"{where}: the {ahead} side is {lines} ahead of the {behind} side ({there} missing in {ahead}, or too many in {behind})"
    )
