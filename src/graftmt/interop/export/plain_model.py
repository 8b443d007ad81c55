"""A composed model in plain terms: matrices, layers and positions, whatever modules it was made of. Layer 5."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from graftmt.errors import ExportError
from graftmt.model import Decoder, Encoder, ModelConfig, Transformer
from graftmt.model.embeddings import Embedding, EvenPositions, ExtendedEmbedding, LearnedPositions, Positions, Projection
from graftmt.model.layers import ACTIVATIONS, linear_map
from graftmt.model.plain_layers import PlainLayer, class_name, plain_layers
from graftmt.model.transformer import Side

SHARPNESS = 1024
"""f(1024 x) / 1024 differs from ReLU by less than 0.0003 where f is GELU or SiLU. A power of two, so scaling is exact."""


@dataclass(frozen=True, kw_only=True)
class PlainStack:
    """Encoder or decoder."""

    embedding: Tensor
    """(rows, D), those of language codes included."""
    layers: tuple[PlainLayer, ...]
    norm: nn.LayerNorm | None
    """After the last layer, in pre-norm models."""
    positions: Positions | LearnedPositions
    embedding_norm: nn.LayerNorm | None
    """After embeddings and positions."""

    def table(self, length: int) -> Tensor:
        """(up to length, D): the vectors of the first positions; there may be fewer where they were learned."""
        most = self.positions.most if isinstance(self.positions, LearnedPositions) else length
        return _plain(self.positions.reserve(min(length, most))[:length])

    @property
    def heads(self) -> int:
        return next(layer.self_attention.attention.heads for layer in self.layers if layer.self_attention is not None)

    @property
    def widest_ffn(self) -> int:
        return max(layer.up.out_features for layer in self.layers)


@dataclass(frozen=True, kw_only=True)
class PlainModel:
    """All that other programs need to know of a model."""

    config: ModelConfig
    encoder: PlainStack
    decoder: PlainStack
    output: Tensor
    """(rows, D). Codes that stand after the decoder's other rows have none here: they never come out."""
    output_bias: Tensor | None
    scale: float
    """What embeddings are multiplied by."""


@torch.no_grad()
def plain_model(model: Transformer) -> PlainModel:
    """The model, which was composed with `fold=True`. What is no part of a usual Transformer is an `ExportError`."""
    config, projection = model.config, model.projection
    try:
        for part, kind in ((projection, Projection), (model.encoder, Encoder), (model.decoder, Decoder)):
            if type(part) is not kind:
                raise TypeError(class_name(part))
        return PlainModel(
            config=config,
            encoder=_stack(model, "source"),
            decoder=_stack(model, "target"),
            output=_plain(projection.weight),
            output_bias=None if projection.bias is None else _plain(projection.bias),
            scale=model.scale,
        )
    except TypeError as error:
        raise ExportError(
            f"the model has parts of the class {error}, which no other program knows. Give the class a method `folded` or "
            "`as_layers` that says what it is in usual terms (docs/components.md), or translate with graftmt."
        ) from None


def _stack(model: Transformer, side: Side) -> PlainStack:
    stack, activation = (model.encoder if side == "source" else model.decoder), model.config.activation
    embedding, positions, embedding_norm = model.entrance(side)
    if type(positions) not in (Positions, EvenPositions, LearnedPositions):
        raise TypeError(class_name(positions))
    for norm in (embedding_norm, stack.norm):
        if norm is not None and type(norm) is not nn.LayerNorm:
            raise TypeError(class_name(norm))
    layers = [_with_activation(layer, activation) for module in stack.layers for layer in plain_layers(module)]
    return PlainStack(
        embedding=_rows(embedding),
        layers=tuple(layers),
        norm=stack.norm,
        positions=positions,
        embedding_norm=embedding_norm,  # type: ignore[arg-type]
    )


def _rows(embedding: nn.Module) -> Tensor:
    if type(embedding) is ExtendedEmbedding:
        return torch.cat([_rows(embedding.embedding), _plain(embedding.extra)])
    if type(embedding) is not Embedding:
        raise TypeError(class_name(embedding))
    return _plain(embedding.weight)


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().float().cpu()


def _with_activation(layer: PlainLayer, name: str) -> PlainLayer:
    """The layer with the activation of all others, since other programs have one for all; ReLU can be made from any."""
    if layer.activation is ACTIVATIONS[name]:
        return layer
    if layer.activation is not ACTIVATIONS["relu"]:
        raise TypeError(f"{getattr(layer.activation, '__name__', 'an activation')} among layers with {name}")
    bias = layer.up.bias
    up = linear_map(layer.up.weight * SHARPNESS, None if bias is None else bias * SHARPNESS)
    return replace(layer, up=up, down=linear_map(layer.down.weight / SHARPNESS, layer.down.bias), activation=ACTIVATIONS[name])
