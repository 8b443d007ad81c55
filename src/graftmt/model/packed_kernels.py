"""Attention over packed sentences on a GPU, with its gradients: tiles of 32 tokens that may hold several sentences. Layer 1.

A tile of queries looks at the keys of the sentences it touches and at no others: for sentences of twenty tokens some sixty
keys, where kernels that take one sentence at a time waste most of each tile, and FlexAttention's blocks of 128 look at three or
four hundred.
Needs Triton, which comes with torch for CUDA on Linux.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from graftmt.model.compiled import kernel, tl, triton

BY_TILES = True
"""Only benchmarks switch it off, to see what it does by itself."""

TILE = 32

SHAPES = {"forward": (2, 2), "queries": (2, 2), "keys": (4, 1)}
"""Of each kernel: warps, and loads that are under way together. The fastest on an H200, for sentences of twenty tokens."""


class Tiles(NamedTuple):
    """Which keys each tile of queries looks at, and which queries each tile of keys is seen by. All int32."""

    of_query: Tensor
    """(T,): the sentence of each query."""
    of_key: Tensor
    """(S,)"""
    key_ranges: Tensor
    """(tiles of queries, 2): first key and end."""
    query_ranges: Tensor
    """(tiles of keys, 2)"""


def tiles_of(query_starts: Tensor, key_starts: Tensor, queries: int, keys: int, *, causal: bool) -> Tiles:
    """For sentences that begin at these places; the last entry is the end. `causal`: no key after the query."""
    of_query, of_key = sentences_of(query_starts, queries), sentences_of(key_starts, keys)
    key_ranges, query_ranges = _ranges(of_query, key_starts), _ranges(of_key, query_starts)
    if causal:
        ends = torch.arange(TILE, queries + TILE, TILE, device=key_ranges.device, dtype=torch.int32)
        key_ranges[:, 1] = torch.minimum(key_ranges[:, 1], ends)
        query_ranges[:, 0] = torch.maximum(query_ranges[:, 0], ends[: len(query_ranges)] - TILE)
    return Tiles(of_query, of_key, key_ranges, query_ranges)


def sentences_of(starts: Tensor, tokens: int) -> Tensor:
    """The number of the sentence that each token belongs to."""
    numbers = torch.arange(tokens, device=starts.device, dtype=starts.dtype)
    return torch.searchsorted(starts, numbers, right=True, out_int32=True) - 1


def _ranges(of_token: Tensor, other_starts: Tensor) -> Tensor:
    """For each tile of these tokens, the tokens of the other side that belong to the same sentences."""
    first = of_token[::TILE]
    last = torch.cat([of_token[TILE - 1 :: TILE], of_token[-1:]])[: len(first)]
    return torch.stack([other_starts[first], other_starts[last + 1]], dim=1).to(torch.int32).contiguous()


def fits_tiles(device: torch.device, head_dim: int) -> bool:
    """Whether there are kernels for it there, given half precision."""
    return BY_TILES and triton is not None and device.type == "cuda" and head_dim in (16, 32, 64, 128)


def can_mix_packed(queries: Tensor) -> bool:
    """Whether `mix_packed` takes these: a GPU, half precision."""
    return queries.dtype in (torch.bfloat16, torch.float16) and fits_tiles(queries.device, queries.shape[3])


def mix_packed(queries: Tensor, keys: Tensor, values: Tensor, tiles: Tiles, causal: bool) -> Tensor:
    """Queries (1, H, T, D/H), keys and values (1, H, S, D/H) → (1, H, T, D/H)."""
    return torch.ops.graftmt.mix_packed(queries, keys, values, *tiles, causal)[0]  # type: ignore[no-any-return]


# As operators, so that compiled layers take them as they are


@torch.library.custom_op("graftmt::mix_packed", mutates_args=())
def _mix_packed(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    of_query: Tensor,
    of_key: Tensor,
    key_ranges: Tensor,
    query_ranges: Tensor,
    causal: bool,
) -> tuple[Tensor, Tensor]:
    """What is mixed, and the logarithm of what each query's weights were divided by (H, T)."""
    _, heads, count, dim = queries.shape
    result = _like_tokens(queries)
    totals = queries.new_empty(heads, count, dtype=torch.float32)
    _forward[(len(key_ranges), heads)](
        *_placed(queries, keys, values, result),
        totals,
        of_query,
        of_key,
        key_ranges,
        count,
        keys.shape[2],
        dim**-0.5,
        **_constants("forward", dim, causal),
    )
    return result, totals


@_mix_packed.register_fake
def _(queries: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    return _like_tokens(queries), queries.new_empty(queries.shape[1], queries.shape[2], dtype=torch.float32)


@torch.library.custom_op("graftmt::mix_packed_backward", mutates_args=())
def _mix_packed_backward(
    gradient: Tensor,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    result: Tensor,
    totals: Tensor,
    of_query: Tensor,
    of_key: Tensor,
    key_ranges: Tensor,
    query_ranges: Tensor,
    causal: bool,
    for_keys: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of queries, keys and values; without `for_keys` the last two are empty."""
    _, heads, count, dim = queries.shape
    numbers = (totals, torch.empty_like(totals), of_query, of_key)
    sizes = (count, keys.shape[2], dim**-0.5)
    query_gradient = _like_tokens(queries)
    _backward_queries[(len(key_ranges), heads)](
        *_placed(queries, keys, values, gradient, result, query_gradient),
        *numbers,
        key_ranges,
        *sizes,
        **_constants("queries", dim, causal),
    )
    if not for_keys:
        return query_gradient, keys.new_empty(0), values.new_empty(0)
    key_gradient, value_gradient = _like_tokens(keys), _like_tokens(values)
    _backward_keys[(len(query_ranges), heads)](
        *_placed(queries, keys, values, gradient, key_gradient, value_gradient),
        *numbers,
        query_ranges,
        *sizes,
        **_constants("keys", dim, causal),
    )
    return query_gradient, key_gradient, value_gradient


@_mix_packed_backward.register_fake
def _(gradient: Tensor, queries: Tensor, keys: Tensor, values: Tensor, *others: Any) -> tuple[Tensor, Tensor, Tensor]:
    *_, for_keys = others
    if not for_keys:
        return _like_tokens(queries), keys.new_empty(0), values.new_empty(0)
    return _like_tokens(queries), _like_tokens(keys), _like_tokens(values)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, causal = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.causal = causal
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, gradient: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
    nothing = (None,) * 5
    if gradient is None:
        return (None, None, None, *nothing)
    queries, keys, values, *tiles, result, totals = ctx.saved_tensors
    for_keys = ctx.needs_input_grad[1] or ctx.needs_input_grad[2]
    found = torch.ops.graftmt.mix_packed_backward(gradient, queries, keys, values, result, totals, *tiles, ctx.causal, for_keys)
    return (found[0], *(found[1:] if for_keys else (None, None)), *nothing)


_mix_packed.register_autograd(_gradients, setup_context=_remember)


def _like_tokens(x: Tensor) -> Tensor:
    """(1, H, T, D/H) whose memory is (1, T, H, D/H): heads side by side, as the products before and after have them."""
    _, heads, count, dim = x.shape
    return x.new_empty(1, count, heads, dim).transpose(1, 2)


def _placed(*tensors: Tensor) -> tuple[Any, ...]:
    """Each with its strides over heads and tokens; a head's numbers lie side by side."""
    tensors = tuple(x if x.stride(3) == 1 else x.contiguous() for x in tensors)
    return (*tensors, *(stride for x in tensors for stride in (x.stride(1), x.stride(2))))


def _constants(kernel: str, dim: int, causal: bool) -> dict[str, Any]:
    warps, stages = SHAPES[kernel]
    return {"CAUSAL": causal, "DIM": dim, "TILE": TILE, "num_warps": warps, "num_stages": stages}


# Kernels: one tile of one head each


@kernel
def _rows(at, stride, tokens, count, places):  # type: ignore[no-untyped-def]
    """Tokens' numbers as a matrix; zeros beyond the end."""
    return tl.load(at + tokens[:, None] * stride + places[None, :], mask=(tokens < count)[:, None], other=0.0)


@kernel
def _seen(query_tokens, key_tokens, query_sentence, key_sentence, keys_given, CAUSAL: tl.constexpr):  # type: ignore[no-untyped-def]
    """Which query may look at which key."""
    seen = (query_sentence[:, None] == key_sentence[None, :]) & (key_tokens < keys_given)[None, :]
    if CAUSAL:
        seen = seen & (query_tokens[:, None] >= key_tokens[None, :])
    return seen


@kernel
def _forward(  # type: ignore[no-untyped-def]
    queries_at, keys_at, values_at, result_at,
    query_h, query_t, key_h, key_t, value_h, value_t, result_h, result_t,
    totals_at, of_query_at, of_key_at, ranges_at, queries_given, keys_given, scale,
    CAUSAL: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    number, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    places, tokens = tl.arange(0, DIM), number * TILE + tl.arange(0, TILE)
    query = _rows(queries_at + head * query_h, query_t, tokens, queries_given, places)
    sentence = tl.load(of_query_at + tokens, mask=tokens < queries_given, other=-1)
    first, end = tl.load(ranges_at + 2 * number), tl.load(ranges_at + 2 * number + 1)
    highest = tl.full([TILE], float("-inf"), tl.float32)
    total = tl.zeros([TILE], tl.float32)
    mixed = tl.zeros([TILE, DIM], tl.float32)
    for start in range(first, end, TILE):
        now = start + tl.arange(0, TILE)
        key = _rows(keys_at + head * key_h, key_t, now, keys_given, places)
        of_key = tl.load(of_key_at + now, mask=now < keys_given, other=-2)
        scores = tl.dot(query, tl.trans(key)) * scale
        scores = tl.where(_seen(tokens, now, sentence, of_key, keys_given, CAUSAL), scores, float("-inf"))
        new = tl.maximum(highest, tl.max(scores, axis=1))
        finite = tl.where(new == float("-inf"), 0.0, new)
        weights = tl.exp(scores - finite[:, None])
        kept = tl.exp(highest - finite)
        value = _rows(values_at + head * value_h, value_t, now, keys_given, places)
        mixed = mixed * kept[:, None] + tl.dot(weights.to(value.dtype), value)
        total = total * kept + tl.sum(weights, axis=1)
        highest = new
    total = tl.where(total == 0.0, 1.0, total)
    highest = tl.where(highest == float("-inf"), 0.0, highest)
    there = tokens < queries_given
    mixed = (mixed / total[:, None]).to(result_at.dtype.element_ty)
    tl.store(result_at + head * result_h + tokens[:, None] * result_t + places[None, :], mixed, mask=there[:, None])
    tl.store(totals_at + head * queries_given + tokens, highest + tl.log(total), mask=there)


@kernel
def _backward_queries(  # type: ignore[no-untyped-def]
    queries_at, keys_at, values_at, gradient_at, mixed_at, result_at,
    query_h, query_t, key_h, key_t, value_h, value_t, gradient_h, gradient_t, mixed_h, mixed_t, result_h, result_t,
    totals_at, shared_at, of_query_at, of_key_at, ranges_at, queries_given, keys_given, scale,
    CAUSAL: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Also leaves in `shared`, for the keys' kernel, what a change of all scores of a query together would do."""
    number, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    places, tokens = tl.arange(0, DIM), number * TILE + tl.arange(0, TILE)
    there = tokens < queries_given
    query = _rows(queries_at + head * query_h, query_t, tokens, queries_given, places)
    gradient = _rows(gradient_at + head * gradient_h, gradient_t, tokens, queries_given, places)
    sentence = tl.load(of_query_at + tokens, mask=there, other=-1)
    total = tl.load(totals_at + head * queries_given + tokens, mask=there, other=0.0)
    mixed = _rows(mixed_at + head * mixed_h, mixed_t, tokens, queries_given, places)
    shared = tl.sum(gradient.to(tl.float32) * mixed.to(tl.float32), axis=1)
    tl.store(shared_at + head * queries_given + tokens, shared, mask=there)
    first, end = tl.load(ranges_at + 2 * number), tl.load(ranges_at + 2 * number + 1)
    found = tl.zeros([TILE, DIM], tl.float32)
    for start in range(first, end, TILE):
        now = start + tl.arange(0, TILE)
        key = _rows(keys_at + head * key_h, key_t, now, keys_given, places)
        value = _rows(values_at + head * value_h, value_t, now, keys_given, places)
        of_key = tl.load(of_key_at + now, mask=now < keys_given, other=-2)
        seen = _seen(tokens, now, sentence, of_key, keys_given, CAUSAL)
        weights = tl.where(seen, tl.exp(tl.dot(query, tl.trans(key)) * scale - total[:, None]), 0.0)
        change = weights * (tl.dot(gradient, tl.trans(value)) - shared[:, None]) * scale
        found += tl.dot(change.to(key.dtype), key)
    found = found.to(result_at.dtype.element_ty)
    tl.store(result_at + head * result_h + tokens[:, None] * result_t + places[None, :], found, mask=there[:, None])


@kernel
def _backward_keys(  # type: ignore[no-untyped-def]
    queries_at, keys_at, values_at, gradient_at, key_result_at, value_result_at,
    query_h, query_t, key_h, key_t, value_h, value_t, gradient_h, gradient_t,
    key_result_h, key_result_t, value_result_h, value_result_t,
    totals_at, shared_at, of_query_at, of_key_at, ranges_at, queries_given, keys_given, scale,
    CAUSAL: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    number, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    places, tokens = tl.arange(0, DIM), number * TILE + tl.arange(0, TILE)
    there = tokens < keys_given
    key = _rows(keys_at + head * key_h, key_t, tokens, keys_given, places)
    value = _rows(values_at + head * value_h, value_t, tokens, keys_given, places)
    sentence = tl.load(of_key_at + tokens, mask=there, other=-2)
    first, end = tl.load(ranges_at + 2 * number), tl.load(ranges_at + 2 * number + 1)
    key_found = tl.zeros([TILE, DIM], tl.float32)
    value_found = tl.zeros([TILE, DIM], tl.float32)
    for start in range(first, end, TILE):
        now = start + tl.arange(0, TILE)
        given = now < queries_given
        query = _rows(queries_at + head * query_h, query_t, now, queries_given, places)
        gradient = _rows(gradient_at + head * gradient_h, gradient_t, now, queries_given, places)
        of_query = tl.load(of_query_at + now, mask=given, other=-1)
        total = tl.load(totals_at + head * queries_given + now, mask=given, other=0.0)
        shared = tl.load(shared_at + head * queries_given + now, mask=given, other=0.0)
        seen = _seen(now, tokens, of_query, sentence, keys_given, CAUSAL)
        weights = tl.where(seen, tl.exp(tl.dot(query, tl.trans(key)) * scale - total[:, None]), 0.0)
        value_found += tl.dot(tl.trans(weights.to(gradient.dtype)), gradient)
        change = weights * (tl.dot(gradient, tl.trans(value)) - shared[:, None]) * scale
        key_found += tl.dot(tl.trans(change.to(query.dtype)), query)
    at = tokens[:, None] * key_result_t + places[None, :]
    tl.store(key_result_at + head * key_result_h + at, key_found.to(key_result_at.dtype.element_ty), mask=there[:, None])
    at = tokens[:, None] * value_result_t + places[None, :]
    tl.store(
        value_result_at + head * value_result_h + at, value_found.to(value_result_at.dtype.element_ty), mask=there[:, None]
    )
