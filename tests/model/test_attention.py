from __future__ import annotations

import pytest
import torch

from graftmt.model.attention import FEW, Attention, CacheMemory, SelfAttentionCache
from graftmt.model.packed_kernels import TILE, tiles_of


@pytest.mark.parametrize("queries", [1, 5, FEW])
def test_few_queries_get_what_they_get_among_many(queries: int) -> None:
    """Few and many queries go different ways on the CPU."""
    torch.manual_seed(1)
    attention, memory = Attention(24, 3), torch.randn(2, 9, 24)
    mask = torch.tensor([9, 4])[:, None, None, None] > torch.arange(9)
    x = torch.randn(2, FEW + 1, 24)
    many = attention(x, memory, mask)
    torch.testing.assert_close(attention(x[:, :queries], memory, mask), many[:, :queries], atol=1e-5, rtol=1e-5)
    assert attention(x, memory).shape == x.shape


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_work(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    attention, x, memory = Attention(24, 3), torch.randn(2, 3, 24), torch.randn(2, 9, 24)
    expected = attention(x, memory)
    found = attention.to(dtype)(x.to(dtype), memory.to(dtype))
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.05)


def test_what_is_masked_is_not_seen() -> None:
    attention, memory, x = Attention(24, 3), torch.randn(1, 6, 24), torch.randn(1, 2, 24)
    mask = (torch.arange(6) < 4)[None, None, None]
    before = attention(x, memory, mask)
    memory[:, 4:] = 1e6
    torch.testing.assert_close(attention(x, memory, mask), before)


def test_caches_share_their_memory_without_overlap() -> None:
    """Two layers that move in turn keep their own contents."""
    rows, heads, dim, capacity = 4, 2, 3, 6
    memory = CacheMemory(rows * heads * dim * capacity, like=torch.zeros(1))
    caches = [SelfAttentionCache(rows, heads, dim, memory) for _ in range(2)]
    expected = [(torch.empty(rows, heads, 0, dim), torch.empty(rows, heads, 0, dim)) for _ in caches]
    for step in range(capacity):
        order = torch.randint(0, rows, (rows,))
        for number, cache in enumerate(caches):
            new = (torch.randn(rows, heads, 1, dim), torch.randn(rows, heads, 1, dim))
            if step % 2:
                cache.reorder(order)
                expected[number] = (expected[number][0][order], expected[number][1][order])
            expected[number] = (
                torch.cat([expected[number][0], new[0]], dim=2),
                torch.cat([expected[number][1], new[1]], dim=2),
            )
            keys, values = cache.append(*new)
            assert keys.is_contiguous() and values.is_contiguous()
        for cache, (keys, values) in zip(caches, expected, strict=True):
            assert torch.equal(cache.keys, keys)
            assert torch.equal(cache.values, values)
    assert len(memory.free) == 1  # one buffer to move into serves all


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_tiles_look_at_all_that_their_sentences_may_see(causal: bool, seed: int) -> None:
    chance = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 120, (2, 20), generator=chance)
    if causal:
        lengths[1] = lengths[0]
    starts = [torch.cat([torch.zeros(1), side.cumsum(0), side.sum().expand(3)]).to(torch.int32) for side in lengths]
    queries, keys = (int(side.sum()) for side in lengths)
    tiles = tiles_of(*starts, queries, keys, causal=causal)
    seen = tiles.of_query[:, None] == tiles.of_key[None]
    seen = seen.tril() if causal else seen
    for ranges, table in ((tiles.key_ranges, seen), (tiles.query_ranges, seen.T)):
        assert len(ranges) == -(-len(table) // TILE)
        for number, (first, end) in enumerate(ranges.tolist()):
            wanted = table[number * TILE : (number + 1) * TILE].any(dim=0).nonzero().flatten()
            assert first <= int(wanted[0]) and int(wanted[-1]) < end
            if not causal:  # and at no others
                assert (first, end) == (int(wanted[0]), int(wanted[-1]) + 1)
