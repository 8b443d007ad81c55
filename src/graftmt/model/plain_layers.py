"""Layers in the terms that other programs have too: attention, norms and an FFN. For export. Layer 1.

A module that stands among the layers of a stack, or around one, has a method `as_layers`, which says what it is in these terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from torch import Tensor, nn

from graftmt.model.attention import Attention
from graftmt.model.layers import DecoderLayer, EncoderLayer, FeedForward

Part = TypeVar("Part", bound=nn.Module)


@dataclass(frozen=True, kw_only=True)
class AttentionPart:
    """An attention and its norm, which comes before or after it as in all layers of the model."""

    attention: Attention
    norm: nn.LayerNorm


@dataclass(frozen=True, kw_only=True)
class PlainLayer:
    """Self-attention, then cross-attention, then an FFN; the attentions may be missing."""

    self_attention: AttentionPart | None = None
    cross_attention: AttentionPart | None = None
    ffn_norm: nn.LayerNorm
    up: nn.Linear
    down: nn.Linear
    activation: Callable[[Tensor], Tensor]

    @property
    def is_ffn_alone(self) -> bool:
        """x + down(activation(up(norm(x)))): such a layer is the same in other programs in pre-norm models only."""
        return self.self_attention is None


@runtime_checkable
class HasLayers(Protocol):
    """A module that stands for several layers, or for one of another form."""

    def as_layers(self) -> Sequence[nn.Module | PlainLayer]:
        """What it does, one after the other: other modules, or layers in plain terms."""


def plain_layers(module: nn.Module | PlainLayer) -> list[PlainLayer]:
    """What a module of a stack does. A `TypeError` names the class of one that cannot be said in these terms."""
    if isinstance(module, PlainLayer):
        return [module]
    if type(module) in (EncoderLayer, DecoderLayer):
        return [_layer(module)]  # type: ignore[arg-type]
    if isinstance(module, HasLayers):
        return [layer for part in module.as_layers() for layer in plain_layers(part)]
    raise TypeError(class_name(module))


def class_name(module: object) -> str:
    return f"{type(module).__module__}.{type(module).__qualname__}"


def _layer(layer: EncoderLayer | DecoderLayer) -> PlainLayer:
    cross = _attention(layer.cross_attention, layer.cross_norm) if isinstance(layer, DecoderLayer) else None
    ffn = layer.ffn
    if type(ffn) is not FeedForward:
        raise TypeError(class_name(ffn))
    return PlainLayer(
        self_attention=_attention(layer.self_attention, layer.self_norm),
        cross_attention=cross,
        ffn_norm=_known(layer.ffn_norm, nn.LayerNorm),
        up=_known(ffn.up, nn.Linear),
        down=_known(ffn.down, nn.Linear),
        activation=ffn.activation,
    )


def _attention(attention: Attention, norm: nn.LayerNorm) -> AttentionPart:
    for part in (attention.query, attention.key, attention.value, attention.output):
        _known(part, nn.Linear)
    return AttentionPart(attention=_known(attention, Attention), norm=_known(norm, nn.LayerNorm))


def _known(part: Part, kind: type[Part]) -> Part:
    """The part, if it is of this very class: a subclass may compute something else with the same weights."""
    if type(part) is not kind:
        raise TypeError(class_name(part))
    return part
