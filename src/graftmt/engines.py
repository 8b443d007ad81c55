"""What searches for translations once a composition is made: what a translator asks of an engine, and graftmt's own. Layer 3½.

Its own runs on any device, on a CPU with int8 weights too. `interop.engine_registry` knows all engines, also those that need
other programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from graftmt.decoding import Hypothesis, SearchOptions, search_all
from graftmt.decoding.int8 import Int8Weights, int8_kernels
from graftmt.errors import ConfigError
from graftmt.model import Transformer
from graftmt.packs import Composition

OnBatch = Callable[[int], None]
"""Hears how many lines are done."""


class Searcher(Protocol):
    """One composition, ready to translate; used from many threads."""

    def search(
        self,
        sources: Sequence[Sequence[int]],
        prefixes: Sequence[Sequence[int]],
        options: SearchOptions,
        on_batch: OnBatch | None = None,
    ) -> list[list[Hypothesis]]:
        """The `options.n_best` best hypotheses of each source, whose ids are as the encoder reads them.

        `prefixes[i]` is what the decoder starts from; all have one length. `on_batch` hears how many sources are done.
        """


class Engine(Protocol):
    """A way to run compositions; a translator has one."""

    @property
    def how(self) -> str:
        """Engine and precision in a word or two: translations that were made otherwise may differ."""

    def searcher(self, composition: Composition, base: str) -> Searcher:
        """For a composition made with `fold=True` on the base of this fingerprint. A translator asks once for each."""


@dataclass(frozen=True)
class NativeSearcher:
    """A model, and what of it must not come out."""

    model: Transformer
    end: int
    forbidden: Sequence[int]

    @classmethod
    def of(cls, composition: Composition, model: Transformer | None = None) -> NativeSearcher:
        """For its own model, or another form of that."""
        return cls(model or composition.model, composition.codec.end_id, composition.codec.forbidden)

    def search(
        self,
        sources: Sequence[Sequence[int]],
        prefixes: Sequence[Sequence[int]],
        options: SearchOptions,
        on_batch: OnBatch | None = None,
    ) -> list[list[Hypothesis]]:
        return search_all(
            self.model, sources, prefixes, options, end=self.end, forbidden=self.forbidden, on_batch=on_batch, keep=True
        )


class NativeEngine:
    """Runs compositions as they are, or with their large matrices in int8, each of which all compositions share."""

    def __init__(self, dtype: torch.dtype, device: torch.device, *, int8: bool = False) -> None:
        self.dtype = dtype
        self.weights = Int8Weights() if int8 else None
        if int8:
            int8_kernels()
            if device.type != "cpu" or dtype != torch.float32:
                raise ConfigError(f"int8 is for a base in fp32 on a CPU; this one is {dtype} on {device}. Use bf16, fp16.")

    @property
    def how(self) -> str:
        return "int8" if self.weights is not None else str(self.dtype).removeprefix("torch.")

    def searcher(self, composition: Composition, base: str) -> NativeSearcher:
        return NativeSearcher.of(composition, self.weights.model(composition.model) if self.weights is not None else None)
