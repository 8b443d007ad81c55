"""Batches bounded by tokens, each a pure function of (seed, step), and a thread that prepares them ahead. Layer 3."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftmt.data.cache import TokenizedCorpus
from graftmt.data.directions import Direction
from graftmt.data.sampling import PairSampler
from graftmt.errors import ConfigError
from graftmt.text import Codec

Pairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Indices of directions, and lines."""


@dataclass
class Batch:
    """Ids padded at the end. The decoder reads `decoder_input` and must give `labels` (padding where nothing counts)."""

    source: Tensor
    """(B, S)"""
    decoder_input: Tensor
    """(B, T)"""
    labels: Tensor
    """(B, T)"""
    directions: list[Direction]
    lines: list[int]
    target_tokens: int
    source_tokens: int

    @property
    def size(self) -> int:
        """Tokens of both sides, padding included."""
        return self.source.numel() + self.labels.numel()

    @property
    def padding_share(self) -> float:
        return 1 - (self.source_tokens + self.target_tokens) / self.size

    def pair(self, row: int) -> tuple[list[int], list[int]]:
        """Source and labels of one pair, padding included."""
        return self.source[row].tolist(), self.labels[row].tolist()

    def pinned(self) -> Batch:
        """In memory that a GPU can copy from while it works."""
        return replace(
            self,
            source=self.source.pin_memory(),
            decoder_input=self.decoder_input.pin_memory(),
            labels=self.labels.pin_memory(),
        )

    def to(self, device: torch.device) -> Batch:
        """A copy on `device`; pinned memory makes it overlap with what the device is doing."""
        if device.type == "cpu":
            return self
        return replace(
            self,
            source=self.source.to(device, non_blocking=True),
            decoder_input=self.decoder_input.to(device, non_blocking=True),
            labels=self.labels.to(device, non_blocking=True),
        )


class LineTokens(NamedTuple):
    """The tokens of some lines, each with its place in a matrix that has one row per line."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    ids: NDArray[np.int64]
    counts: NDArray[np.int64]
    """Tokens of each line."""


class Around(NamedTuple):
    """What stands before and after the tokens of each line of a batch: (B, rows) of ids, none where nothing does."""

    source_prefix: NDArray[np.int64]
    source_suffix: NDArray[np.int64]
    decoder_prefix: NDArray[np.int64]
    unlearned: NDArray[np.int64]
    """Before the labels."""
    end: NDArray[np.int64]
    """After the labels."""
    nothing: NDArray[np.int64]


class BatchMaker:
    """Turns (direction, line) pairs into batches of ids."""

    def __init__(self, corpus: TokenizedCorpus, codec: Codec) -> None:
        self.codec = codec
        self.source_padding, self.target_padding = codec.source_padding_id, codec.target_padding_id
        self.numbers = {language: number for number, language in enumerate(corpus.texts)}
        # Plain views of the mapped files: numpy's memmap class costs time at each access.
        self.ids = [np.asarray(text.ids) for text in corpus.texts.values()]
        self.starts = corpus.starts
        self.lengths = {language: corpus.lengths[number] for language, number in self.numbers.items()}

    def make(self, directions: Sequence[Direction], lines: NDArray[np.int64]) -> Batch:
        """The batch of these pairs: source: prefix, tokens, suffix; decoder input: prefix, tokens; labels: tokens, end."""
        sources = self._tokens([direction.source for direction in directions], lines)
        targets = self._tokens([direction.target for direction in directions], lines)
        around = self._around(directions)
        return Batch(
            torch.from_numpy(_matrix(around.source_prefix, sources, around.source_suffix, self.source_padding)),
            torch.from_numpy(_matrix(around.decoder_prefix, targets, around.nothing, self.target_padding)),
            torch.from_numpy(_matrix(around.unlearned, targets, around.end, self.target_padding)),
            list(directions),
            lines.tolist(),
            target_tokens=len(targets.ids) + len(lines),
            source_tokens=len(sources.ids) + around.source_prefix.size + around.source_suffix.size,
        )

    def _around(self, directions: Sequence[Direction]) -> Around:
        """What stands around the lines of a batch, looked up once for each of its directions."""
        codec = self.codec
        sources = {pair: codec.source_prefix(*pair) for pair in set(directions)}
        suffixes = {pair: codec.source_suffix(*pair) for pair in set(directions)}
        decoders = {pair: codec.decoder_prefix(pair.target) for pair in set(directions)}
        decoder_prefix = np.array([decoders[pair] for pair in directions], dtype=np.int64)
        return Around(
            source_prefix=np.array([sources[pair] for pair in directions], dtype=np.int64),
            source_suffix=np.array([suffixes[pair] for pair in directions], dtype=np.int64),
            decoder_prefix=decoder_prefix,
            # The forced part of the prefix beyond the first token is not learned: its label is padding.
            unlearned=np.full_like(decoder_prefix[:, 1:], self.target_padding),
            end=np.full((len(directions), 1), codec.end_id, dtype=np.int64),
            nothing=np.empty((len(directions), 0), dtype=np.int64),
        )

    def _tokens(self, languages: list[str], lines: NDArray[np.int64]) -> LineTokens:
        numbers = np.array([self.numbers[language] for language in languages])
        starts = self.starts[numbers, lines]
        counts = self.starts[numbers, lines + 1] - starts
        # Line after line in the order of the languages, so that each language's file is read at one stroke.
        order = np.argsort(numbers, kind="stable")
        many = counts[order]
        ends = np.cumsum(many)
        columns = np.arange(ends[-1]) - np.repeat(ends - many, many)
        positions = np.repeat(starts[order], many) + columns
        bounds = np.append(0, ends)[np.searchsorted(numbers[order], np.arange(len(self.ids) + 1))]
        ids = np.empty(len(positions), dtype=np.int64)
        for text, first, last in zip(self.ids, bounds[:-1], bounds[1:], strict=True):
            if first < last:
                ids[first:last] = text[positions[first:last]]
        return LineTokens(np.repeat(order, many), columns, ids, counts)


def _matrix(prefix: NDArray[np.int64], tokens: LineTokens, suffix: NDArray[np.int64], padding: int) -> NDArray[np.int64]:
    """(B, longest): each row a prefix, the tokens of a line, a suffix, then padding."""
    (rows, before), after = prefix.shape, suffix.shape[1]
    matrix = np.full((rows, before + int(tokens.counts.max()) + after), padding, dtype=np.int64)
    matrix[:, :before] = prefix
    matrix[tokens.rows, tokens.columns + before] = tokens.ids
    for column in range(after):
        matrix[np.arange(rows), tokens.counts + before + column] = suffix[:, column]
    return matrix


class BatchPlan:
    """Which pairs make the batch of each step.

    Steps come in pools of `pool_batches`. A pool takes the sampler's block of the same number, brings pairs of like lengths
    together, cuts them into batches of at most `max_tokens` padded tokens a side and shuffles the batches. The block is about
    as long as the pool needs. What one holds beyond that is left out: whole batches, drawn by lot, so of no special length.
    """

    def __init__(
        self,
        sampler: PairSampler,
        corpus: TokenizedCorpus,
        *,
        max_tokens: int,
        extra_tokens: int = 2,
        pool_batches: int = 512,
    ) -> None:
        self.sampler, self.max_tokens, self.pool_batches = sampler, max_tokens, pool_batches
        self.extra_tokens = extra_tokens
        self.lengths = corpus.lengths
        numbers = {language: number for number, language in enumerate(corpus.texts)}
        self.sources = np.array([numbers[direction.source] for direction in sampler.directions])
        self.targets = np.array([numbers[direction.target] for direction in sampler.directions])
        widest = sampler.longest + extra_tokens
        if widest > max_tokens:
            raise ConfigError(
                f"batch_tokens is {max_tokens}, but the data has a line of {widest} tokens with code and end; "
                "raise batch_tokens or lower max_length."
            )
        # A first guess takes padding for nothing; a trial shows how many batches it makes.
        source, target = self._lengths(*sampler.block(0, 10_000))
        self._measure(source, target)
        mean = np.maximum(source, target).mean()
        guess = int(pool_batches * max_tokens / mean) + 1
        trial = len(self._cut(*sampler.block(0, guess)))
        # A block holds its size give or take one draw for each direction; a batch is never empty.
        self.block_size = max(pool_batches + len(sampler.directions), int(1.01 * guess * pool_batches / trial))
        self.cached: tuple[int, list[Pairs]] | None = None

    def _measure(self, source: NDArray[np.int64], target: NDArray[np.int64]) -> None:
        """For plans that need to know what lengths to expect: those of some pairs."""

    def pairs(self, step: int) -> tuple[list[Direction], NDArray[np.int64]]:
        """The directions and lines of the batch of `step`."""
        pool, position = divmod(step, self.pool_batches)
        # Read and set once: another thread may be at another pool.
        cached = self.cached
        if cached is None or cached[0] != pool:
            self.cached = cached = (pool, self._pool(pool))
        directions, lines = cached[1][position]
        return [self.sampler.directions[k] for k in directions.tolist()], lines

    def _pool(self, number: int) -> list[Pairs]:
        """Exactly `pool_batches` batches."""
        batches = self._cut(*self.sampler.block(number, self.block_size))
        while len(batches) < self.pool_batches:
            directions, lines = batches.pop(max(range(len(batches)), key=lambda index: len(batches[index][1])))
            half = len(lines) // 2
            assert half, "a block has at least one pair for each batch"
            batches += [(directions[:half], lines[:half]), (directions[half:], lines[half:])]
        order = np.random.default_rng([self.sampler.seed, number, 1]).permutation(len(batches))
        return [batches[index] for index in order[: self.pool_batches]]

    def _cut(self, directions: NDArray[np.int64], lines: NDArray[np.int64]) -> list[Pairs]:
        """All these pairs in batches, alike in length on both sides."""
        source, target = self._lengths(directions, lines)
        width = np.maximum(source, target)
        # Bands of like width, sixteen from one power of two to the next (frexp is exact, so all machines agree); in a band by
        # the difference of the sides, up and down in turn, so that a batch across the border of two bands has like pairs too.
        mantissa, exponent = np.frexp(width)
        band = 16 * exponent.astype(np.int64) + (32 * mantissa).astype(np.int64)
        difference = np.where(band % 2, source - target, target - source)
        order = np.argsort(band * (1 << 32) + difference, kind="stable")
        width = width[order]
        batches, start = [], 0
        while start < len(order):
            widest = np.maximum.accumulate(width[start : start + self.max_tokens // int(width[start])])
            rows = int(np.searchsorted(widest * np.arange(1, len(widest) + 1), self.max_tokens, side="right"))
            part = order[start : start + rows]
            batches.append((directions[part], lines[part]))
            start += rows
        return batches

    def _lengths(self, directions: NDArray[np.int64], lines: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Tokens of each pair on both sides, code and end included."""
        source = self.lengths[self.sources[directions], lines].astype(np.int64)
        target = self.lengths[self.targets[directions], lines].astype(np.int64)
        return source + self.extra_tokens, target + self.extra_tokens


class BatchStream:
    """Batches from `first` to `last`, prepared ahead by a thread so that the device does not wait."""

    def __init__(self, plan: BatchPlan, maker: BatchMaker, first: int, last: int, *, ahead: int = 8, pin: bool = False) -> None:
        self.plan, self.maker, self.pin = plan, maker, pin
        self.steps = range(first, last)
        self.queue: queue.Queue[Batch | BaseException] = queue.Queue(maxsize=ahead)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._work, name="graftmt-batches", daemon=True)

    def __iter__(self) -> Iterator[Batch]:
        self.thread.start()
        try:
            for _ in self.steps:
                batch = self._get()
                if batch is None:
                    return
                if isinstance(batch, BaseException):
                    raise batch
                yield batch
        finally:
            self.close()

    def close(self) -> None:
        """Ends the thread and waits for it: one that is still in native code when Python ends can abort the process."""
        self.stopped.set()
        if self.thread.is_alive() and self.thread is not threading.current_thread():
            self.thread.join(timeout=5)

    def _work(self) -> None:
        try:
            for step in self.steps:
                batch = self.maker.make(*self.plan.pairs(step))
                if not self._put(batch.pinned() if self.pin else batch):
                    return
        except BaseException as error:  # it is raised again where the batches are read
            self._put(error)

    def _get(self) -> Batch | BaseException | None:
        """The next batch, or nothing once the stream is closed."""
        while not self.stopped.is_set():
            try:
                return self.queue.get(timeout=0.2)
            except queue.Empty:
                continue
        return None

    def _put(self, item: Batch | BaseException) -> bool:
        while not self.stopped.is_set():
            try:
                self.queue.put(item, timeout=0.2)
                return True
            except queue.Full:
                continue
        return False
