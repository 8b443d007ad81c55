"""Draws and scores are sacreBLEU's own, p is two-sided, and averages are tested on the same draws."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from graftmt.errors import ConfigError, DataError
from graftmt.evaluation.significance import Difference, Resampling, compare_averages, compare_systems, difference, surviving

WORDS = ["the", "a", "cat", "dog", "house", "tree", "went", "saw", "big", "small", "red", "on", "in", "under"]
FEW = Resampling(resamples=200)


def noisy(lines: list[str], right: float, seed: int) -> list[str]:
    """Each word stays with this probability."""
    chance = random.Random(seed)
    return [" ".join(word if chance.random() < right else chance.choice(WORDS) for word in line.split()) for line in lines]


CHANCE = random.Random(1)
REFERENCES = [" ".join(CHANCE.choices(WORDS, k=CHANCE.randint(4, 14))) for _ in range(60)]
WORSE, BETTER, MUCH_BETTER = noisy(REFERENCES, 0.75, 1), noisy(REFERENCES, 0.78, 2), noisy(REFERENCES, 0.95, 3)


@pytest.mark.parametrize("better", [BETTER, MUCH_BETTER])
@pytest.mark.parametrize("seed", [12345, 7])
@pytest.mark.parametrize("tokenize", ["13a", "char"])
def test_scores_and_p_values_are_those_of_sacrebleu(
    monkeypatch: pytest.MonkeyPatch, better: list[str], seed: int, tokenize: str
) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", str(seed))
    metrics = {"BLEU": BLEU(tokenize=tokenize), "chrF2": CHRF()}
    test = PairedTest([("worse", WORSE), ("better", better)], metrics, [REFERENCES], test_type="bs", n_samples=200)
    signatures, expected = test()
    found = compare_systems(WORSE, better, REFERENCES, tokenize=tokenize, resampling=Resampling(resamples=200, seed=seed))
    for name, peer in (("bleu", "BLEU"), ("chrf", "chrF2")):
        baseline, system = expected[peer]
        assert (found[name].own.first, found[name].own.second) == (baseline.score, system.score)
        assert found[name].own.sacrebleu_p == system.p_value
        assert found[name].signature == str(signatures[peer])


def test_a_large_difference_is_significant_and_a_small_one_is_not() -> None:
    large = compare_systems(WORSE, MUCH_BETTER, REFERENCES, tokenize="13a", resampling=FEW)["chrf"].own
    small = compare_systems(WORSE, noisy(REFERENCES, 0.75, 9), REFERENCES, tokenize="13a", resampling=FEW)["chrf"].own
    assert large.significant and large.p is not None and large.p < 0.02 and large.low > 0
    assert not small.significant and small.low < 0 < small.high
    assert large.difference == large.second - large.first > 0


def test_a_system_does_not_differ_from_itself() -> None:
    for found in compare_systems(WORSE, WORSE, REFERENCES, tokenize="13a", resampling=FEW).values():
        assert (found.own.difference, found.own.p, found.own.significant) == (0, 1, False)


def test_the_mean_of_one_direction_is_tested_as_the_direction_is() -> None:
    for found in compare_systems(WORSE, BETTER, REFERENCES, tokenize="13a", resampling=FEW).values():
        assert compare_averages([found]) == found.own


def test_a_mean_is_tested_on_the_same_lines_in_every_direction() -> None:
    """The second direction is the first once more: a mean over both knows no more than one of them."""
    found = compare_systems(WORSE, BETTER, REFERENCES, tokenize="13a", resampling=FEW)["chrf"]
    assert compare_averages([found, found]) == found.own
    other = compare_systems(BETTER, WORSE, REFERENCES, tokenize="13a", resampling=FEW)["chrf"]
    cancelled = compare_averages([found, other])
    assert cancelled.difference == pytest.approx(0)
    assert (cancelled.low, cancelled.high) == pytest.approx((0, 0))


def test_lines_that_a_direction_lacks_are_left_out_of_every_draw() -> None:
    """Resamples of sixty lines, of which this direction has forty: as if the others were not there."""
    lines = [line for line in range(60) if line % 3]
    chosen = [[system[line] for line in lines] for system in (WORSE, BETTER, REFERENCES)]
    found = compare_systems(*chosen, tokenize="13a", resampling=FEW, lines=lines, of=60)["bleu"]
    alone = compare_systems(*chosen, tokenize="13a", resampling=FEW)["bleu"]
    assert found.own == alone.own
    drawn = np.random.default_rng(FEW.seed).choice(60, size=(200, 60), replace=True)[17]
    here = [line for line in drawn if line in lines]
    resample = BLEU().corpus_score([BETTER[line] for line in here], [[REFERENCES[line] for line in here]])
    assert found.second[17] == pytest.approx(resample.score, rel=1e-5)


def test_sacrebleu_counts_the_resamples_that_stray() -> None:
    first, second = np.zeros(4), np.array([1.0, 2.0, 3.0, 6.0])  # strays from its mean, 3, by -2, -1, 0 and 3
    assert difference(0, 2.5, first, second).sacrebleu_p == 2 / 5
    assert difference(0, 3.5, first, second).sacrebleu_p == 1 / 5


def test_p_counts_the_rarer_side_twice() -> None:
    changes = np.array([-1.0, 0.0, *np.ones(97)])
    assert difference(0, 1, np.zeros(99), changes).p == 2 * 3 / 100
    assert difference(0, -1, np.zeros(99), -changes).p == 2 * 3 / 100
    assert difference(0, 1, np.zeros(2), np.array([-1.0, 1.0])).p == 1


@pytest.mark.slow
@given(st.lists(st.floats(-5, 5), min_size=200, max_size=400), st.floats(-2, 2))
def test_a_difference_is_significant_where_its_interval_does_not_hold_zero(changes: list[float], shift: float) -> None:
    moved = np.array(changes) + shift
    found = difference(0, 1, np.zeros(len(moved)), moved)
    assert found.significant == (not found.low <= 0 <= found.high)
    assert found.p is not None and (found.p < 0.03) <= found.significant <= (found.p < 0.07)


def test_sacrebleu_calls_differences_significant_whose_interval_holds_zero() -> None:
    """Why p is not sacreBLEU's: its mean of absolute differences is above the mean difference, and counts one side alone."""
    drawn = np.random.default_rng(1).normal(1.75, 1, 1000)
    found = difference(0, 1.75, np.zeros(1000), drawn)
    assert found.low < 0 < found.high and not found.significant
    assert found.p is not None and found.p > 0.05 > found.sacrebleu_p


def test_by_chance_alone_one_difference_in_twenty_is_significant() -> None:
    """Both systems translate each line well or badly with the same probability."""
    chance, found = np.random.default_rng(3), 0
    for _ in range(400):
        lines = chance.normal(0, 1, 80)
        draws = np.array([lines[chance.integers(0, 80, 80)].mean() for _ in range(200)])
        found += difference(0, float(lines.mean()), np.zeros(200), draws).significant
    assert 10 <= found <= 36


def test_level_is_an_interval_near_zero() -> None:
    near, wide = np.linspace(-0.3, 0.4, 100), np.linspace(-0.3, 2, 100)
    assert difference(0, 0.1, np.zeros(100), near).level
    assert not difference(0, 1, np.zeros(100), wide).level
    assert not difference(0, 0.3, np.zeros(100), near + 0.4).level  # near, and significant


def test_holm_keeps_what_many_tests_leave() -> None:
    def one(p: float) -> Difference:
        return Difference(first=0, second=1, p=p, low=0.1, high=1, sacrebleu_p=p)

    assert surviving({"a": one(0.01), "b": one(0.02), "c": one(0.04)}) == {"a", "b", "c"}
    assert surviving({"a": one(0.01), "b": one(0.03), "c": one(0.04)}) == {"a"}
    assert surviving({"a": one(0.02), "b": one(0.001), "c": one(0.9)}) == {"a", "b"}
    assert surviving({}) == set()


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(DataError, match="60 and 59 translations"):
        compare_systems(WORSE, BETTER[1:], REFERENCES, tokenize="13a", resampling=FEW)
    with pytest.raises(DataError, match="at least one"):
        compare_systems([], [], [], tokenize="13a", resampling=FEW)
    for wrong in ({"resamples": 0}, {"seed": 0}):
        with pytest.raises(ConfigError, match="at least 1"):
            Resampling(**wrong)
