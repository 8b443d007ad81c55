"""Which line pair comes when: directions by temperature, lines in shuffled epochs, all by arithmetic. Layer 3.

Draw number n of the whole run is a function of (seed, n): nothing is consumed, so nothing has to be stored to resume.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from graftmt.data.cache import TokenizedCorpus
from graftmt.data.directions import Direction
from graftmt.errors import ConfigError, DataError

# Arithmetic on 64-bit numbers without a sign, modulo 2^64.
_UINT64 = 0xFFFFFFFFFFFFFFFF
_GOLDEN = 0x9E3779B97F4A7C15
_OFFSET = np.uint64(0x632BE59BD9B4E019)
_ROUND_OFFSETS = [np.uint64(number * _GOLDEN & _UINT64) for number in range(4)]


def temperature_probabilities(sizes: Sequence[int], temperature: float) -> NDArray[np.float64]:
    """p_k ∝ D_k^(1/T): T = 1 follows the data, a high T evens directions out (the paper: 5)."""
    if not temperature > 0:
        raise ConfigError(
            f"the sampling temperature is {temperature}; expected a number above 0 (1 follows the data, 5 evens out)."
        )
    weights = np.asarray(sizes, dtype=np.float64)
    # Logarithms: 450M lines to the power of 1/0.2 would overflow.
    scaled = np.where(
        weights > 0,
        np.exp(np.log(np.maximum(weights, 1)) / temperature - np.log(weights.max(initial=1)) / temperature),
        0,
    )
    return np.asarray(scaled / scaled.sum(), dtype=np.float64)


def mixed_probabilities(
    sizes: Mapping[Direction, int],
    temperature: float,
    fixed: Mapping[Direction, float] | None = None,
    factors: Mapping[Direction, float] | None = None,
) -> NDArray[np.float64]:
    """Temperature sampling where some directions have a fixed probability and the rest share what is left.

    `factors`: how many times as often as by temperature alone a direction is drawn, compared with the others.
    """
    fixed, factors = fixed or {}, factors or {}
    directions = list(sizes)
    for direction, probability in fixed.items():
        if direction not in sizes or not probability >= 0:
            raise ConfigError(
                f"the fixed sampling probability of {direction} is {probability}; expected 0 or more, and a direction of "
                f"those with lines: {', '.join(map(str, directions))}."
            )
    left = 1.0 - sum(fixed.values())
    free = [direction for direction in directions if direction not in fixed]
    if left < -1e-9 or (free and left <= 0):
        raise ConfigError(
            f"the fixed sampling probabilities add up to {1 - left:.3f}; nothing is left for {len(free)} other directions."
        )
    probabilities = np.array([fixed.get(direction, 0.0) for direction in directions])
    if free:
        shares = temperature_probabilities([sizes[direction] for direction in free], temperature)
        if factors:
            shares = shares * [factors.get(direction, 1.0) for direction in free]
            shares /= shares.sum()
        for direction, share in zip(free, shares, strict=True):
            probabilities[directions.index(direction)] = left * share
    return np.asarray(probabilities / probabilities.sum(), dtype=np.float64)


def shuffled(positions: NDArray[np.int64], sizes: NDArray[np.int64] | int, keys: NDArray[np.uint64] | int) -> NDArray[np.int64]:
    """Element `position` of the permutation of range(size) that `key` chooses, for each of many: computed, no table.

    A four-round Feistel network permutes the next power of four; values outside the range walk on until they are inside.
    """
    limits = np.broadcast_to(np.asarray(sizes, dtype=np.uint64), positions.shape)
    keys = np.full(positions.shape, keys & _UINT64, dtype=np.uint64) if isinstance(keys, int) else keys
    round_keys = keys * np.uint64(4 * _GOLDEN & _UINT64) + _OFFSET
    # frexp gives the bits of a whole number; two halves of as many bits each hold every position.
    bits = np.maximum(1, (np.frexp(np.maximum(limits, 2) - 1.0)[1] + 1) // 2).astype(np.uint64)
    mask = (np.uint64(1) << bits) - np.uint64(1)
    result = positions.astype(np.uint64)
    values, outside = result, np.arange(len(result))
    while len(outside):
        left, right = values >> bits, values & mask
        for number in range(4):
            left, right = right, left ^ (_mix(right + round_keys + _ROUND_OFFSETS[number]) & mask)
        values = (left << bits) | right
        result[outside] = values
        again = values >= limits
        values, outside, limits, bits, mask, round_keys = (
            array[again] for array in (values, outside, limits, bits, mask, round_keys)
        )
    return result.astype(np.int64)


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit finaliser: multiply, shift, xor."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))


class PairSampler:
    """The endless stream of line pairs of one training stage, with random access.

    Blocks of `block_size` draws: each holds the directions in proportion to their probabilities (systematic sampling, so the
    shares are exact over any stretch), in shuffled order; each direction goes through its lines in shuffled epochs.
    """

    def __init__(
        self,
        corpus: TokenizedCorpus,
        directions: Sequence[Direction],
        *,
        temperature: float,
        max_length: int,
        seed: int,
        fixed: Mapping[Direction, float] | None = None,
        factors: Mapping[Direction, float] | None = None,
    ) -> None:
        self.seed = seed
        self.lines: dict[Direction, NDArray[np.int32]] = {}
        self.longest = 0
        lengths = {language: text.lengths for language, text in corpus.texts.items()}
        usable = {language: (length > 0) & (length <= max_length) for language, length in lengths.items()}
        for direction in directions:
            # Both ways between two languages have the same lines: kept once.
            lines = self.lines.get(Direction(direction.target, direction.source))
            if lines is None:
                lines = np.flatnonzero(usable[direction.source] & usable[direction.target]).astype(np.int32)
            if len(lines):
                self.lines[direction] = lines
                self.longest = max(self.longest, *(int(lengths[language][lines].max()) for language in direction))
        if not self.lines:
            listed = ", ".join(str(direction) for direction in list(directions)[:5])
            raise DataError(
                f"no line pair of {listed}{' …' * (len(directions) > 5)} in the split {corpus.split!r} has text on both sides "
                f"and at most {max_length} tokens; check the files, or raise max_length."
            )
        self.directions = list(self.lines)
        self.sizes = {direction: len(lines) for direction, lines in self.lines.items()}
        self.probabilities = mixed_probabilities(self.sizes, temperature, fixed, factors)

    @property
    def pairs(self) -> int:
        return sum(self.sizes.values())

    def block(self, number: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Block `number` of `size` draws: the index of each draw's direction, and its line."""
        # Draw j of direction k has happened floor(total × p_k + offset_k) times by then: exact shares, no history.
        offsets = np.random.default_rng([self.seed]).random(len(self.directions))
        first = np.floor(number * size * self.probabilities + offsets).astype(np.int64)
        last = np.floor((number + 1) * size * self.probabilities + offsets).astype(np.int64)
        directions = np.repeat(np.arange(len(self.directions)), last - first)
        lines = self._draws(first, last - first)
        order = np.random.default_rng([self.seed, number]).permutation(len(directions))
        return directions[order], lines[order]

    def _draws(self, first: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The lines of draws first … first + count - 1 of each direction: epoch after epoch, each in an order of its own."""
        ends = np.cumsum(counts)
        numbers = np.arange(ends[-1]) + np.repeat(first - (ends - counts), counts)
        sizes = np.repeat(list(self.sizes.values()), counts)
        epochs, positions = np.divmod(numbers, sizes)
        keys = [(self.seed * 1_000_003 + k) * 1_000_003 & _UINT64 for k in range(len(counts))]
        lines = shuffled(positions, sizes, np.repeat(np.array(keys, dtype=np.uint64), counts) + epochs.astype(np.uint64))
        for direction, start, end in zip(self.directions, ends - counts, ends, strict=True):
            lines[start:end] = self.lines[direction][lines[start:end]]
        return lines
