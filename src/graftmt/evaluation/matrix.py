"""Averages over a matrix of directions, grouped as the paper does: →EN, ←EN and /EN. Layer 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from graftmt.errors import DataError
from graftmt.evaluation.metrics import DirectionScores


@dataclass(frozen=True, kw_only=True)
class Average:
    """The mean scores of a group of directions, each direction weighing the same."""

    bleu: float
    chrf: float
    directions: int


def averages(scores: Iterable[DirectionScores], pivot: str = "en") -> dict[str, Average]:
    """Means over the directions into the pivot, out of it, without it, and all; a group of none is left out."""
    scores = list(scores)
    repeated = [direction for direction, count in Counter(score.direction for score in scores).items() if count > 1]
    if repeated:
        raise DataError(
            f"{', '.join(repeated)}: scored more than once, which would weigh it more in the averages; "
            "give each direction once."
        )
    groups = {
        "to_pivot": [score for score in scores if score.target == pivot],
        "from_pivot": [score for score in scores if score.source == pivot],
        "non_pivot": [score for score in scores if pivot not in (score.source, score.target)],
        "all": scores,
    }
    return {name: _average(group) for name, group in groups.items() if group}


def _average(group: Sequence[DirectionScores]) -> Average:
    return Average(
        bleu=fmean(score.bleu for score in group),
        chrf=fmean(score.chrf for score in group),
        directions=len(group),
    )
