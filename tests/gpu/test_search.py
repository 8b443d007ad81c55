"""Search on CUDA: its kernels and its recorded steps give what torch's own kernels and plain steps give."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from graftmt.decoding import SearchOptions, search_all
from graftmt.decoding.kernels import group_maxima
from graftmt.decoding.search import Forbidden
from graftmt.model import Transformer, named_size
from graftmt.model.kernels import can_mix_few, mix_few

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 5e-3)])
@pytest.mark.parametrize(("queries", "keys", "dim"), [(5, 80, 64), (1, 7, 32), (16, 300, 128), (2, 64, 16)])
@torch.no_grad()
def test_attention_of_few_queries(dtype: torch.dtype, tolerance: float, queries: int, keys: int, dim: int) -> None:
    torch.manual_seed(1)
    x = torch.randn(30, queries, 4 * dim, device="cuda", dtype=dtype).view(30, queries, 4, dim).transpose(1, 2)
    k, v = (torch.randn(30, 4, keys, dim, device="cuda", dtype=dtype) for _ in range(2))
    for mask in (torch.rand(30, 1, queries, keys, device="cuda") < 0.3, torch.rand(30, 1, 1, keys, device="cuda") < 0.3, None):
        if mask is not None:
            mask[..., 0] = True
            mask[..., keys // 2 :] = False
        assert can_mix_few(x, mask)
        expected = F.scaled_dot_product_attention(x.double(), k.double(), v.double(), attn_mask=mask)
        found = mix_few(x, k, v, mask)
        assert (found.double() - expected).norm() < tolerance * expected.norm()


def test_maxima_of_groups_and_their_total() -> None:
    scores = torch.randn(50, 36_416, device="cuda") * 3
    scores[:, -16:] = -torch.inf
    allowed = torch.ones(36_416, dtype=torch.bool, device="cuda")
    allowed[[0, 1, 3, 700]] = False
    maxima, totals = group_maxima(scores, allowed)
    expected = scores.masked_fill(~allowed, -torch.inf).view(50, -1, 64).amax(dim=2)
    assert torch.equal(maxima, expected)
    torch.testing.assert_close(totals, scores.logsumexp(dim=1), atol=1e-5, rtol=1e-5)


def test_the_best_tokens_are_those_of_a_plain_search() -> None:
    torch.manual_seed(1)
    scores = torch.randn(50, 36_416, device="cuda") * 3
    rule = Forbidden([0, 1, 3, 700], scores.device)
    best, tokens = rule.best(scores, 10)
    expected = rule.log_probabilities(scores).topk(10, dim=1)
    torch.testing.assert_close(best, expected.values, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(rule.log_probabilities(scores).gather(1, tokens), expected.values, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("prefix", [[9], [9, 7]])
@pytest.mark.parametrize(("dtype", "share"), [(torch.float32, 0.995), (torch.bfloat16, 0.95)])
def test_recorded_steps_find_what_plain_ones_find(beam: int, prefix: list[int], dtype: torch.dtype, share: float) -> None:
    torch.manual_seed(0)
    model = Transformer.build(named_size("tiny", norm="pre"), 997).cuda().eval()
    with torch.no_grad():
        model.projection.weight.mul_(3)
    model.to(dtype)
    sources = [[*torch.randint(4, 997, (length % 40 + 2,)).tolist(), 2] for length in range(700)]
    options = SearchOptions(beam=beam, max_length=70, length_ratio=2, batch_tokens=100_000)
    prefixes = [prefix] * len(sources)
    recorded, plain = (
        search_all(model, sources, prefixes, options, end=2, forbidden=[0, 1, 3], record=record) for record in (True, False)
    )
    same = sum(one[0].tokens == other[0].tokens for one, other in zip(recorded, plain, strict=True))
    assert same >= share * len(sources)  # ties that rounding decides
    assert max(len(one[0].tokens) for one in recorded) > 24  # room grew
