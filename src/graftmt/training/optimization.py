"""Loss, learning-rate schedule and optimiser. Layer 4."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graftmt.data import PackedBatch
from graftmt.model import Transformer
from graftmt.model.embeddings import Projection
from graftmt.model.known_parts import notice
from graftmt.training.fused_loss import fused_loss
from graftmt.training.stage_configuration import StageConfig

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
