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

MULTIPLE = 128
"""Tokens. Rows are a multiple of it, as matrix units and attention's blocks like it."""

LONGEST = 256
"""Tokens that attention is told to expect in a sentence, at least. It is what one of its blocks takes; fewer gain nothing."""


@dataclass(frozen=True)
class PackedShape:
    """The shape that all batches of a plan have, so that a GPU can replay one recorded step for all of them."""

    source: int
    """Tokens of the source row."""
    target: int
    sentences: int
    """Entries of the tables of starts, less one: sentences, then pieces of padding, then empty ones."""
    longest: int
    """No sentence and no piece of padding is longer."""

    @property
    def spare(self) -> int:
        """Tokens a row that no sentence takes. The rest of a row is cut into pieces of padding, as many in one row as in the
        other, so the fuller one must have a token for each piece of the emptier one."""
        return -(-max(self.source, self.target) // self.longest)

    @classmethod
    def expecting(cls, source: NDArray[np.int64], target: NDArray[np.int64], max_tokens: int, longest: int) -> PackedShape:
        """For pairs of such lengths: rows that fill up together, the longer one with `max_tokens`."""
        block = max(longest, LONGEST)
        spare = -(-max_tokens // block) + 1
        means = np.array([source.mean(), target.mean()])
        # 1 % more than the ratio of the means, since either row may be the first to be full; a single pair always fits.
        sizes = [max(min(max_tokens, 1.01 * max_tokens * mean / means.max()), longest + spare) for mean in means]
        rows = [-(-int(size) // MULTIPLE) * MULTIPLE for size in sizes]
        # About as many as fit on average, and then a sixth more: with these, the odd batch of short lines is cut early.
        sentences = int(1.17 * max_tokens / np.maximum(source, target).mean()) + 16
        return cls(rows[0], rows[1], sentences + spare, block)


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

    def tensors(self) -> tuple[Tensor, ...]:
        """All that a model reads of it."""
        sides = ((side.ids, side.positions, side.starts) for side in (self.source, self.target))
        return (*(tensor for side in sides for tensor in side), self.labels)

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

    shape: PackedShape

    def _measure(self, source: NDArray[np.int64], target: NDArray[np.int64]) -> None:
        longest = self.sampler.longest + self.extra_tokens
        self.shape = PackedShape.expecting(source, target, self.max_tokens, longest)

    def _cut(self, directions: NDArray[np.int64], lines: NDArray[np.int64]) -> list[Pairs]:
        order = np.random.default_rng([self.sampler.seed, len(lines), int(lines[0])]).permutation(len(lines))
        directions, lines = directions[order], lines[order]
        sides = [np.cumsum(side) for side in self._lengths(directions, lines)]
        shape = self.shape
        rooms, most = (shape.source - shape.spare, shape.target - shape.spare), shape.sentences - shape.spare
        batches, start = [], 0
        while start < len(lines):
            before = [side[start - 1] if start else 0 for side in sides]
            ends = [
                int(np.searchsorted(side, taken + room, side="right"))
                for side, taken, room in zip(sides, before, rooms, strict=True)
            ]
            end = max(start + 1, min(*ends, start + most))
            batches.append((directions[start:end], lines[start:end]))
            start = end
        return batches


class PackedMaker(BatchMaker):
    """Turns (direction, line) pairs into two rows of one shape."""

    def __init__(self, corpus: TokenizedCorpus, codec: Codec, shape: PackedShape) -> None:
        super().__init__(corpus, codec)
        self.shape = shape

    def make(self, directions: Sequence[Direction], lines: NDArray[np.int64]) -> PackedBatch:  # type: ignore[override]
        sources = self._tokens([direction.source for direction in directions], lines)
        targets = self._tokens([direction.target for direction in directions], lines)
        around = self._around(directions)
        source_tokens = len(sources.ids) + around.source_prefix.size + around.source_suffix.size
        rest = (self.shape.source - source_tokens, self.shape.target - len(targets.ids) - around.decoder_prefix.size)
        pieces = -(-max(rest) // self.shape.longest)
        assert pieces <= min(rest), "a plan leaves room for padding on both sides"
        source = self._row(around.source_prefix, sources, around.source_suffix, self.source_padding, rest[0], pieces)
        target = self._row(around.decoder_prefix, targets, around.nothing, self.target_padding, rest[1], pieces)
        labels = self._row(around.unlearned, targets, around.end, self.target_padding, rest[1], pieces)
        return PackedBatch(
            source,
            target,
            labels.ids,
            list(directions),
            lines.tolist(),
            target_tokens=len(targets.ids) + len(lines),
            source_tokens=source_tokens,
        )

    def _row(
        self,
        prefix: NDArray[np.int64],
        tokens: LineTokens,
        suffix: NDArray[np.int64],
        padding: int,
        rest: int,
        pieces: int,
    ) -> PackedTokens:
        """Prefix, tokens and suffix of each sentence, then `rest` tokens of padding as `pieces` sentences."""
        before, after = prefix.shape[1], suffix.shape[1]
        lengths = np.concatenate([before + tokens.counts + after, _parts(rest, pieces)])
        starts = np.concatenate([[0], np.cumsum(lengths)])
        total = int(starts[-1])
        ids = np.full(total, padding, dtype=np.int64)
        first = starts[: len(prefix)]
        ids[(first[:, None] + np.arange(before)).ravel()] = prefix.ravel()
        ids[first[tokens.rows] + before + tokens.columns] = tokens.ids
        for column in range(after):
            ids[first + before + tokens.counts + column] = suffix[:, column]
        positions = np.arange(total) - np.repeat(starts[:-1], lengths)
        table = np.full(self.shape.sentences + 1, total, dtype=np.int32)
        table[: len(starts)] = starts
        return PackedTokens(torch.from_numpy(ids), torch.from_numpy(positions), torch.from_numpy(table), self.shape.longest)


def _parts(total: int, count: int) -> NDArray[np.int64]:
    """`total` in `count` nearly equal numbers."""
    parts = np.full(count, total // count, dtype=np.int64)
    parts[: total % count] += 1
    return parts
