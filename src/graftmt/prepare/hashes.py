"""Which lines were seen before, in eight bytes a line. Layer 4."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Hashes: TypeAlias = NDArray[np.uint64]


class SeenLines:
    """A set of 64-bit hashes as sorted arrays, each at least twice as long as the next, merged when they are not.

    Takes 8 bytes a line and 16 while the longest arrays merge. Two different lines of n have the same hash with a chance of
    n²/2⁶⁵: 0.5 % that a single line of 450 million is taken for a duplicate by mistake.
    """

    def __init__(self) -> None:
        self.runs: list[Hashes] = []

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def has(self, lines: Sequence[Sequence[str]]) -> list[bool]:
        """Whether each of the lines was added before."""
        hashes = np.fromiter(map(hash_of, lines), dtype=np.uint64, count=len(lines))
        known = np.zeros(len(hashes), dtype=bool)
        for run in self.runs:
            places = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            known |= run[places] == hashes
        return [bool(value) for value in known]

    def add(self, lines: Sequence[Sequence[str]]) -> list[bool]:
        """Whether each of the lines is new: neither among those added before nor earlier among these."""
        hashes = np.fromiter(map(hash_of, lines), dtype=np.uint64, count=len(lines))
        unique, first = np.unique(hashes, return_index=True)
        fresh = np.ones(len(unique), dtype=bool)
        for run in self.runs:
            places = np.minimum(np.searchsorted(run, unique), len(run) - 1)
            fresh &= run[places] != unique
        new = np.zeros(len(lines), dtype=bool)
        new[first[fresh]] = True
        if fresh.any():
            self.runs.append(unique[fresh])
        while len(self.runs) > 1 and len(self.runs[-2]) < 2 * len(self.runs[-1]):
            merged = np.concatenate((self.runs.pop(), self.runs.pop()))
            merged.sort()
            self.runs.append(merged)
        return [bool(value) for value in new]


def hash_of(line: Sequence[str]) -> int:
    """The same on every machine; texts are kept apart by their lengths, so that ("ab", "") is not ("a", "b")."""
    digest = blake2b(digest_size=8)
    for text in line:
        encoded = text.encode("utf-8", errors="surrogatepass")
        digest.update(len(encoded).to_bytes(4, "little"))
        digest.update(encoded)
    return int.from_bytes(digest.digest(), "little")
