"""Kernels compute what torch's own do, gradients included; without a GPU, step by step in Triton's interpreter.

`TRITON_INTERPRET=1 pytest -m gpu tests/gpu/test_kernels.py` is what the other tests run where there is none.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from graftmt.decoding.full_sums import HalfNorm
from graftmt.decoding.search_kernels import GROUP, can_take_maxima, group_maxima
from graftmt.decoding.step_kernels import add_and_norm, can_add_and_norm
from graftmt.model.attention_kernels import can_mix_few, mix_few
from graftmt.model.packed_kernels import can_mix_packed, mix_packed, tiles_of
from graftmt.training.fused_loss import can_replace, replace_by_gradient

HAS_GPU = torch.cuda.is_available()
DEVICE = "cuda" if HAS_GPU else "cpu"
HALF = torch.bfloat16 if HAS_GPU else torch.float16  # the interpreter has no bf16

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not HAS_GPU and os.environ.get("TRITON_INTERPRET") != "1", reason="there is no CUDA device"),
]


def random(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def packed(dim: int, *, causal: bool) -> tuple[list[Tensor], Any]:
    """Queries, keys, values and tiles of sentences from one token to more than a tile; three that are empty at the end."""
    lengths = torch.randint(1, 90, (2, 60 if HAS_GPU else 12), generator=torch.Generator().manual_seed(1))
    lengths[1] = lengths[0] if causal else lengths[1]
    starts = [torch.cat([torch.zeros(1), side.cumsum(0), side.sum().expand(3)]).to(torch.int32) for side in lengths]
    sizes = [int(side.sum()) for side in lengths]
    tensors = [
        random(1, size, 4, dim, seed=seed).to(HALF).transpose(1, 2)
        for seed, size in enumerate((sizes[0], sizes[1], sizes[1]), 2)
    ]
    return tensors, tiles_of(starts[0].to(DEVICE), starts[1].to(DEVICE), sizes[0], sizes[1], causal=causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dim", [32, 64])
@pytest.mark.parametrize("frozen_keys", [False, True])
def test_attention_over_packed_sentences(causal: bool, dim: int, frozen_keys: bool) -> None:
    tensors, tiles = packed(dim, causal=causal)
    trained = tensors[:1] if frozen_keys else tensors
    for part in trained:
        part.requires_grad_()
    assert can_mix_packed(tensors[0]) == HAS_GPU
    found = mix_packed(*tensors, tiles, causal)
    gradient = random(*found.shape, seed=5).to(HALF)
    found.backward(gradient)
    exact = [part.detach().double().requires_grad_() for part in tensors]
    mask = tiles.of_query[:, None] == tiles.of_key[None]
    expected = F.scaled_dot_product_attention(*exact, attn_mask=mask.tril() if causal else mask)
    expected.backward(gradient.double())
    pairs = [(found, expected), *((part.grad, other.grad) for part, other in zip(trained, exact, strict=False))]
    for ours, theirs in pairs:
        assert ours is not None and theirs is not None
        assert (ours.double() - theirs).norm() < 0.01 * theirs.norm()
    assert all(part.grad is None for part in tensors[len(trained) :])


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (HALF, 5e-3)])
@pytest.mark.parametrize(("queries", "keys", "dim"), [(5, 80, 64), (1, 7, 32), (16, 300, 128), (2, 64, 16)])
@torch.no_grad()
def test_attention_of_few_queries(dtype: torch.dtype, tolerance: float, queries: int, keys: int, dim: int) -> None:
    sentences = 30 if HAS_GPU else 3
    q = random(sentences, queries, 4, dim, seed=1).to(dtype).transpose(1, 2)
    k, v = (random(sentences, 4, keys, dim, seed=seed).to(dtype) for seed in (2, 3))
    masks = [random(sentences, 1, rows, keys, seed=4) < -0.5 for rows in (queries, 1)]
    for mask in masks:
        mask[..., 0] = True
        mask[..., keys // 2 :] = False
    for mask in (*masks, None):
        assert can_mix_few(q, mask) == HAS_GPU
        expected = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=mask)
        assert (mix_few(q, k, v, mask).double() - expected).norm() < tolerance * expected.norm()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16] if HAS_GPU else [HALF])
@torch.no_grad()
def test_the_order_of_keys_does_not_matter_in_half_precision(dtype: torch.dtype) -> None:
    """Weights rounded to half precision or tf32 would fail on a GPU; the interpreter computes tf32 as it does fp32."""
    sentences, keys = 30 if HAS_GPU else 4, 300
    q = random(sentences, 5, 4, 64, seed=1).to(dtype).transpose(1, 2)
    k, v = (random(sentences, 4, keys, 64, seed=seed).to(dtype) for seed in (2, 3))
    mask = random(sentences, 1, 5, keys, seed=4) < 0.5
    order = torch.randperm(keys, generator=torch.Generator().manual_seed(5)).to(DEVICE)
    one, other = mix_few(q, k, v, mask), mix_few(q, k[:, :, order], v[:, :, order], mask[..., order].contiguous())
    assert (one != other).float().mean() < 0.005
    torch.testing.assert_close(one.float(), other.float(), rtol=torch.finfo(dtype).eps, atol=1e-6)  # one rounding


@pytest.mark.parametrize(("rows", "width"), [(9, 512), (3, 96), (1, 32), (5, 1000), (2, 2048)])
@torch.no_grad()
def test_sums_and_their_norm(rows: int, width: int) -> None:
    norm = torch.nn.LayerNorm(width, eps=1e-5)
    norm.weight.copy_(1 + 0.3 * random(width, seed=1))
    norm.bias.copy_(random(width, seed=2))
    half = HalfNorm(norm.to(DEVICE, HALF))
    sums, product, bias = 3 + random(rows, 2, width, seed=3), random(rows, 2, width, seed=4), random(width, seed=5)
    assert can_add_and_norm(sums, product) == HAS_GPU
    assert not can_add_and_norm(sums, product.to(HALF))
    expected, before = sums + (product + bias), sums.clone()
    found, normed = add_and_norm(sums, product, bias, half)
    assert torch.equal(found, expected) and torch.equal(sums, before)
    assert normed.dtype == HALF
    exact = F.layer_norm(expected.double(), (width,), half.weight.double(), half.bias.double(), 1e-5)
    torch.testing.assert_close(normed.double(), exact, rtol=torch.finfo(HALF).eps, atol=1e-5)


def test_maxima_of_groups_and_their_total() -> None:
    rows, width = (50, 569 * GROUP) if HAS_GPU else (7, 70 * GROUP)
    scores = 3 * random(rows, width, seed=1)
    scores[:, -16:] = -torch.inf
    allowed = torch.ones(width, dtype=torch.bool, device=DEVICE)
    allowed[[0, 1, 3, 700]] = False
    assert can_take_maxima(scores) == HAS_GPU
    maxima, totals = group_maxima(scores, allowed)
    assert torch.equal(maxima, scores.masked_fill(~allowed, -torch.inf).view(rows, -1, GROUP).amax(dim=2))
    torch.testing.assert_close(totals, scores.logsumexp(dim=1), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (HALF, 5e-3)])
@pytest.mark.parametrize("rows", [300, 9000])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_scores_become_the_gradient_of_their_loss(dtype: torch.dtype, tolerance: float, rows: int, smoothing: float) -> None:
    count, padding_id = 40 if HAS_GPU else 5, 1
    scores = torch.full((count, rows + 28), 77.0, dtype=dtype, device=DEVICE)  # what lies beyond the rows must not count
    scores[:, :rows] = 4 * random(count, rows, seed=1)
    labels = torch.randint(2, rows, (count,), generator=torch.Generator().manual_seed(2)).to(DEVICE)
    labels[2] = padding_id
    labels[3], labels[4] = 0, rows - 1
    exact = scores[:, :rows].double().requires_grad_()
    expected = F.cross_entropy(exact, labels, ignore_index=padding_id, label_smoothing=smoothing, reduction="none")
    expected.sum().backward()
    assert can_replace(scores) == HAS_GPU
    losses = replace_by_gradient(scores, rows, labels, padding_id, smoothing)
    assert exact.grad is not None
    assert (losses.double() - expected).norm() < 1e-5 * expected.norm()
    assert (scores[:, :rows].double() - exact.grad).norm() < tolerance * exact.grad.norm()
    assert not scores[:, rows:].any() and not scores[2].any()
