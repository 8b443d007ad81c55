"""The sampler's shares, its epochs, and its being a function of (seed, number) alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from graftmt.data import Direction, PairSampler, TokenizedCorpus, select_directions, temperature_probabilities
from graftmt.data.sampling import mixed_probabilities, shuffled
from graftmt.errors import ConfigError, DataError

RandomCorpus = Callable[..., TokenizedCorpus]

# The paper's table of the ParaCrawl corpus: millions of lines with English, and (in a hidden column) the probability at T = 5
# that a line of English-centric training has this target language. English as a target has the other half.
PARACRAWL = {
    "fr": (95.43, 0.038),
    "de": (76.49, 0.036),
    "es": (72.97, 0.036),
    "it": (38.05, 0.031),
    "pt": (29.18, 0.030),
    "nl": (27.36, 0.029),
    "nb": (15.38, 0.026),
    "cs": (12.92, 0.025),
    "pl": (12.88, 0.025),
    "sv": (10.97, 0.025),
    "da": (9.79, 0.024),
    "el": (8.92, 0.024),
    "fi": (6.83, 0.022),
    "hr": (6.34, 0.022),
    "hu": (6.29, 0.022),
    "bg": (6.10, 0.022),
    "ro": (5.79, 0.022),
    "sk": (4.56, 0.021),
    "lt": (4.03, 0.020),
}

SIZES = st.lists(st.integers(1, 10**9), min_size=1, max_size=20)
UNEVEN = {"de": 0.9, "ru": 0.5}
"""Shares of missing lines, which make directions of very different sizes."""


def sampler_of(corpus: TokenizedCorpus, view: str = "multi-parallel", *, seed: int = 1, **options: object) -> PairSampler:
    settings: dict[str, object] = {"temperature": 5.0, "max_length": 1000, **options}
    return PairSampler(corpus, select_directions(view, corpus.languages), seed=seed, **settings)  # type: ignore[arg-type]


@given(size=st.integers(1, 3000), key=st.integers(-(2**70), 2**70))
def test_shuffled_is_a_permutation(size: int, key: int) -> None:
    assert sorted(shuffled(np.arange(size), size, key).tolist()) == list(range(size))


@given(size=st.integers(1, 2**31), key=st.integers(0, 2**64 - 1), data=st.data())
def test_shuffled_is_one_to_one_for_sizes_no_table_would_fit(size: int, key: int, data: st.DataObject) -> None:
    positions = data.draw(st.lists(st.integers(0, size - 1), max_size=50, unique=True))
    images = shuffled(np.array(positions, dtype=np.int64), size, key).tolist()
    assert len(set(images)) == len(positions)
    assert all(0 <= image < size for image in images)


@given(parts=st.lists(st.tuples(st.integers(1, 200), st.integers(0, 2**64 - 1)), min_size=1, max_size=8))
def test_many_permutations_at_once_are_as_one_by_one(parts: list[tuple[int, int]]) -> None:
    counts = [size for size, _ in parts]
    sizes, keys = np.repeat(counts, counts), np.repeat(np.array([key for _, key in parts], dtype=np.uint64), counts)
    together = shuffled(np.concatenate([np.arange(size) for size in counts]), sizes, keys)
    assert together.tolist() == [image for size, key in parts for image in shuffled(np.arange(size), size, key).tolist()]


def test_shuffled_leaves_no_order_behind() -> None:
    size = 10_000
    order, other = shuffled(np.arange(size), size, 1), shuffled(np.arange(size), size, 2)
    # In a random order neighbours are a third of the size apart, and few elements stay; keys give unlike orders.
    assert abs(np.abs(np.diff(order)).mean() / size - 1 / 3) < 0.02
    assert (order == np.arange(size)).sum() < 10
    assert (order == other).sum() < 10


@given(sizes=SIZES, temperature=st.floats(0.05, 100))
def test_probabilities_are_proportional_to_a_power_of_the_size(sizes: list[int], temperature: float) -> None:
    probabilities = temperature_probabilities(sizes, temperature)
    assert probabilities.sum() == pytest.approx(1)
    logarithms = np.log(np.array(sizes, dtype=np.float64)) / temperature
    expected = np.exp(logarithms - np.logaddexp.reduce(logarithms))
    assert probabilities == pytest.approx(expected, abs=1e-12)


@given(sizes=SIZES)
def test_temperature_one_follows_the_data_and_infinity_is_even(sizes: list[int]) -> None:
    assert temperature_probabilities(sizes, 1) == pytest.approx(np.array(sizes) / sum(sizes))
    for temperature in (1e9, float("inf")):
        assert temperature_probabilities(sizes, temperature) == pytest.approx(np.full(len(sizes), 1 / len(sizes)))


def test_a_direction_without_lines_is_never_drawn() -> None:
    assert temperature_probabilities([0, 10, 10], 5).tolist() == [0, 0.5, 0.5]


@pytest.mark.parametrize("temperature", [0, -1, float("nan")])
def test_a_temperature_must_be_above_zero(temperature: float) -> None:
    with pytest.raises(ConfigError, match="sampling temperature is"):
        temperature_probabilities([1, 2], temperature)


def test_probabilities_are_those_of_the_paper() -> None:
    sizes = {}
    for language, (millions, _) in PARACRAWL.items():
        sizes[Direction("en", language)] = sizes[Direction(language, "en")] = round(millions * 1e6)
    targets: Counter[str] = Counter()
    for direction, probability in zip(sizes, temperature_probabilities(list(sizes.values()), 5), strict=True):
        targets[direction.target] += probability
    assert targets.pop("en") == pytest.approx(0.5)
    assert targets == pytest.approx({language: printed for language, (_, printed) in PARACRAWL.items()}, abs=0.0005)


@given(sizes=SIZES, shares=st.lists(st.floats(0, 0.1), max_size=6), temperature=st.floats(0.5, 10))
def test_fixed_directions_keep_their_probability_and_the_rest_share_what_is_left(
    sizes: list[int], shares: list[float], temperature: float
) -> None:
    assume(len(shares) < len(sizes))
    named = {Direction("en", f"x{number}"): size for number, size in enumerate(sizes)}
    fixed = dict(zip(named, shares, strict=False))
    probabilities = dict(zip(named, mixed_probabilities(named, temperature, fixed), strict=True))
    assert sum(probabilities.values()) == pytest.approx(1)
    assert [probabilities[direction] for direction in fixed] == pytest.approx(shares)
    rest = [direction for direction in named if direction not in fixed]
    expected = temperature_probabilities([named[direction] for direction in rest], temperature) * (1 - sum(shares))
    assert [probabilities[direction] for direction in rest] == pytest.approx(expected)


@given(sizes=SIZES, share=st.floats(0, 0.5), factor=st.floats(0.1, 10), temperature=st.floats(0.5, 10))
def test_factors_multiply_what_temperature_gives_beside_fixed_directions(
    sizes: list[int], share: float, factor: float, temperature: float
) -> None:
    assume(len(sizes) > 2)
    named = {Direction("en", f"x{number}"): size for number, size in enumerate(sizes)}
    first, second, *others = named
    plain = dict(zip(named, mixed_probabilities(named, temperature, {first: share}), strict=True))
    found = dict(zip(named, mixed_probabilities(named, temperature, {first: share}, {second: factor}), strict=True))
    assert sum(found.values()) == pytest.approx(1)
    assert found[first] == pytest.approx(share)
    assert found[second] * plain[others[0]] == pytest.approx(factor * plain[second] * found[others[0]])


def test_fixed_probabilities_that_cannot_be_are_errors() -> None:
    sizes = {Direction("en", "fr"): 10, Direction("en", "de"): 20}
    with pytest.raises(ConfigError, match=r"add up to 1\.000; nothing is left for 1 other"):
        mixed_probabilities(sizes, 5, {Direction("en", "fr"): 1.0})
    with pytest.raises(ConfigError, match=r"add up to 1\.200"):
        mixed_probabilities(sizes, 5, {Direction("en", "fr"): 0.6, Direction("en", "de"): 0.6})
    with pytest.raises(ConfigError, match=r"of en-fr is -0\.1"):
        mixed_probabilities(sizes, 5, {Direction("en", "fr"): -0.1})
    with pytest.raises(ConfigError, match=r"of en-el is 0\.1.*en-fr, en-de"):
        mixed_probabilities(sizes, 5, {Direction("en", "el"): 0.1})


@pytest.mark.parametrize("temperature", [1.0, 5.0])
def test_directions_are_drawn_as_often_as_their_probabilities_say(random_corpus: RandomCorpus, temperature: float) -> None:
    sampler = sampler_of(random_corpus(missing=UNEVEN), temperature=temperature)
    expected = temperature_probabilities(list(sampler.sizes.values()), temperature)
    assert expected.max() > 1.5 * expected.min()
    blocks, size = 40, 5000
    drawn = sum(np.bincount(sampler.block(number, size)[0], minlength=len(expected)) for number in range(blocks))
    # Systematic sampling: over any stretch the counts are off by less than one.
    assert np.abs(drawn - expected * blocks * size).max() < 1


def test_fixed_probabilities_reach_the_draws(random_corpus: RandomCorpus) -> None:
    fixed = {Direction("en", "de"): 0.4}
    sampler = sampler_of(random_corpus(missing=UNEVEN), fixed=fixed)
    directions, _ = sampler.block(3, 10_000)
    assert (directions == sampler.directions.index(Direction("en", "de"))).mean() == pytest.approx(0.4, abs=0.001)


def test_each_line_comes_once_an_epoch_and_each_epoch_has_its_own_order(random_corpus: RandomCorpus) -> None:
    sampler = sampler_of(random_corpus(300, missing=UNEVEN))
    drawn: dict[int, list[int]] = {k: [] for k in range(len(sampler.directions))}
    for number in range(30):
        # Blocks that end in the middle of epochs, small enough that a direction is often drawn once only.
        for k, line in zip(*(part.tolist() for part in sampler.block(number, 777)), strict=True):
            drawn[k].append(line)
    for k, direction in enumerate(sampler.directions):
        lines = set(sampler.lines[direction].tolist())
        counts = Counter(drawn[k])
        assert set(counts) <= lines
        # Any stretch of draws has each line ⌊epochs⌋ or ⌈epochs⌉ times; where it starts within the first epoch is fixed.
        assert max(counts.values()) - min(counts[line] for line in lines) <= 1


def test_an_epoch_is_a_new_order_of_the_same_lines(random_corpus: RandomCorpus) -> None:
    sampler = sampler_of(random_corpus(500), "fr-en")
    size = sampler.pairs
    first, second = (sampler._draws(np.array([epoch * size]), np.array([size])) for epoch in range(2))
    assert sorted(first.tolist()) == sorted(second.tolist()) == sampler.lines[Direction("fr", "en")].tolist()
    assert (first == second).mean() < 0.05


def test_a_block_depends_on_seed_and_number_only(random_corpus: RandomCorpus) -> None:
    corpus = random_corpus(missing=UNEVEN)
    one, two, other = sampler_of(corpus), sampler_of(corpus), sampler_of(corpus, seed=2)
    in_order = [one.block(number, 1000) for number in range(6)]
    for number in (5, 0, 3, 3, 1):
        again = two.block(number, 1000)
        assert all(np.array_equal(a, b) for a, b in zip(in_order[number], again, strict=True))
    assert not np.array_equal(in_order[0][1], other.block(0, 1000)[1])


def test_the_order_within_a_block_is_mixed(random_corpus: RandomCorpus) -> None:
    directions, _ = sampler_of(random_corpus()).block(0, 6000)
    halves = [np.bincount(half, minlength=12) for half in np.split(directions, 2)]
    assert np.abs(halves[0] - halves[1]).max() < 0.3 * halves[0].max()


def test_only_pairs_with_text_of_fitting_length_on_both_sides_are_drawn(random_corpus: RandomCorpus) -> None:
    corpus, longest = random_corpus(missing=UNEVEN), 20
    sampler = sampler_of(corpus, max_length=longest)
    for k, line in zip(*sampler.block(0, 20_000), strict=True):
        for language in sampler.directions[k]:
            assert 0 < corpus.texts[language].lengths[line] <= longest
    for direction, size in sampler.sizes.items():
        fits = [(corpus.texts[side].lengths > 0) & (corpus.texts[side].lengths <= longest) for side in direction]
        assert size == (fits[0] & fits[1]).sum()
    assert sampler.longest == longest


def test_the_longest_line_is_one_of_a_pair(random_corpus: RandomCorpus) -> None:
    corpus = random_corpus(500)
    lengths = corpus.texts["en"].lengths
    partner = corpus.texts["fr"]
    partner.starts[:] = np.append(0, np.cumsum(np.where(lengths == lengths.max(), 0, partner.lengths)))
    sampler = sampler_of(corpus, "en-fr")
    lines = sampler.lines[Direction("en", "fr")]
    assert sampler.longest == max(lengths[lines].max(), partner.lengths[lines].max()) < lengths.max()


def test_directions_without_a_line_are_left_out_and_none_at_all_is_an_error(random_corpus: RandomCorpus) -> None:
    corpus = random_corpus(100, missing={"de": 1.0})
    assert all("de" not in direction for direction in sampler_of(corpus).directions)
    with pytest.raises(DataError, match=r"de-en .*'train'"):
        sampler_of(corpus, "de-en")
    with pytest.raises(DataError, match=r"at most 0 tokens; .*raise max_length"):
        sampler_of(corpus, max_length=0)
