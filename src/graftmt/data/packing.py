"""Batches without padding: sentences one after the other, always as many tokens, so that a GPU sees one shape. Layer 3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftmt.data.batching import BatchMaker, BatchPlan, LineTokens, Pairs
from graftmt.data.cache import TokenizedCorpus
from graftmt.data.directions import Direction
from graftmt.model import PackedTokens
from graftmt.text import Codec

SPARE = 8
"""Tokens a side that no sentence takes: what is left of a row is made into so many sentences of padding at most."""

SHORTEST = 8
"""Tokens. A batch has room for as many sentences as if each had so few; more do not fit into its table of starts."""


@dataclass
class PackedBatch:
    """Like `Batch`, in two long rows. The decoder reads `target` and must give `labels`."""

    source: PackedTokens
    target: PackedTokens
    labels: Tensor
    """(Nt,)"""
    directions: list[Direction]
    lines: list[int]
    target_tokens: int
    source_tokens: int

    @property
    def size(self) -> int:
        """Tokens of both sides, padding included."""
        return self.source.ids.numel() + self.labels.numel()

    def pair(self, row: int) -> tuple[list[int], list[int]]:
        """Source and labels of one pair."""
        first, last = self.source.starts[row : row + 2].tolist()
        begin, end = self.target.starts[row : row + 2].tolist()
        return self.source.ids[first:last].tolist(), self.labels[begin:end].tolist()

    def to(self, device: torch.device) -> PackedBatch:
        if device.type == "cpu":
            return self
        return replace(
            self,
            source=_map(self.source, lambda tensor: tensor.to(device, non_blocking=True)),
            target=_map(self.target, lambda tensor: tensor.to(device, non_blocking=True)),
            labels=self.labels.to(device, non_blocking=True),
        )

    def pinned(self) -> PackedBatch:
        return replace(
            self,
            source=_map(self.source, Tensor.pin_memory),
            target=_map(self.target, Tensor.pin_memory),
            labels=self.labels.pin_memory(),
        )


def _map(tokens: PackedTokens, change: Callable[[Tensor], Tensor]) -> PackedTokens:
    ids, positions, starts = map(change, (tokens.ids, tokens.positions, tokens.starts))
    return PackedTokens(ids, positions, starts, tokens.longest)


class PackedPlan(BatchPlan):
    """Pairs in random order, as many in a batch as fit: lengths need not be alike where nothing is padded."""

    def _cut(self, directions: NDArray[np.int64], lines: NDArray[np.int64]) -> list[Pairs]:
        order = np.random.default_rng([self.sampler.seed, len(lines), int(lines[0])]).permutation(len(lines))
        directions, lines = directions[order], lines[order]
        sides = [np.cumsum(side) for side in self._lengths(directions, lines)]
        room, most = self.max_tokens - SPARE, self.max_tokens // SHORTEST
        batches, start = [], 0
        while start < len(lines):
            before = [side[start - 1] if start else 0 for side in sides]
            ends = [int(np.searchsorted(side, taken + room, side="right")) for side, taken in zip(sides, before, strict=True)]
            end = max(start + 1, min(*ends, start + most))
            batches.append((directions[start:end], lines[start:end]))
            start = end
        return batches


class PackedMaker(BatchMaker):
    """Turns (direction, line) pairs into two rows of `tokens` tokens each."""

    def __init__(self, corpus: TokenizedCorpus, codec: Codec, tokens: int, longest: int) -> None:
        super().__init__(corpus, codec)
        self.tokens, self.longest = tokens, longest

    def make(self, directions: Sequence[Direction], lines: NDArray[np.int64]) -> PackedBatch:  # type: ignore[override]
        sources = self._tokens([direction.source for direction in directions], lines)
        targets = self._tokens([direction.target for direction in directions], lines)
        source_prefix, decoder_prefix = self._prefixes(directions)
        unlearned = np.full_like(decoder_prefix[:, 1:], self.padding_id)
        source_rest = self.tokens - len(sources.ids) - source_prefix.size - len(lines)
        target_rest = self.tokens - len(targets.ids) - decoder_prefix.size
        pieces = min(source_rest, target_rest, SPARE)
        assert pieces >= 1, "a plan leaves room for padding on both sides"
        source = self._row(source_prefix, sources, source_rest, pieces, end=True)
        target = self._row(decoder_prefix, targets, target_rest, pieces, end=False)
        labels = self._row(unlearned, targets, target_rest, pieces, end=True)
        return PackedBatch(
            source,
            target,
            labels.ids,
            list(directions),
            lines.tolist(),
            target_tokens=len(targets.ids) + len(lines),
            source_tokens=len(sources.ids) + len(lines) + source_prefix.size,
        )

    def _row(self, prefix: NDArray[np.int64], tokens: LineTokens, rest: int, pieces: int, *, end: bool) -> PackedTokens:
        """Prefix, tokens and perhaps an end of each sentence, then `rest` tokens of padding as `pieces` sentences."""
        before = prefix.shape[1]
        lengths = np.concatenate([before + tokens.counts + end, _parts(rest, pieces)])
        starts = np.concatenate([[0], np.cumsum(lengths)])
        ids = np.full(self.tokens, self.padding_id, dtype=np.int64)
        first = starts[: len(prefix)]
        ids[(first[:, None] + np.arange(before)).ravel()] = prefix.ravel()
        ids[first[tokens.rows] + before + tokens.columns] = tokens.ids
        if end:
            ids[first + before + tokens.counts] = self.end_id
        positions = np.arange(self.tokens) - np.repeat(starts[:-1], lengths)
        # A table of one size for all batches: empty sentences at its end.
        table = np.full(self.tokens // SHORTEST + SPARE + 1, self.tokens, dtype=np.int32)
        table[: len(starts)] = starts
        longest = max(self.longest, int(lengths.max()))
        return PackedTokens(torch.from_numpy(ids), torch.from_numpy(positions), torch.from_numpy(table), longest)


def _parts(total: int, count: int) -> NDArray[np.int64]:
    """`total` in `count` nearly equal numbers."""
    parts = np.full(count, total // count, dtype=np.int64)
    parts[: total % count] += 1
    return parts
