"""Dropout; in compiled layers, what is dropped is read off a hash of each number's place. Layer 1.

A compiled layer draws a random number for everything it may drop, with a generator of ten rounds, and remembers what it
dropped: up to two thirds of such a kernel's time on a GPU. Here one draw a call seeds a hash of some fourteen operations, which
the backward pass computes again.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graftmt.model.known_parts import known_part

CHEAP = True
"""Whether compiled layers do so. For benchmarks to switch."""

SPREAD, FIRST, SECOND = -1640531535, -2048144789, -1028477387
"""Odd numbers: the golden ratio's share of 2³², and the two of MurmurHash3's finaliser, as int32."""


@known_part
class Dropout(nn.Dropout):
    """torch's own, but for how compiled layers choose."""

    def forward(self, input: Tensor) -> Tensor:
        if CHEAP and self.training and 0 < self.p < 1 and torch.compiler.is_compiling():
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
