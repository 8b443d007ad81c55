"""Batches bounded by tokens, each a pure function of (seed, step), and a thread that prepares them ahead. Layer 3."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graftmt.data.cache import TokenizedCorpus
from graftmt.data.directions import Direction
from graftmt.data.sampling import PairSampler
from graftmt.errors import ConfigError
from graftmt.text import Tokenizer


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
    def padding_share(self) -> float:
        return 1 - (self.source_tokens + self.target_tokens) / (self.source.numel() + self.labels.numel())

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


class BatchMaker:
    """Turns (direction, line) pairs into batches of ids."""

    def __init__(self, corpus: TokenizedCorpus, tokenizer: Tokenizer) -> None:
        self.texts = corpus.texts
        self.tokenizer = tokenizer
        self.padding_id = tokenizer.vocabulary.padding_id
        self.end_id = tokenizer.vocabulary.end_id
        self.lengths = {language: text.lengths for language, text in corpus.texts.items()}

    def make(self, directions: Sequence[Direction], lines: NDArray[np.int64]) -> Batch:
        """The batch of these pairs: source = prefix + tokens + end; decoder input = prefix + tokens; labels = tokens + end."""
        sources = np.array([direction.source for direction in directions])
        targets = np.array([direction.target for direction in directions])
        ends = [self.end_id]
        source_prefixes = {d: self.tokenizer.source_prefix(d.source, d.target) for d in set(directions)}
        decoder_prefixes = {d: self.tokenizer.decoder_prefix(d.target) for d in set(directions)}
        source = self._matrix(sources, lines, [source_prefixes[d] for d in directions], ends)
        prefixes = [decoder_prefixes[d] for d in directions]
        decoder_input = self._matrix(targets, lines, prefixes, [])
        # The forced part of the prefix beyond the first token is not learned: its label is padding.
        skipped = [[self.padding_id] * (len(prefix) - 1) for prefix in prefixes]
        labels = self._matrix(targets, lines, skipped, ends)
        return Batch(
            torch.from_numpy(source),
            torch.from_numpy(decoder_input),
            torch.from_numpy(labels),
            list(directions),
            [int(line) for line in lines],
            target_tokens=int((labels != self.padding_id).sum()),
            source_tokens=int((source != self.padding_id).sum()),
        )

    def _matrix(
        self, languages: NDArray[np.str_], lines: NDArray[np.int64], prefixes: list[list[int]], suffix: list[int]
    ) -> NDArray[np.int64]:
        """(B, longest): each row a prefix, the tokens of a line, a suffix, then padding. One gather per language."""
        before = np.array([len(prefix) for prefix in prefixes])
        counts = np.empty(len(lines), dtype=np.int64)
        groups = [(str(language), np.flatnonzero(languages == language)) for language in np.unique(languages)]
        for language, rows in groups:
            counts[rows] = self.lengths[language][lines[rows]]
        matrix = np.full((len(lines), int((before + counts).max()) + len(suffix)), self.padding_id, dtype=np.int64)
        for column in range(int(before.max())):
            has = np.flatnonzero(before > column)
            matrix[has, column] = [prefixes[row][column] for row in has]
        for language, rows in groups:
            text, many = self.texts[language], counts[rows]
            within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
            ids = text.ids[np.repeat(text.starts[lines[rows]], many) + within]
            matrix[np.repeat(rows, many), np.repeat(before[rows], many) + within] = ids
        for number, token in enumerate(suffix):
            matrix[np.arange(len(lines)), before + counts + number] = token
        return matrix


class BatchPlan:
    """Which pairs make the batch of each step.

    Steps come in pools of `pool_batches`. A pool takes the sampler's block of the same number, sorts it into length buckets and
    cuts these into batches of at most `max_tokens` padded tokens a side; the batches of a pool are shuffled. The block is a
    little longer than needed and cut where the pool is full; its order is random, so what is cut is not of any special length.
    """

    def __init__(
        self,
        sampler: PairSampler,
        corpus: TokenizedCorpus,
        *,
        max_tokens: int,
        extra_tokens: int = 2,
        pool_batches: int = 64,
    ) -> None:
        self.sampler, self.max_tokens, self.pool_batches = sampler, max_tokens, pool_batches
        self.extra_tokens = extra_tokens
        lengths = {language: text.lengths for language, text in corpus.texts.items()}
        self.source_lengths = [lengths[direction.source] for direction in sampler.directions]
        self.target_lengths = [lengths[direction.target] for direction in sampler.directions]
        directions, lines = sampler.block(0, min(20_000, 4 * sampler.pairs))
        source, target = self._lengths(directions, lines)
        widest = sampler.longest + extra_tokens
        if widest > max_tokens:
            raise ConfigError(
                f"batch_tokens is {max_tokens}, but the data has a line of {widest} tokens with code and end; "
                "raise batch_tokens or lower max_length."
            )
        mean = self._bucket(np.maximum(source, target)).mean()
        self.block_size = max(1, int(pool_batches * max_tokens / mean * 1.05))
        self.cached: tuple[int, list[tuple[NDArray[np.int64], NDArray[np.int64]]]] | None = None

    def pairs(self, step: int) -> tuple[list[Direction], NDArray[np.int64]]:
        """The directions and lines of the batch of `step`."""
        pool, position = divmod(step, self.pool_batches)
        if self.cached is None or self.cached[0] != pool:
            self.cached = (pool, self._pool(pool))
        batches = self.cached[1]
        directions, lines = batches[position % len(batches)]
        return [self.sampler.directions[k] for k in directions], lines

    def _pool(self, number: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        directions, lines = self.sampler.block(number, self.block_size)
        source, target = self._lengths(directions, lines)
        width = self._bucket(np.maximum(source, target))
        rows = np.maximum(1, self.max_tokens // width)
        kept = self._fill(width, rows)
        # Within a bucket pairs of like lengths on both sides come together: less padding.
        order = kept[np.lexsort((target[kept], source[kept] // 4, width[kept]))]
        starts = np.flatnonzero(self._opens(width[order], rows[order]))
        batches = [(directions[part], lines[part]) for part in np.split(order, starts[1:])]
        shuffle = np.random.default_rng([self.sampler.seed, number, 1]).permutation(len(batches))
        return [batches[index] for index in shuffle]

    def _fill(self, width: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The longest prefix of the block that makes at most `pool_batches` batches."""
        by_bucket = np.argsort(width, kind="stable")
        opens = np.zeros(len(width), dtype=np.int64)
        opens[by_bucket] = self._opens(width[by_bucket], rows[by_bucket])
        return np.arange(int(np.searchsorted(np.cumsum(opens), self.pool_batches, side="right")))

    @staticmethod
    def _opens(width: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Of pairs sorted by bucket: which ones are the first of a batch."""
        new_bucket = np.flatnonzero(np.diff(width, prepend=-1))
        rank = np.arange(len(width)) - np.repeat(new_bucket, np.diff(np.append(new_bucket, len(width))))
        return np.asarray(rank % rows == 0)

    def _lengths(self, directions: NDArray[np.int64], lines: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Tokens of each pair on both sides, code and end included."""
        source, target = np.empty(len(lines), dtype=np.int64), np.empty(len(lines), dtype=np.int64)
        for k in np.unique(directions):
            rows = np.flatnonzero(directions == k)
            source[rows] = self.source_lengths[k][lines[rows]]
            target[rows] = self.target_lengths[k][lines[rows]]
        return source + self.extra_tokens, target + self.extra_tokens

    @staticmethod
    def _bucket(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Lengths rounded up: to 4 where short, then to an eighth of their power of two, at least 8."""
        step = np.maximum(4, 1 << np.maximum(0, np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64) - 3))
        return np.asarray(-(-lengths // step) * step)


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
                batch = self.queue.get()
                if isinstance(batch, BaseException):
                    raise batch
                yield batch
        finally:
            self.close()

    def close(self) -> None:
        self.stopped.set()

    def _work(self) -> None:
        try:
            for step in self.steps:
                batch = self.maker.make(*self.plan.pairs(step))
                if self.pin:
                    batch.source, batch.decoder_input = batch.source.pin_memory(), batch.decoder_input.pin_memory()
                    batch.labels = batch.labels.pin_memory()
                if not self._put(batch):
                    return
        except BaseException as error:  # it is raised again where the batches are read
            self._put(error)

    def _put(self, item: Batch | BaseException) -> bool:
        while not self.stopped.is_set():
            try:
                self.queue.put(item, timeout=0.2)
                return True
            except queue.Full:
                continue
        return False
