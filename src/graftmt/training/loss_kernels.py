"""Scores into the gradient of their label-smoothed loss, in their own memory, on a GPU. Layer 4.

A row of 64,000 scores is read once from memory and once more from the cache, and written once.
Needs Triton, which comes with torch for CUDA on Linux.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graftmt.model.compiled import kernel, tl, triton

TOGETHER = 8
"""Scores side by side that share a running maximum: what a thread reads at once."""

WARPS = 16
"""Few rows at a time, so that the cache still has them when they are read again."""


def can_replace(scores: Tensor) -> bool:
    return triton is not None and scores.is_cuda and scores.dtype in (torch.float32, torch.bfloat16, torch.float16)


def replace_by_gradient(scores: Tensor, rows: int, labels: Tensor, padding_id: int, smoothing: float) -> Tensor:
    """scores (n, V or a little more), of which `rows` are real, become the gradient; returns the loss of each token (n,)."""
    assert scores.stride(1) == 1
    losses = scores.new_empty(len(scores), dtype=torch.float32)
    with torch.cuda.device_of(scores):
        _replace_by_gradient[(len(scores),)](
            scores,
            labels,
            losses,
            scores.stride(0),
            scores.shape[1],
            rows,
            padding_id,
            smoothing,
            GROUPS=32 * WARPS,
            TOGETHER=TOGETHER,
            num_warps=WARPS,
        )
    return losses


@kernel(do_not_specialize=["padding_id"])  # type: ignore[untyped-decorator]
def _replace_by_gradient(  # type: ignore[no-untyped-def]
    scores_at, labels_at, losses_at, stride, width, rows, padding_id, smoothing, GROUPS: tl.constexpr, TOGETHER: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_at + row)
    scores_at += row * stride
    places = tl.arange(0, GROUPS)[:, None] * TOGETHER + tl.arange(0, TOGETHER)[None, :]
    if label == padding_id:
        for start in range(0, width, GROUPS * TOGETHER):
            nothing = tl.zeros([GROUPS, TOGETHER], tl.float32).to(scores_at.dtype.element_ty)
            tl.store(scores_at + start + places, nothing, mask=start + places < width)
        tl.store(losses_at + row, 0.0)
    else:
        highest = tl.full([GROUPS], float("-inf"), tl.float32)
        total = tl.zeros([GROUPS], tl.float32)
        plain = tl.zeros([GROUPS], tl.float32)
        for start in range(0, width, GROUPS * TOGETHER):
            real = start + places < rows
            scores = tl.load(scores_at + start + places, mask=real, other=float("-inf")).to(tl.float32)
            plain += tl.sum(tl.where(real, scores, 0.0), axis=1)
            new = tl.maximum(highest, tl.max(scores, axis=1))
            finite = tl.where(new == float("-inf"), 0.0, new)
            total = total * tl.exp(highest - finite) + tl.sum(tl.exp(scores - finite[:, None]), axis=1)
            highest = new
        top = tl.max(highest, axis=0)
        log_total = top + tl.log(tl.sum(total * tl.exp(highest - top), axis=0))
        share = smoothing / rows
        wanted = tl.load(scores_at + label).to(tl.float32)
        tl.store(losses_at + row, log_total - (1 - smoothing) * wanted - share * tl.sum(plain, axis=0))
        tl.debug_barrier()  # all have read the label's score before one writes its gradient
        for start in range(0, width, GROUPS * TOGETHER):
            now = start + places
            scores = tl.load(scores_at + now, mask=now < rows, other=float("-inf")).to(tl.float32)
            gradient = tl.exp(scores - log_total) - share - tl.where(now == label, 1 - smoothing, 0.0)
            gradient = tl.where(now < rows, gradient, 0.0)
            tl.store(scores_at + now, gradient.to(scores_at.dtype.element_ty), mask=now < width)
