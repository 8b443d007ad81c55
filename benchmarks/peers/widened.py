"""A small trained base at the size of a large one that translates the same: real text for benchmarks without a training.

Each vector is repeated side by side, which leaves norms and attention as they are, and layers that add nothing come on top.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from graftmt.base import Base
from graftmt.model.embeddings import sinusoidal_positions

MOST = 256
"""Tokens of a sentence."""


def widened(base: Base, *, times: int = 4, layers: int = 6, learned: bool = True) -> Base:
    """`base` is pre-norm with tied matrices and sinusoidal positions. Repeated positions are stored as learned ones.

    Without `learned` the base has the same tensors but no positions of its own, for programs that are then given `positions`.
    """
    old = base.model.config
    config = dataclasses.replace(
        old,
        model_dim=times * old.model_dim,
        ffn_dim=times * old.ffn_dim,
        heads=times * old.heads,
        encoder_layers=layers,
        decoder_layers=layers,
        **({"positions": "learned", "most_positions": MOST} if learned else {}),
    )
    assert (old.norm, old.embeddings, old.positions) == ("pre", "tied", "sinusoidal")
    torch.manual_seed(1)
    wide, given = Base.create(config, base.tokenizer), dict(base.model.named_parameters())
    with torch.no_grad():
        for name, parameter in wide.model.named_parameters():
            if "positions" in name:
                parameter.copy_(positions(base, len(parameter), times))
            elif name not in given:  # a layer on top: it works as the others do, and what comes out is not added
                if name.endswith(("output.weight", "output.bias", "down.weight", "down.bias")):
                    parameter.zero_()
            elif name == "source_embedding.weight":  # is multiplied by the root of the dimension
                parameter.copy_(given[name].repeat(1, times) / times**0.5)
            elif parameter.dim() == 2:
                parameter.copy_(given[name].repeat(times, times) / times)
            else:
                parameter.copy_(given[name].repeat(times))
            if name.startswith("decoder.norm"):  # for the sums over all repeats in the scores of the vocabulary
                parameter /= times**0.5
    return wide


def positions(base: Base, count: int, times: int) -> Tensor:
    """The table of repeated positions, from 0 on."""
    return sinusoidal_positions(count, base.model.config.model_dim, 0).repeat(1, times)


def give_positions(model: Any, base: Base, times: int = 4) -> None:
    """Puts the repeated positions into a model of transformers whose own are computed."""
    for side in (model.model.encoder, model.model.decoder):
        table = side.embed_positions.weights
        table.copy_(positions(base, len(table), times))
