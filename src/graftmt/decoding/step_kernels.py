"""What stands between two products of a decoding step on a GPU, in one pass over memory. Layer 3."""

from __future__ import annotations

import torch
from torch import Tensor

from graftmt.decoding.full_sums import HalfNorm
from graftmt.model.compiled import kernel, tl, triton

WIDEST = 4096
FOR_A_WARP = 256
"""Numbers of a row."""


def can_add_and_norm(sums: Tensor, product: Tensor) -> bool:
    """Whether `add_and_norm` takes these: a GPU, no gradients, fp32, rows without gaps."""
    return (
        triton is not None
        and sums.is_cuda
        and not torch.is_grad_enabled()
        and sums.shape[-1] <= WIDEST
        and sums.shape == product.shape
        and all(part.dtype == torch.float32 and part.is_contiguous() for part in (sums, product))
    )


def add_and_norm(sums: Tensor, product: Tensor, bias: Tensor, norm: HalfNorm) -> tuple[Tensor, Tensor]:
    """sums and product (…, D), bias (D,) → sums + product + bias, written over the product, and the norm of it."""
    width = sums.shape[-1]
    normed = torch.empty_like(sums, dtype=norm.dtype)
    whole = triton.next_power_of_2(width)
    _add_and_norm[(sums.numel() // width,)](
        sums,
        product,
        bias,
        norm.weight,
        norm.bias,
        normed,
        width,
        norm.epsilon,
        WIDTH=whole,
        num_warps=min(max(whole // FOR_A_WARP, 1), 8),
    )
    return product, normed


@kernel
def _add_and_norm(  # type: ignore[no-untyped-def]
    sums_at, product_at, bias_at, weight_at, shift_at, normed_at, width, epsilon, WIDTH: tl.constexpr
):
    """One row, read once and kept: its mean, then its deviation from that."""
    row = tl.program_id(0).to(tl.int64) * width
    place = tl.arange(0, WIDTH)
    there = place < width
    product = tl.load(product_at + row + place, mask=there, other=0.0)
    bias = tl.load(bias_at + place, mask=there, other=0.0)
    sums = tl.load(sums_at + row + place, mask=there, other=0.0) + (product + bias)
    tl.store(product_at + row + place, sums, mask=there)
    centred = tl.where(there, sums - tl.sum(sums, axis=0) / width, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / width + epsilon)
    weight = tl.load(weight_at + place, mask=there, other=0.0)
    shift = tl.load(shift_at + place, mask=there, other=0.0)
    normed = centred * scale * weight + shift
    tl.store(normed_at + row + place, normed.to(normed_at.dtype.element_ty), mask=there)
