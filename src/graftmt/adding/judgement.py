"""Whether a pack can be used: excellent, usable, poor or unusable, why, and what would make it better. Layer 6.

The score is chrF in the trained directions, on held-out text. It is compared with what the base itself reaches on the same text
in its own directions, and with the source left as it is. Without the first of these no pack is excellent, as text may be easy;
and numbers that come out as others lower the level. A handful of lines says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal

from graftmt.adding.verdict import Verdict
from graftmt.packs import Side
from graftmt.packs.component import Component

Level = Literal["excellent", "usable", "poor", "unusable", "unknown"]

FEWEST_LINES = 20
"""Translations below which there is no verdict."""
SHARES: dict[Level, float] = {"excellent": 0.9, "usable": 0.7, "poor": 0.4}
"""Of the base's own chrF, from which on a pack is that good."""
SCORES: dict[Level, float] = {"usable": 40.0, "poor": 20.0}
"""The same in chrF, for text in which the base's own directions cannot be scored."""
ABOVE_COPYING = 3.0
"""chrF by which a translation must be better than the untranslated source."""
WEAK_BASE = 25.0
"""chrF below which the base's own directions are no standard."""
NO_ROOM = 95.0
"""chrF from which on nobody is told to look for more text: what was measured on other texts says nothing of the rest."""
WRONG_NUMBERS: dict[Level, float] = {"excellent": 0.05, "usable": 0.25}
"""Share of the lines with a number that may have other numbers, beyond the share of the base's own translations."""
FEWEST_NUMBERS = 10
"""Lines with a number below which their share may be chance."""

SIZE_CURVES: dict[Side, tuple[tuple[int, float], ...]] = {
    "source": ((1_000, 45.7), (10_000, 58.3), (77_805, 63.1)),
    "target": ((1_000, 33.4), (10_000, 57.7), (77_825, 63.0)),
}
"""Line pairs and chrF with English, measured on Greek software documentation: docs/results/docs-reading.md, "Size of the text",
and Table 3 (27). Between them by the logarithm of the size."""
CURVE_SOURCE = "measured on Greek documentation, docs/results/docs-reading.md"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The level, and what led to it in words."""

    level: Level
    score: float
    """Mean chrF of the trained directions."""
    own: float | None
    """Mean chrF of the base's own directions; None where the text has none."""
    copying: float
    """chrF of the source left as it is."""
    reasons: tuple[str, ...]
    advice: tuple[str, ...]

    @property
    def is_usable(self) -> bool:
        """Or may be, as far as one can tell."""
        return self.level not in ("poor", "unusable")

    @property
    def headline(self) -> str:
        return f"Verdict: {self.level}. {' '.join(self.reasons)}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def judged(
    verdict: Verdict,
    side: Side,
    pairs: int,
    *,
    costly: Sequence[Component] = (),
    several: bool = False,
    still_improving: bool = False,
    out_of_step: float = 0.0,
) -> Judgement | None:
    """None where no trained direction could be scored. `pairs`: lines that were trained on; `out_of_step`: share of them.

    `costly`: components that the default recipe does not have, of a pack that has untrained directions; `several`: it was
    trained with more of the base's languages than one, if only on a few lines.
    """
    trained = [entry for entry in verdict.scores.values() if not (entry["zero_shot"] or entry["few_lines"])]
    if not trained:
        return None
    score = fmean(entry["chrf"] for entry in trained)
    lines = sum(entry["lines"] for entry in trained)
    level = "unknown" if lines < FEWEST_LINES else _level(score, verdict)
    advice = [
        *_aligned(out_of_step),
        *(_more_text(side, pairs) if level != "unknown" and _has_room(score, level) else ()),
        *(_more_steps() if still_improving and _has_room(score, level) else ()),
        *_recipe_cost(costly, side, several),
    ]
    return Judgement(
        level=level,
        score=score,
        own=verdict.own,
        copying=verdict.copying,
        reasons=tuple(_reasons(score, verdict) if level != "unknown" else _too_few(lines, score)),
        advice=tuple(advice),
    )


def _level(score: float, verdict: Verdict) -> Level:
    own = verdict.own
    if score < verdict.copying + ABOVE_COPYING:
        return "unusable"
    has_standard = own is not None and own >= WEAK_BASE
    bounds = {level: share * own for level, share in SHARES.items()} if has_standard and own is not None else SCORES
    bounds = {level: least for level, least in bounds.items() if _wrong_numbers(verdict) <= WRONG_NUMBERS.get(level, 1.0)}
    return next((level for level, least in bounds.items() if score >= least), "unusable")


def _wrong_numbers(verdict: Verdict) -> float:
    """Share of the lines with a number that have others, as far as the base does better."""
    if verdict.numbers.lines < FEWEST_NUMBERS:
        return 0.0
    return max(0.0, verdict.numbers.share - verdict.own_numbers.share)


def _too_few(lines: int, score: float) -> list[str]:
    return [
        f"{lines} line{'s were' if lines != 1 else ' was'} scored (chrF {score:.1f}), which is too few to tell: at least "
        f"{FEWEST_LINES} are needed. Give sentences to test on (--test)."
    ]


def _reasons(score: float, verdict: Verdict) -> list[str]:
    said = [f"chrF {score:.1f} in the trained directions"]
    if verdict.own is not None:
        said.append(f"{verdict.own:.1f} in the base's own on the same text ({', '.join(verdict.own_directions)})")
    said.append(f"{verdict.copying:.1f} for the untranslated source")
    reasons = [f"{', '.join(said)}."]
    if score < verdict.copying + ABOVE_COPYING:
        reasons.append("It is no better than leaving the text as it is.")
    elif verdict.own is not None and verdict.own < WEAK_BASE:
        reasons.append("The base itself translates this text badly, so the score alone was judged.")
    elif verdict.own is None:
        reasons.append("The text has no two languages of the base to compare with, so the score alone was judged.")
    if _wrong_numbers(verdict) > WRONG_NUMBERS["excellent"]:
        reasons.append(
            f"Numbers are wrong in {verdict.numbers.wrong} of the {verdict.numbers.lines} translations with a number."
        )
    return reasons


def expected_gain(side: Side, pairs: int, more: int) -> float:
    """chrF that `more` instead of `pairs` line pairs brought where it was measured."""
    return _on_curve(side, more) - _on_curve(side, pairs)


def _on_curve(side: Side, pairs: int) -> float:
    """chrF for this number of line pairs: between two points that were measured, or beyond the nearest two."""
    curve = SIZE_CURVES[side]
    place = math.log(max(1, pairs))
    known = [(math.log(count), score) for count, score in curve]
    later = next((index for index, (at, _) in enumerate(known[1:], 1) if place <= at), len(known) - 1)
    (x0, y0), (x1, y1) = known[later - 1], known[later]
    return max(0.0, y0 + (y1 - y0) * (place - x0) / (x1 - x0))


def _aligned(out_of_step: float) -> list[str]:
    """Of text that was used although it is not aligned."""
    if not out_of_step:
        return []
    return [f"{max(out_of_step, 0.01):.0%} of the text was out of step, as said before training: aligning it helps most."]


def _has_room(score: float, level: Level) -> bool:
    """Whether more text or steps can make a difference that anybody sees."""
    return level != "excellent" and score < NO_ROOM


def _more_text(side: Side, pairs: int) -> list[str]:
    """How much more text would help, as far as that was measured."""
    if not pairs:
        return []
    if pairs >= SIZE_CURVES[side][-1][0]:
        return [f"{pairs:,} line pairs are more than was measured; look at the text before looking for more of it."]
    double, ten = expected_gain(side, pairs, 2 * pairs), expected_gain(side, pairs, 10 * pairs)
    return [
        f"More text would help: twice the {pairs:,} line pairs brought about {double:.0f} chrF, ten times as many {ten:.0f} "
        f"({CURVE_SOURCE}; other languages and texts differ)."
    ]


def _more_steps() -> list[str]:
    return [
        "The last validation was the best one, so training was still improving: more --steps may help too (with --fresh, or "
        "another --run)."
    ]


def _recipe_cost(components: Sequence[Component], side: Side, several: bool) -> list[str]:
    """What they cost in directions that are not trained, where that was measured: with English alone."""
    costs = dict.fromkeys(component.zero_shot_cost(side) for component in components)
    default = " The default recipe cost nothing." if side == "source" else ""
    lines = " That was without lines in other languages, which this pack had." if several else ""
    return [f"Zero-shot: {cost}{default}{lines}" for cost in costs if cost]


def is_still_improving(validations: Sequence[dict[str, Any]]) -> bool:
    """Whether the last of several validation losses is clearly the lowest."""
    losses = [event["loss"] for event in validations if "loss" in event]
    return len(losses) >= 3 and losses[-1] < 0.995 * min(losses[:-1])
