"""The name and shape of every parameter of an architecture, without building it: stored ones are compared with it. Layer 1."""

from __future__ import annotations

from dataclasses import replace

import torch

from graftmt.model.configuration import ModelConfig
from graftmt.model.transformer import Transformer


def parameter_shapes(config: ModelConfig, rows: int, target_rows: int | None = None) -> dict[str, tuple[int, ...]]:
    """Those of `Transformer.build(config, rows, …)`, in any order. One layer of each stack stands for all."""
    with torch.device("meta"):
        # Which row is padding makes no difference here; row 0 is one that each matrix has.
        small = replace(config, encoder_layers=1, decoder_layers=1, padding_id=0)
        model = Transformer.build(small, rows, target_rows=target_rows)
    counts = {"encoder.layers.0.": config.encoder_layers, "decoder.layers.0.": config.decoder_layers}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, parameter in model.named_parameters():
        first = next((first for first in counts if name.startswith(first)), None)
        if first is None:
            shapes[name] = tuple(parameter.shape)
        else:
            stack, leaf = first.removesuffix("0."), name.removeprefix(first)
            shapes |= {f"{stack}{layer}.{leaf}": tuple(parameter.shape) for layer in range(counts[first])}
    return shapes
