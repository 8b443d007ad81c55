"""Adapters: small bottlenecks after a layer (serial, the paper's) or beside its FFN (parallel). Layer 3.

Each wrapper has the signature of what it wraps, so that it can stand in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graftmt.model.attention import Attention, PackedMemory, Packing
from graftmt.model.layers import DecoderLayer, EncoderLayer, FeedForward, LayerCache


class Adapter(nn.Module):
    """x + up(ReLU(down(norm(x)))): the paper's serial adapter."""

    def __init__(self, dim: int, bottleneck: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=epsilon)
        self.down = nn.Linear(dim, bottleneck)
        self.up = nn.Linear(bottleneck, dim)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.up(F.relu(self.down(self.norm(x))))  # type: ignore[no-any-return]


class ParallelAdapter(nn.Module):
    """up(f(down(x))): added to the output of an FFN, f being its activation, so that it can become part of it."""

    def __init__(self, dim: int, bottleneck: int, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.down = nn.Linear(dim, bottleneck)
        self.up = nn.Linear(bottleneck, dim)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return self.up(self.activation(self.down(x)))  # type: ignore[no-any-return]


class AdaptedEncoderLayer(nn.Module):
    """An encoder layer, then adapters in order: those of the source language before those of the target language."""

    def __init__(self, layer: EncoderLayer, adapters: Sequence[Adapter]) -> None:
        super().__init__()
        self.layer = layer
        self.adapters = nn.ModuleList(adapters)

    def forward(self, x: Tensor, mask: Tensor | Packing | None) -> Tensor:
        x = self.layer(x, mask)
        for adapter in self.adapters:
            x = adapter(x)
        return x


class AdaptedDecoderLayer(nn.Module):
    """The same for a decoder layer, one token at a time too."""

    def __init__(self, layer: DecoderLayer, adapters: Sequence[Adapter]) -> None:
        super().__init__()
        self.layer = layer
        self.adapters = nn.ModuleList(adapters)

    @property
    def cross_attention(self) -> Attention:
        return self.layer.cross_attention

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | PackedMemory | None) -> Tensor:
        return self._adapt(self.layer(x, memory, memory_mask))

    def step(self, x: Tensor, cache: LayerCache, memory_mask: Tensor | None, beam: int) -> Tensor:
        return self._adapt(self.layer.step(x, cache, memory_mask, beam))

    def _adapt(self, x: Tensor) -> Tensor:
        for adapter in self.adapters:
            x = adapter(x)
        return x


class AdaptedFeedForward(nn.Module):
    """An FFN plus the parallel adapters of one or two packs."""

    def __init__(self, ffn: FeedForward, adapters: Sequence[ParallelAdapter]) -> None:
        super().__init__()
        self.ffn = ffn
        self.adapters = nn.ModuleList(adapters)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.ffn(x)
        for adapter in self.adapters:
            result = result + adapter(x)
        return result

    @torch.no_grad()
    def folded(self) -> FeedForward:
        """One FFN with the adapters' units beside its own: the same output, and nothing more to compute than it has."""
        firsts: list[nn.Linear] = [self.ffn.up, *(adapter.down for adapter in self.adapters)]  # type: ignore[list-item]
        seconds: list[nn.Linear] = [self.ffn.down, *(adapter.up for adapter in self.adapters)]  # type: ignore[list-item]
        whole = FeedForward.__new__(FeedForward)
        nn.Module.__init__(whole)
        whole.up = _linear(torch.cat([map.weight for map in firsts]), torch.cat([map.bias for map in firsts]))
        down = torch.cat([map.weight for map in seconds], dim=1)
        whole.down = _linear(down, torch.stack([map.bias for map in seconds]).sum(0))
        whole.activation = self.ffn.activation
        return whole


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    with torch.device("meta"):
        linear = nn.Linear(weight.shape[1], weight.shape[0])
    linear.weight, linear.bias = nn.Parameter(weight, requires_grad=False), nn.Parameter(bias, requires_grad=False)
    return linear
