"""How fast a run goes. Layer 4."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from graftmt.data import Batch, PackedBatch
from graftmt.training.run_state import RunState


class Pace:
    """How fast it goes: tokens and padding since the last log, validation and saving left out."""

    def __init__(self, state: RunState) -> None:
        self.before, self.started = state.seconds, time.monotonic()
        self._reset()

    def _reset(self) -> None:
        self.since, self.target, self.source, self.padded, self.waited = time.monotonic(), 0, 0, 0, 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around the wait for data: what it takes is no good to anyone."""
        started = time.monotonic()
        yield
        self.waited += time.monotonic() - started

    def count(self, update: Sequence[Batch | PackedBatch]) -> None:
        for batch in update:
            self.target += batch.target_tokens
            self.source += batch.source_tokens
            self.padded += batch.size

    def exclude(self, seconds: float) -> None:
        self.since += seconds

    def seconds(self) -> float:
        return self.before + time.monotonic() - self.started

    def rates(self, state: RunState) -> dict[str, float]:
        elapsed = max(1e-9, time.monotonic() - self.since)
        rates = {
            "target_tokens_per_second": self.target / elapsed,
            "padding_share": 1 - (self.target + self.source) / max(1, self.padded),
            "waiting_for_data": self.waited / elapsed,
            "seconds": self.seconds(),
            "target_tokens": state.target_tokens,
        }
        self._reset()
        return rates
