"""Attention by tiles on CUDA gives what attention over padded sentences gives, gradients included."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from graftmt.model.packed_kernels import can_mix_packed, mix_packed, tiles_of

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dim", [32, 64])
@pytest.mark.parametrize("frozen_keys", [False, True])
def test_tiles(causal: bool, dim: int, frozen_keys: bool) -> None:
    chance = torch.Generator().manual_seed(1)
    lengths = torch.randint(1, 90, (2, 60), generator=chance)
    lengths[1] = lengths[0] if causal else lengths[1]
    starts = [torch.cat([torch.zeros(1), side.cumsum(0), side.sum().expand(3)]).to(torch.int32).cuda() for side in lengths]
    sizes = [int(side.sum()) for side in lengths]
    q, k, v = (
        torch.randn(1, size, 4, dim, generator=chance).cuda().bfloat16().transpose(1, 2)
        for size in (sizes[0], sizes[1], sizes[1])
    )
    gradient = torch.randn(1, 4, sizes[0], dim, generator=chance).cuda().bfloat16()
    tiles = tiles_of(*starts, *sizes, causal=causal)
    trained = [q] if frozen_keys else [q, k, v]
    for part in trained:
        part.requires_grad_()
    assert can_mix_packed(q)
    found = mix_packed(q, k, v, tiles, causal)
    found.backward(gradient)
    exact = [part.detach().double().requires_grad_() for part in (q, k, v)]
    mask = tiles.of_query[:, None] == tiles.of_key[None]
    expected = F.scaled_dot_product_attention(*exact, attn_mask=mask.tril() if causal else mask)
    expected.backward(gradient.double())
    pairs = [(found, expected), *((part.grad, other.grad) for part, other in zip(trained, exact, strict=False))]
    for ours, theirs in pairs:
        assert (ours.double() - theirs).norm() < 0.01 * theirs.norm()
