"""Names and shapes of an architecture's parameters, and a model given stored ones of these shapes. Layer 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from graftmt.errors import CheckpointError
from graftmt.model.architecture import ModelConfig
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


def load_tensors(model: Transformer, tensors: Mapping[str, Tensor], where: str) -> None:
    """Gives the model these tensors, in place of its own; names and shapes must agree exactly."""
    expected = dict(model.named_parameters())
    wrong = sorted(expected.keys() ^ tensors.keys())
    if wrong:
        raise CheckpointError(f"{where}: tensors missing or not expected: {', '.join(wrong[:5])}{' …' * (len(wrong) > 5)}")
    for name, parameter in expected.items():
        if parameter.shape != tensors[name].shape:
            raise CheckpointError(
                f"{where}: tensor {name} has shape {tuple(tensors[name].shape)}; "
                f"the architecture says {tuple(parameter.shape)}."
            )
    # Modules that share a parameter (tied embeddings) keep sharing the new one.
    replaced = {id(parameter): torch.nn.Parameter(tensors[name]) for name, parameter in expected.items()}
    for module in model.modules():
        for name, own in list(module._parameters.items()):
            if own is not None:
                module._parameters[name] = replaced[id(own)]
