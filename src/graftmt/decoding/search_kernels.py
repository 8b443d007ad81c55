"""The highest of each group of scores, and what normalises them, in one pass over memory on a GPU. Layer 3."""

from __future__ import annotations

import torch
from torch import Tensor

from graftmt.model.compiled import kernel, tl, triton

GROUP = 64
AT_ONCE = 2048


def can_take_maxima(scores: Tensor) -> bool:
    return triton is not None and scores.is_cuda and scores.dtype == torch.float32 and scores.shape[1] % GROUP == 0


def group_maxima(scores: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """scores (rows, V) → the highest allowed one of each group of 64 (rows, V / 64), and log Σ exp of all (rows,)."""
    rows, width = scores.shape
    maxima = scores.new_empty(rows, width // GROUP)
    totals = scores.new_empty(rows)
    _group_maxima[(rows,)](
        scores, allowed, maxima, totals, scores.stride(0), width, GROUPS=AT_ONCE // GROUP, GROUP=GROUP, num_warps=8
    )
    return maxima, totals


@kernel
def _group_maxima(  # type: ignore[no-untyped-def]
    scores_at, allowed_at, maxima_at, totals_at, stride, width, GROUPS: tl.constexpr, GROUP: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    groups, inside = tl.arange(0, GROUPS), tl.arange(0, GROUP)
    highest = tl.full([GROUPS], float("-inf"), tl.float32)
    total = tl.zeros([GROUPS], tl.float32)
    for start in range(0, width, GROUPS * GROUP):
        place = start + groups[:, None] * GROUP + inside[None, :]
        there = place < width
        scores = tl.load(scores_at + row * stride + place, mask=there, other=float("-inf"))
        allowed = tl.load(allowed_at + place, mask=there, other=0) != 0
        best = tl.max(tl.where(allowed, scores, float("-inf")), axis=1)
        number = start // GROUP + groups
        tl.store(maxima_at + row * (width // GROUP) + number, best, mask=number < width // GROUP)
        # A sum for each line of the block, joined at the end.
        new = tl.maximum(highest, tl.max(scores, axis=1))
        finite = tl.where(new == float("-inf"), 0.0, new)
        total = total * tl.exp(highest - finite) + tl.sum(tl.exp(scores - finite[:, None]), axis=1)
        highest = new
    top = tl.max(highest, axis=0)
    tl.store(totals_at + row, top + tl.log(tl.sum(total * tl.exp(highest - top), axis=0)))
