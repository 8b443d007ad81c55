"""How to search, and what a search gives back. Layer 3."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real

import torch

from graftmt.errors import ConfigError
from graftmt.translation_options import WayOptions

WIDEST_BEAM = 1000
"""Memory grows with it; beyond some tens of hypotheses translations get worse."""
STEEPEST_PENALTY = 100


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Beam 5 and length penalty 1 are the paper's (fairseq's defaults); beam 1 is greedy search."""

    beam: int = 5
    n_best: int = 1
    length_penalty: float = 1.0
    """A finished hypothesis scores its log-probability / length^penalty, its end counted; above 1 favours longer ones."""
    max_length: int = 1024
    """At most this many tokens come out, the end counted."""
    length_ratio: float = 3.0
    """… and at most this many times the tokens that went in, plus 20: a looping model stops early on short lines."""
    batch_tokens: int = 8192
    """Source tokens × beam in one batch."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, kind = getattr(self, field.name), Integral if field.type == "int" else Real
            if not isinstance(value, kind) or isinstance(value, bool):
                number = "a whole number" if kind is Integral else "a number"
                raise ConfigError(f"{field.name} is {reprlib.repr(value)} ({type(value).__name__}); expected {number}.")
        if self.beam < 1 or self.max_length < 1 or self.batch_tokens < 1 or not 0 <= self.length_ratio < math.inf:
            raise ConfigError("beam, max_length and batch_tokens must be at least 1, and length_ratio not negative.")
        if self.beam > WIDEST_BEAM:
            raise ConfigError(f"beam is {self.beam}; at most {WIDEST_BEAM} hypotheses can be kept. 5 is usual.")
        if not abs(self.length_penalty) <= STEEPEST_PENALTY:
            raise ConfigError(
                f"length_penalty is {self.length_penalty}; expected a number between -{STEEPEST_PENALTY} and "
                f"{STEEPEST_PENALTY}. 1 is usual."
            )
        if not 1 <= self.n_best <= self.beam:
            raise ConfigError(f"n_best is {self.n_best}; it must be between 1 and the beam, {self.beam}.")

    def limit(self, source_length: int) -> int:
        """The longest output for a source of this number of tokens."""
        return max(1, min(self.max_length, int(self.length_ratio * source_length) + 20))


def checked_options(options: SearchOptions | None) -> SearchOptions:
    """Those that were given, or the defaults; a dict of them is an error that says what to write."""
    if options is None:
        return SearchOptions()
    if not isinstance(options, SearchOptions):
        known = {field.name for field in fields(SearchOptions)}
        meant = options.items() if isinstance(options, Mapping) else ()
        said = ", ".join(f"{name}={reprlib.repr(value)}" for name, value in meant if name in known) or "beam=1"
        raise ConfigError(
            f"options is {reprlib.repr(options)} ({type(options).__name__}); expected SearchOptions, such as "
            f"options=SearchOptions({said}) after `from graftmt import SearchOptions`."
        )
    return options


def search_of(options: WayOptions, n_best: int = 1) -> SearchOptions:
    """What was asked for; `options.device` is chosen already, and a batch that was not is as the device can take it."""
    return SearchOptions(
        beam=options.beam,
        n_best=n_best,
        length_penalty=options.length_penalty,
        max_length=options.max_length,
        batch_tokens=options.batch_tokens or batch_tokens_for(options.device),
    )


def batch_tokens_for(device: str) -> int:
    """Source tokens × beam in one batch: what keeps a CPU's caches or a whole GPU busy, within a part of its memory."""
    if not device.startswith("cuda"):
        return 4096
    gibibytes = torch.cuda.get_device_properties(device).total_memory >> 30
    return max(1 << 15, min(1 << 18, (gibibytes // 8) << 14))


@dataclass(frozen=True)
class Hypothesis:
    """One translation: its tokens without prefix and end, and its score."""

    tokens: list[int]
    score: float
    finished: bool
    """False where it was cut at the maximum length."""
