"""The options of a stage and of its validation. Layer 4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from graftmt.configuration import above_zero, check_numbers, one_or_more, zero_or_more
from graftmt.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class StageConfig:
    """One stretch of training with an optimiser of its own. The paper's bases have two: English-centric, multi-parallel."""

    name: str = "train"
    directions: tuple[str, ...] = ("english-centric",)
    """A view (english-centric, multi-parallel, to-en, from-en) or directions such as en-fr."""
    temperature: float = 5.0
    steps: int = 10000
    """Updates of the weights."""
    batch_tokens: int = 4000
    """At most N padded tokens on a side in a batch …"""
    accumulate: int = 1
    """… and N batches to one update."""
    packed: bool = False
    """Sentences one after the other instead of side by side: no padding, and one shape for all batches. For GPUs, in bf16."""
    learning_rate: float = 5e-4
    warmup: int = 4000
    warmup_from: float = 1e-7
    schedule: Literal["inverse-sqrt", "constant"] = "inverse-sqrt"
    cooldown: float = 0.0
    """The share of the steps, at the end, over which the rate also falls linearly to zero."""
    dropout: float = 0.1
    label_smoothing: float = 0.1
    clip_norm: float = 0.0
    """Gradients are scaled down to this norm; 0 leaves them."""
    betas: tuple[float, ...] = (0.9, 0.98)
    patience: int = 0
    """Ends the stage when the validation score has not improved N times in a row; 0 never does."""

    def __post_init__(self) -> None:
        check_numbers(self, "at least 1", one_or_more, "steps", "batch_tokens", "accumulate")
        check_numbers(self, "a number above 0", above_zero, "temperature")
        numbers = ("learning_rate", "warmup", "warmup_from", "clip_norm", "patience")
        check_numbers(self, "a number that is not negative", zero_or_more, *numbers)
        check_numbers(self, "a number from 0 to 1", lambda value: 0 <= value <= 1, "cooldown")
        check_numbers(self, "a number from 0 to below 1", _share, "dropout", "label_smoothing")
        if len(self.betas) != 2 or not all(map(_share, self.betas)):
            raise ConfigError(f"betas is {list(self.betas)}; expected two numbers from 0 to below 1, such as [0.9, 0.98].")

    def with_steps(self, steps: int) -> StageConfig:
        """So long instead, with no more than a tenth of it to warm up."""
        return replace(self, steps=steps, warmup=min(self.warmup, max(1, steps // 10)))


def _share(value: float) -> bool:
    """Of what remains something has to be left: where it is 1, nothing is learned, or Adam cannot be made."""
    return 0 <= value < 1


@dataclass(frozen=True, kw_only=True)
class ValidationConfig:
    """What is looked at while training."""

    split: str = "valid"
    directions: tuple[str, ...] = ()
    """Up to eight English-centric ones unless named."""
    lines: int = 200
    every: int = 1000
    """Steps between validations."""
    metric: Literal["loss", "chrf", "bleu"] = "loss"
    """What the best checkpoint is best in."""
    translate: bool = True
    """Also translate (greedily) for BLEU and chrF; the loss alone is quicker."""
    translate_lines: int | None = None
    """Translate only the first of `lines`; the loss is always of all (default: translate all)."""
    watch: tuple[str, ...] | None = None
    """Directions that are scored next to the others and do not count for the best checkpoint. A pack watches up to
    three that are not trained, or on a few lines (data.few), unless they are named; [] watches none."""

    def __post_init__(self) -> None:
        check_numbers(self, "at least 1, or 0 for no validation", zero_or_more, "lines")
        check_numbers(self, "at least 1", one_or_more, "every", "translate_lines")

    @property
    def translates(self) -> bool:
        """A metric of translations asks for them too."""
        return self.translate or self.metric != "loss"

    def score(self, scores: Mapping[str, Any]) -> float:
        """What the best checkpoint has most of."""
        return float(-scores["loss"] if self.metric == "loss" else scores[self.metric])
