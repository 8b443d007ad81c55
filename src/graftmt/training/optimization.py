"""A stage of training: its options, its loss, its learning-rate schedule and its optimiser. Layer 4."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graftmt.configuration import above_zero, check_numbers, one_or_more, zero_or_more
from graftmt.data import PackedBatch
from graftmt.errors import ConfigError
from graftmt.model import Transformer
from graftmt.model.embeddings import Projection
from graftmt.model.known_parts import notice
from graftmt.training.fused_loss import fused_loss


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


VARIANTS = 64
"""Of one layer that may be compiled in a process before torch gives up and runs it as it is."""


def smoothed_loss(
    model: Transformer, source: Tensor, decoder_input: Tensor, labels: Tensor, smoothing: float, compiled: bool = False
) -> Tensor:
    """Label-smoothed cross-entropy summed over the target tokens: (1 − ε)·nll + (ε / V)·Σ, padding left out."""
    memory, mask = model.encode(source)
    return _loss_of_hidden(model, model.decode(decoder_input, memory, mask), labels, smoothing, compiled)


def packed_loss(model: Transformer, batch: PackedBatch, smoothing: float, compiled: bool = False) -> Tensor:
    """The same for sentences without padding between them."""
    hidden = model.hidden_of_packed(batch.source, batch.target)
    return _loss_of_hidden(model, hidden, batch.labels[None], smoothing, compiled)


def _loss_of_hidden(model: Transformer, hidden: Tensor, labels: Tensor, smoothing: float, compiled: bool) -> Tensor:
    """hidden (B, T, D), labels (B, T); a projection with a bias, or of a class of its own, has no fused way."""
    known = type(model.projection) is Projection
    if not known:
        notice("fused loss", model.projection)
    if known and model.projection.bias is None:
        return fused_loss(hidden, model.projection.weight, labels, model.target_padding_id, smoothing, compiled)
    return F.cross_entropy(
        model.projection(hidden).flatten(0, 1).float(),
        labels.flatten(),
        ignore_index=model.target_padding_id,
        label_smoothing=smoothing,
        reduction="sum",
    )


def compile_layers(model: Transformer, *, one_shape: bool = False) -> None:
    """torch.compile, one layer at a time: all encoder layers share one compiled graph, and so do all decoder layers.

    Compiling the whole model takes minutes and gains little more, since the layers are where the time goes.
    """
    # Packs of other recipes, trained in the same process, compile the same code again for what they tune.
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, VARIANTS)
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.compile(dynamic=not one_shape)


def learning_rate(stage: StageConfig, step: int) -> float:
    """The rate of update number `step`, counted from 1: linear warm-up, then inverse square root, then the cool-down."""
    if step <= stage.warmup:
        rate = stage.warmup_from + (stage.learning_rate - stage.warmup_from) * step / stage.warmup
    elif stage.schedule == "inverse-sqrt":
        rate = stage.learning_rate * math.sqrt(max(1, stage.warmup) / step)
    else:
        rate = stage.learning_rate
    falling = stage.cooldown * stage.steps
    return rate * min(1.0, (stage.steps - step + 1) / falling) if falling > 0 else rate


def make_optimizer(parameters: Iterable[nn.Parameter], stage: StageConfig) -> torch.optim.Adam:
    first, second = stage.betas
    return torch.optim.Adam(parameters, lr=0.0, betas=(first, second), eps=1e-8, fused=True)
