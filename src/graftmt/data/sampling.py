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


def temperature_probabilities(sizes: Sequence[int], temperature: float) -> NDArray[np.float64]:
    """p_k ∝ D_k^(1/T): T = 1 follows the data, a high T evens directions out (the paper: 5)."""
    if temperature <= 0:
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
    sizes: Mapping[Direction, int], temperature: float, fixed: Mapping[Direction, float] | None = None
) -> NDArray[np.float64]:
    """Temperature sampling where some directions have a fixed probability and the rest share what is left."""
    fixed = fixed or {}
    directions = list(sizes)
    left = 1.0 - sum(fixed.values())
    free = [direction for direction in directions if direction not in fixed]
    if left < -1e-9 or (free and left <= 0):
        raise ConfigError(
            f"the fixed sampling probabilities add up to {1 - left:.3f}; nothing is left for {len(free)} other directions."
        )
    probabilities = np.array([fixed.get(direction, 0.0) for direction in directions])
    if free:
        shares = temperature_probabilities([sizes[direction] for direction in free], temperature)
        for direction, share in zip(free, shares, strict=True):
            probabilities[directions.index(direction)] = left * share
    return np.asarray(probabilities / probabilities.sum(), dtype=np.float64)


def shuffled(positions: NDArray[np.int64], size: int, key: int) -> NDArray[np.int64]:
    """A permutation of range(size), computed element by element: position i of the shuffled order, no table.

    A four-round Feistel network permutes the next power of four; values outside the range walk on until they are inside.
    """
    bits = max(1, (max(size - 1, 1).bit_length() + 1) // 2)
    mask = np.uint64((1 << bits) - 1)
    values = positions.astype(np.uint64)
    outside = np.ones(len(values), dtype=bool)
    while outside.any():
        left, right = values[outside] >> np.uint64(bits), values[outside] & mask
        for number in range(4):
            left, right = right, left ^ (_mix(right, key * 4 + number) & mask)
        values[outside] = (left << np.uint64(bits)) | right
        outside = values >= size
    return values.astype(np.int64)


def _mix(values: NDArray[np.uint64], key: int) -> NDArray[np.uint64]:
    """A 64-bit finaliser (multiply, shift, xor), different for each key."""
    with np.errstate(over="ignore"):
        mixed = values + np.uint64((key * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & 0xFFFFFFFFFFFFFFFF)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


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
    ) -> None:
        self.seed = seed
        self.lines: dict[Direction, NDArray[np.int32]] = {}
        lengths = {language: text.lengths for language, text in corpus.texts.items()}
        usable = {language: (length > 0) & (length <= max_length) for language, length in lengths.items()}
        for direction in directions:
            lines = np.flatnonzero(usable[direction.source] & usable[direction.target]).astype(np.int32)
            if len(lines):
                self.lines[direction] = lines
        if not self.lines:
            listed = ", ".join(str(direction) for direction in list(directions)[:5])
            raise DataError(
                f"no line pair of {listed}{' …' * (len(directions) > 5)} in the split {corpus.split!r} has text on both sides "
                f"and at most {max_length} tokens; check the files, or raise max_length."
            )
        self.directions = list(self.lines)
        self.longest = max(int(lengths[language][usable[language]].max(initial=0)) for pair in self.lines for language in pair)
        self.sizes = {direction: len(lines) for direction, lines in self.lines.items()}
        self.probabilities = mixed_probabilities(self.sizes, temperature, fixed)

    @property
    def pairs(self) -> int:
        return sum(self.sizes.values())

    def block(self, number: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Block `number` of `size` draws: the index of each draw's direction, and its line."""
        random = np.random.default_rng([self.seed, number])
        # Draw j of direction k has happened floor(total × p_k + offset_k) times by then: exact shares, no history.
        offsets = np.random.default_rng([self.seed]).random(len(self.directions))
        first = np.floor(number * size * self.probabilities + offsets).astype(np.int64)
        last = np.floor((number + 1) * size * self.probabilities + offsets).astype(np.int64)
        directions = np.repeat(np.arange(len(self.directions)), last - first)
        lines = np.concatenate([self._draws(k, int(first[k]), int(last[k])) for k in range(len(self.directions))])
        order = random.permutation(len(directions))
        return directions[order], lines[order]

    def _draws(self, k: int, first: int, last: int) -> NDArray[np.int64]:
        """The lines of draws first … last of direction k: epoch after epoch, each in an order of its own."""
        lines = self.lines[self.directions[k]]
        size, result, position = len(lines), [], first
        while position < last:
            epoch, start = divmod(position, size)
            count = min(size - start, last - position)
            key = (self.seed * 1_000_003 + k) * 1_000_003 + epoch
            result.append(lines[shuffled(np.arange(start, start + count), size, key)])
            position += count
        return np.concatenate(result).astype(np.int64) if result else np.empty(0, dtype=np.int64)
