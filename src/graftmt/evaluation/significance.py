"""Whether one system is better than another or had more luck with the lines: a paired bootstrap, two-sided. Layer 1.

Lines are drawn as `sacrebleu.significance.PairedTest(…, test_type="bs")` draws them. The 95 % interval is that of the
difference over the resamples, and p is the level at which such an interval begins to hold 0. sacreBLEU's own p-value is kept
next to it: it counts resamples on one side alone, and so calls some differences significant whose interval holds 0.

Averages over directions, and over seeds, are tested in the same way: a resample draws lines of the test set, the same ones for
every direction, scores each direction on them and averages. sacreBLEU has no test for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from graftmt.errors import ConfigError, DataError
from graftmt.evaluation.scores import bleu_metric

MOST_RESAMPLES = 1_000_000
RESAMPLES = 1000
SEED = 12345
"""Both are sacreBLEU's."""
LEVEL = 0.05
"""A difference is called significant where its interval at this level does not hold 0."""
MARGIN = 0.5
"""Two systems are level where the whole interval of their difference lies within this many points of 0."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """How often lines are drawn again, and from which seed."""

    resamples: int = RESAMPLES
    seed: int = SEED

    def __post_init__(self) -> None:
        if self.resamples > MOST_RESAMPLES:
            raise ConfigError(f"resamples is {self.resamples}; expected at most {MOST_RESAMPLES:,}.")
        if self.resamples < 1 or self.seed < 1:  # sacreBLEU takes a seed of 0 for none at all
            raise ConfigError(f"resamples ({self.resamples}) and seed ({self.seed}) must be at least 1.")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Two scores, and how likely chance alone is to set them so far apart."""

    first: float
    second: float
    p: float | None
    """Two-sided; None where only sacreBLEU's was stored."""
    low: float
    high: float
    """Of the difference, its 95 % interval over the resamples."""
    sacrebleu_p: float
    """What `sacrebleu --paired-bs` says."""

    @property
    def difference(self) -> float:
        return self.second - self.first

    @property
    def significant(self) -> bool:
        return self.low > 0 or self.high < 0

    @property
    def level(self) -> bool:
        return not self.significant and self.low >= -MARGIN and self.high <= MARGIN


@dataclass(frozen=True, eq=False)
class Resampled:
    """One system in one direction and one metric."""

    score: float
    own: Floats
    """In each resample of the direction's own lines."""
    whole: Floats
    """In each resample of the whole test set."""
    signature: str


@dataclass(frozen=True, eq=False)
class Compared:
    """Two systems in one direction and one metric."""

    own: Difference
    """By drawing the direction's own lines: what sacreBLEU's test says."""
    first: Floats
    second: Floats
    """The systems' scores in each resample of the whole test set, for averages over directions."""
    signature: str


def compare_systems(
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str,
    resampling: Resampling,
    lines: Sequence[int] | None = None,
    of: int | None = None,
) -> dict[str, Compared]:
    """BLEU and chrF of two systems' translations of the same lines.

    `lines`: where these stand, from 0, among the `of` lines of the test set; without them they are all of it.
    """
    if not len(first) == len(second) == len(references) or not references:
        raise DataError(
            f"{len(first)} and {len(second)} translations cannot be compared on {len(references)} references; "
            "all three need one line per segment, in the same order, and at least one."
        )
    metrics: dict[str, BLEU | CHRF] = {"bleu": bleu_metric(tokenize), "chrf": CHRF()}
    return {
        name: compare_resampled(
            *(resample(system, references, metric, resampling=resampling, lines=lines, of=of) for system in (first, second))
        )
        for name, metric in metrics.items()
    }


def resample_chrf(
    system: Sequence[str],
    references: Sequence[str],
    *,
    resampling: Resampling,
    lines: Sequence[int] | None = None,
    of: int | None = None,
) -> Resampled:
    """One system's chrF, for comparisons of one with many; the rest as for `compare_systems`."""
    if len(system) != len(references) or not references:
        raise DataError(f"{len(system)} translations cannot be scored with {len(references)} references.")
    return resample(system, references, CHRF(), resampling=resampling, lines=lines, of=of)


def resample(
    system: Sequence[str],
    references: Sequence[str],
    metric: BLEU | CHRF,
    *,
    resampling: Resampling,
    lines: Sequence[int] | None = None,
    of: int | None = None,
) -> Resampled:
    counted = metric._extract_corpus_statistics(list(system), [list(references)])
    # (line, statistic): whole numbers, whose sums over the lines of a resample decide its score
    statistics = np.array(counted, dtype=np.float64)
    own = whole = _scores(metric, _draws(len(references), resampling) @ statistics)
    if of is not None and len(references) < of:
        whole = _scores(metric, _draws(of, resampling)[:, np.array(lines)] @ statistics)
    signature = metric.get_signature()
    signature.update("bs", resampling.resamples)
    signature.update("seed", resampling.seed)
    return Resampled(min(100.0, float(metric._aggregate_and_compute(counted).score)), own, whole, str(signature))


def compare_resampled(first: Resampled, second: Resampled) -> Compared:
    """Two systems that were resampled alike."""
    own = difference(first.score, second.score, first.own, second.own)
    return Compared(own, first.whole, second.whole, first.signature)


def difference(first: float, second: float, first_resampled: Floats, second_resampled: Floats) -> Difference:
    """Scores that never differ have p = 1; sacreBLEU gives these the smallest p there is."""
    changes = second_resampled - first_resampled
    if first == second and not changes.any():
        return Difference(first=first, second=second, p=1.0, low=0.0, high=0.0, sacrebleu_p=1.0)
    low, high = np.quantile(changes, [LEVEL / 2, 1 - LEVEL / 2])
    return Difference(
        first=first,
        second=second,
        p=two_sided(changes),
        low=float(low),
        high=float(high),
        sacrebleu_p=one_sided(changes, second - first),
    )


def two_sided(changes: Floats) -> float:
    """Twice the share of resamples on the rarer side of 0, those at 0 counted on both."""
    rarer = min(int(np.sum(changes <= 0)), int(np.sum(changes >= 0)))
    return min(1.0, 2 * (rarer + 1) / (len(changes) + 1))


def one_sided(changes: Floats, real: float) -> float:
    """sacreBLEU's p-value, that of Moses' script: how often resamples stray upwards from their mean by the real difference."""
    samples = np.abs(changes)
    return (int(np.sum(samples - samples.mean() > abs(real))) + 1) / (len(samples) + 1)


def surviving(tested: Mapping[str, Difference]) -> set[str]:
    """The names of those that stay significant when all of them are corrected for being many, by Holm's method."""
    found = sorted((one.p, name) for name, one in tested.items() if one.p is not None)
    kept: set[str] = set()
    for rank, (p, name) in enumerate(found):
        if p > LEVEL / (len(found) - rank):
            break
        kept.add(name)
    return kept


def compare_averages(compared: Sequence[Compared]) -> Difference:
    """The mean over directions, tested on the resamples of the whole test set."""
    first = [one.own.first for one in compared]
    second = [one.own.second for one in compared]
    return difference(
        float(np.mean(first)),
        float(np.mean(second)),
        np.mean([one.first for one in compared], axis=0),
        np.mean([one.second for one in compared], axis=0),
    )


def _scores(metric: BLEU | CHRF, sums: Floats) -> Floats:
    """The score of each row of sums; in float32, as sacreBLEU's test computes them."""
    return np.array([metric._compute_score_from_stats(row).score for row in sums.astype(np.float32)], dtype=np.float64)


@lru_cache(maxsize=4)
def _draws(lines: int, resampling: Resampling) -> Floats:
    """(resample, line): how often the line was drawn, by sacreBLEU's generator in sacreBLEU's order."""
    generator = np.random.default_rng(resampling.seed)
    drawn = generator.choice(lines, size=(resampling.resamples, lines), replace=True)
    return np.array([np.bincount(row, minlength=lines) for row in drawn], dtype=np.float64)
