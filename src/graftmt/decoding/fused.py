"""Decoding steps on a GPU with half as many kernels, for plain pre-norm decoders in half precision. Layer 3.

A step of a layer is mostly short kernels over the same few rows. Here queries, keys and values of self-attention are one
product, the feed-forward's activation is part of its first product, and bias, sum, norm and rounding between two products are
one kernel.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graftmt.decoding.full_sums import HALF, FullLinear, HalfNorm, full_product
from graftmt.decoding.step_kernels import add_and_norm, can_add_and_norm
from graftmt.model.attention import Attention, mix_heads
from graftmt.model.compiled import triton
from graftmt.model.known_parts import notice
from graftmt.model.layers import DecoderLayer, Dropout, FeedForward, LayerCache
from graftmt.model.transformer import Decoder, DecoderState

PLAIN = (Decoder, nn.ModuleList, DecoderLayer, Attention, FeedForward, nn.Linear, nn.LayerNorm, Dropout)
"""What a decoder may consist of: any other part, such as an adapter, does something of its own."""


def can_be_fused(decoder: Decoder) -> bool:
    """Whether it pays: on a GPU with Triton, where autocast does not choose other types than the weights have."""
    where = {parameter.device.type for parameter in decoder.parameters()}
    if where != {"cuda"} or triton is None or torch.is_autocast_enabled("cuda"):
        return False
    return is_plain(decoder)


def is_plain(decoder: Decoder) -> bool:
    """Whether all of it is known, pre-norm, in one type of half precision, and nothing is dropped."""
    types = {parameter.dtype for parameter in decoder.parameters()}
    drops = any(isinstance(module, Dropout) and module.training and module.p > 0 for module in decoder.modules())
    if decoder.norm is None or len(types) != 1 or not types.issubset(HALF) or drops:
        return False
    if (other := next((module for module in decoder.modules() if type(module) not in PLAIN), None)) is not None:
        notice("fused steps", other)
        return False
    return len(decoder.layers) > 0 and all(layer.pre_norm for layer in decoder.layers)


class FusedDecoder(Decoder):
    """What the given decoder computes step by step, with sums in fp32. Weights are shared, but for those that are joined."""

    def __init__(self, decoder: Decoder) -> None:
        assert decoder.norm is not None, "post-norm layers are no plain sums"
        super().__init__([FusedLayer(layer) for layer in decoder.layers], norm=None)  # type: ignore[arg-type]
        self.last_norm = HalfNorm(decoder.norm)

    def step(self, x: Tensor, state: DecoderState) -> Tensor:
        layers: list[FusedLayer] = list(self.layers)  # type: ignore[arg-type]
        sums = x.float()
        hidden = layers[0].self_norm(sums)
        norms = [*(layer.self_norm for layer in layers[1:]), self.last_norm]
        for layer, cache, norm in zip(layers, state.layers, norms, strict=True):
            sums, hidden = layer.step(sums, hidden, cache, state.memory_mask, state.beam, norm)
        state.position += x.shape[1]
        return hidden  # type: ignore[no-any-return]


class FusedLayer(nn.Module):
    """The step of one layer. Its first norm is taken at the end of the layer before, where the sums are at hand."""

    def __init__(self, layer: DecoderLayer) -> None:
        super().__init__()
        own = layer.self_attention
        projections = (own.query, own.key, own.value)
        self.heads = own.heads
        self.weight = torch.cat([projection.weight.detach() for projection in projections])
        self.bias = torch.cat([projection.bias.detach() for projection in projections])
        self.self_output = FullLinear(own.output)
        self.cross_attention = layer.cross_attention
        self.cross_output = FullLinear(layer.cross_attention.output)
        self.ffn = layer.ffn
        self.ffn_output = FullLinear(layer.ffn.down)
        self.self_norm = HalfNorm(layer.self_norm)
        self.cross_norm = HalfNorm(layer.cross_norm)
        self.ffn_norm = HalfNorm(layer.ffn_norm)

    def step(
        self, sums: Tensor, hidden: Tensor, cache: LayerCache, memory_mask: Tensor | None, beam: int, next_norm: HalfNorm
    ) -> tuple[Tensor, Tensor]:
        """sums (B × beam, t, D) and their norm `hidden` → both after this layer."""
        mixed = cache.self_attention.look_back(*self._projected(hidden))
        sums, hidden = _added(sums, mixed, self.self_output, self.cross_norm)
        queries = self.cross_attention.project_queries(hidden.unflatten(0, (-1, beam)).flatten(1, 2))
        mixed = mix_heads(queries, cache.memory_keys, cache.memory_values, memory_mask)
        sums, hidden = _added(sums, mixed.reshape(hidden.shape), self.cross_output, self.ffn_norm)
        return _added(sums, self._widened(hidden), self.ffn_output, next_norm)

    def _projected(self, hidden: Tensor) -> tuple[Tensor, ...]:
        """(rows, t, D) → queries, keys and values, each (rows, H, t, D/H)."""
        joint = F.linear(hidden, self.weight, self.bias)
        return joint.view(*joint.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind()

    def _widened(self, hidden: Tensor) -> Tensor:
        """The first half of the feed-forward; ReLU, unlike others, can be part of the product."""
        up, activation = self.ffn.up, self.ffn.activation
        if activation is not F.relu:
            return activation(up(hidden))
        wide = torch._addmm_activation(up.bias, hidden.flatten(0, 1), up.weight.t())
        return wide.view(*hidden.shape[:2], -1)


def _added(sums: Tensor, x: Tensor, linear: FullLinear, norm: HalfNorm) -> tuple[Tensor, Tensor]:
    """The sums with what `linear` makes of x, and their norm."""
    product = full_product(x, linear.weight)
    if can_add_and_norm(sums, product):
        return add_and_norm(sums, product, linear.bias, norm)
    sums = sums + (product + linear.bias)
    return sums, norm(sums)
