"""Search on CUDA: its kernels and its recorded steps give what torch's own kernels and plain steps give."""

from __future__ import annotations

import pytest
import torch

from graftmt.decoding import SearchOptions, search_all
from graftmt.decoding.search import Forbidden
from graftmt.model import Transformer, named_size

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")]


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
