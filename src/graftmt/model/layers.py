"""Encoder and decoder layers, pre- or post-norm, and their dropout. Layer 1: they know nothing of training or packs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graftmt.model.architecture import ModelConfig, Stack
from graftmt.model.attention import Attention, PackedMemory, Packing, SelfAttentionCache, SlotCache
from graftmt.model.known_parts import known_part

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


@known_part
class FeedForward(nn.Module):
    """Two linear maps with an activation between."""

    def __init__(self, dim: int, hidden: int, activation: str) -> None:
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)
        self.activation = ACTIVATIONS[activation]
        for projection in (self.up, self.down):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))  # type: ignore[no-any-return]


def linear_map(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """A linear map for inference that holds these tensors."""
    with torch.device("meta"):
        linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    linear.weight = nn.Parameter(weight, requires_grad=False)
    if bias is not None:
        linear.bias = nn.Parameter(bias, requires_grad=False)
    return linear


class _Layer(nn.Module):
    """What both kinds of layer share: where the norm stands, and dropout before each residual sum."""

    stack: ClassVar[Stack] = "encoder"

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.dropout = Dropout(0.0)
        self.self_attention = Attention(config.model_dim, config.heads_of(self.stack))
        self.self_norm = nn.LayerNorm(config.model_dim, eps=config.norm_epsilon)
        self.ffn = FeedForward(config.model_dim, config.ffn_dim_of(self.stack), config.activation)
        self.ffn_norm = nn.LayerNorm(config.model_dim, eps=config.norm_epsilon)

    def before(self, x: Tensor, norm: nn.LayerNorm) -> Tensor:
        return norm(x) if self.pre_norm else x

    def after(self, x: Tensor, change: Tensor, norm: nn.LayerNorm) -> Tensor:
        x = x + self.dropout(change)
        return x if self.pre_norm else norm(x)

    def feed_forward(self, x: Tensor) -> Tensor:
        return self.after(x, self.ffn(self.before(x, self.ffn_norm)), self.ffn_norm)


@known_part
class EncoderLayer(_Layer):
    def forward(self, x: Tensor, mask: Tensor | Packing | None) -> Tensor:
        """x (B, S, D), mask (B, 1, 1, S) or None where nothing is padded."""
        hidden = self.before(x, self.self_norm)
        x = self.after(x, self.self_attention(hidden, hidden, mask), self.self_norm)
        return self.feed_forward(x)


@dataclass
class LayerCache:
    """What one decoder layer remembers while decoding."""

    self_attention: SelfAttentionCache | SlotCache
    memory_keys: Tensor
    """(B, H, S, D/H), once per sentence: the hypotheses of a sentence read it as queries of one attention."""
    memory_values: Tensor


@known_part
class DecoderLayer(_Layer):
    stack = "decoder"

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.cross_attention = Attention(config.model_dim, config.heads_of("decoder"))
        self.cross_norm = nn.LayerNorm(config.model_dim, eps=config.norm_epsilon)

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | PackedMemory | None) -> Tensor:
        """x (B, T, D), memory (B, S, D). Padding stands at the end, so the causal mask alone hides it from real tokens."""
        own, across = memory_mask if isinstance(memory_mask, PackedMemory) else (None, memory_mask)
        hidden = self.before(x, self.self_norm)
        x = self.after(x, self.self_attention(hidden, hidden, own, causal=True), self.self_norm)
        hidden = self.before(x, self.cross_norm)
        x = self.after(x, self.cross_attention(hidden, memory, across), self.cross_norm)
        return self.feed_forward(x)

    def step(self, x: Tensor, cache: LayerCache, memory_mask: Tensor | None, beam: int) -> Tensor:
        """The next t tokens of B sentences × `beam` hypotheses: x (B × beam, t, D) → the same shape."""
        tokens = x.shape[1]
        hidden = self.before(x, self.self_norm)
        x = self.after(x, self.self_attention.step(hidden, cache.self_attention), self.self_norm)
        hidden = self.before(x, self.cross_norm)
        by_sentence = hidden.unflatten(0, (-1, beam)).flatten(1, 2)
        mixed = self.cross_attention.attend(by_sentence, cache.memory_keys, cache.memory_values, memory_mask)
        x = self.after(x, mixed.unflatten(1, (beam, tokens)).flatten(0, 1), self.cross_norm)
        return self.feed_forward(x)


# Dropout. A compiled layer draws a random number for everything it may drop, with a generator of ten rounds, and remembers what
# it dropped: up to two thirds of such a kernel's time on a GPU. Here one draw a call seeds a hash of some fourteen operations,
# which the backward pass computes again.

CHEAP_DROPOUT = True
"""Whether compiled layers do so. For benchmarks to switch."""

SPREAD, FIRST, SECOND = -1640531535, -2048144789, -1028477387
"""Odd numbers: the golden ratio's share of 2³², and the two of MurmurHash3's finaliser, as int32."""


@known_part
class Dropout(nn.Dropout):
    """torch's own, but for how compiled layers choose."""

    def forward(self, input: Tensor) -> Tensor:
        if CHEAP_DROPOUT and self.training and 0 < self.p < 1 and torch.compiler.is_compiling():
            return drop_by_hash(input, self.p, torch.ops.graftmt.noise(input.detach()))
        return super().forward(input)


def drop_by_hash(x: Tensor, probability: float, noise: Tensor) -> Tensor:
    """What `F.dropout` gives, chosen by `noise` (2,) int32: the same for the same, whatever x holds."""
    places = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
    hashed = (places ^ noise[0]) * SPREAD + noise[1]
    hashed = (hashed ^ _shifted(hashed, 16)) * FIRST
    hashed = (hashed ^ _shifted(hashed, 13)) * SECOND
    hashed = hashed ^ _shifted(hashed, 16)
    # As numbers with a point: torch rounds a probability once, while it compiles, and takes that for all later ones.
    kept = (hashed & 0xFFFFFF).float() >= probability * 2.0**24
    return torch.where(kept, x * (1 / (1 - probability)), 0.0)


def _shifted(x: Tensor, bits: int) -> Tensor:
    """To the right, with zeros from the left."""
    shifted: Tensor = (x >> bits) & (2 ** (32 - bits) - 1)
    return shifted


@torch.library.custom_op("graftmt::noise", mutates_args=())
def _noise(like: Tensor) -> Tensor:
    """Drawn from the generator of this tensor's device. An operator, so that no compiler draws it once for every number;
    and of the tensor it is for, so that none takes two draws for one."""
    return torch.randint(-(2**31), 2**31 - 1, (2,), dtype=torch.int32, device=like.device)


@_noise.register_fake
def _(like: Tensor) -> Tensor:
    return like.new_empty(2, dtype=torch.int32)
