"""Attention of few queries on a GPU, as decoding steps have them. Layer 1.

torch's kernels work on blocks of 64 queries and read all keys. A step has one query for each hypothesis of a sentence, and most
of what it could read is masked: later positions, padding. Needs Triton, which comes with torch for CUDA on Linux.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graftmt.model.compiled import kernel, tl, triton

MOST_QUERIES = 16
KEYS = 64
"""Read at once; where all of them are masked they are not read."""

PARTS = {torch.float32: 1, torch.bfloat16: 3, torch.float16: 2}
"""How many numbers of this type together are about as exact as one in fp32. A key's weight is multiplied as a sum of them:
rounded to one, or to tf32, it would depend on which keys came before, whose highest score it is relative to."""


def can_mix_few(queries: Tensor, mask: Tensor | None) -> bool:
    """Whether `mix_few` takes these: a GPU, no gradients, at most 16 queries, a mask that is the same for all heads."""
    return (
        triton is not None
        and queries.is_cuda
        and not torch.is_grad_enabled()
        and queries.shape[2] <= MOST_QUERIES
        and queries.shape[3] in (16, 32, 64, 128)
        and queries.dtype in PARTS
        and (mask is None or (mask.dtype == torch.bool and mask.dim() == 4 and mask.shape[1] == 1))
    )


def mix_few(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Queries (B, H, T, D/H), keys and values (B, H, S, D/H), mask (B, 1, T or 1, S) → (B, H, T, D/H)."""
    sentences, heads, count, dim = queries.shape
    result = queries.new_empty(sentences, count, heads, dim).transpose(1, 2)
    if mask is None:
        mask = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=queries.device)
    mask = mask.expand(sentences, 1, count, keys.shape[2])
    _mix_few[(sentences * heads,)](
        queries,
        keys,
        values,
        mask,
        result,
        *queries.stride()[:3],
        *keys.stride()[:3],
        *values.stride()[:3],
        *(mask.stride(number) for number in (0, 2, 3)),
        *result.stride()[:3],
        heads,
        count,
        keys.shape[2],
        dim**-0.5,
        DIM=dim,
        QUERIES=MOST_QUERIES,
        KEYS=KEYS,
        PARTS=PARTS[queries.dtype],
    )
    return result


@kernel(do_not_specialize=["keys_given"])  # type: ignore[untyped-decorator]
def _mix_few(  # type: ignore[no-untyped-def]
    queries_at,
    keys_at,
    values_at,
    mask_at,
    result_at,
    query_b,
    query_h,
    query_t,
    key_b,
    key_h,
    key_s,
    value_b,
    value_h,
    value_s,
    mask_b,
    mask_t,
    mask_s,
    result_b,
    result_h,
    result_t,
    heads,
    queries_given,
    keys_given,
    scale,
    DIM: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    PARTS: tl.constexpr,
):
    """One head of one sentence: softmax over the keys in one pass, its sums in fp32."""
    number = tl.program_id(0).to(tl.int64)
    sentence, head = number // heads, number % heads
    rows, columns, places = tl.arange(0, QUERIES), tl.arange(0, KEYS), tl.arange(0, DIM)
    real = rows < queries_given
    query = tl.load(
        queries_at + sentence * query_b + head * query_h + rows[:, None] * query_t + places[None, :],
        mask=real[:, None],
        other=0.0,
    )
    highest = tl.full([QUERIES], float("-inf"), tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    mixed = tl.zeros([QUERIES, DIM], tl.float32)
    for start in range(0, keys_given, KEYS):
        now = start + columns
        there = now < keys_given
        seen = tl.load(
            mask_at + sentence * mask_b + rows[:, None] * mask_t + now[None, :] * mask_s,
            mask=real[:, None] & there[None, :],
            other=0,
        )
        seen = seen != 0
        if tl.max(tl.max(seen.to(tl.int32), axis=1), axis=0) > 0:
            key = tl.load(
                keys_at + sentence * key_b + head * key_h + now[None, :] * key_s + places[:, None],
                mask=there[None, :],
                other=0.0,
            )
            scores = tl.dot(query, key, input_precision="ieee") * scale
            scores = tl.where(seen, scores, float("-inf"))
            new = tl.maximum(highest, tl.max(scores, axis=1))
            finite = tl.where(new == float("-inf"), 0.0, new)
            weights = tl.exp(scores - finite[:, None])
            kept = tl.exp(highest - finite)
            value = tl.load(
                values_at + sentence * value_b + head * value_h + now[:, None] * value_s + places[None, :],
                mask=there[:, None],
                other=0.0,
            )
            total = total * kept + tl.sum(weights, axis=1)
            mixed = mixed * kept[:, None]
            for _ in tl.static_range(PARTS):
                part = weights.to(value.dtype)
                mixed = tl.dot(part, value, mixed, input_precision="ieee")
                weights -= part.to(tl.float32)
            highest = new
    mixed = mixed / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(
        result_at + sentence * result_b + head * result_h + rows[:, None] * result_t + places[None, :],
        mixed.to(result_at.dtype.element_ty),
        mask=real[:, None],
    )
