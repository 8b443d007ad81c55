"""What a translator asks of an engine. Layer 3½: above packs and decoding, below the translator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from graftmt.decoding import Hypothesis, SearchOptions
from graftmt.packs import Composition

OnBatch = Callable[[int], None]


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
