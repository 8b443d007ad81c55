"""Search on CUDA: its kernels and its recorded steps give what torch's own kernels and plain steps give."""

from __future__ import annotations

import pytest
import torch

from graftmt.decoding import SearchOptions, search_all
from graftmt.decoding.full_sums import with_full_sums
from graftmt.decoding.fused import FusedDecoder
from graftmt.decoding.search import Forbidden
from graftmt.decoding.weight_layout import packed
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


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_fused_decoder_gives_the_numbers_of_a_plain_one(activation: str) -> None:
    torch.manual_seed(0)
    model = Transformer.build(named_size("tiny", norm="pre", activation=activation), 997).cuda().eval()
    with torch.no_grad():  # fresh biases are 0 and norms 1, which would hide a swapped one
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    model.to(torch.bfloat16)
    fast, plain = packed(model), with_full_sums(model)
    assert isinstance(fast.decoder, FusedDecoder)
    source, tokens = torch.randint(4, 997, (30, 12), device="cuda"), torch.randint(4, 997, (150, 7), device="cuda")
    with torch.inference_mode():
        states = [each.start(*each.encode(source), beam=5, capacity=7) for each in (fast, plain)]
        for now in (slice(0, 2), *(slice(place, place + 1) for place in range(2, 7))):
            found, expected = (each.step(tokens[:, now], state) for each, state in zip((fast, plain), states, strict=True))
            assert (found[:, :997] - expected).norm() < 0.01 * expected.norm()


def test_a_decoder_is_fused_only_where_all_of_it_is_plain_and_in_half_precision() -> None:
    model = Transformer.build(named_size("tiny", norm="pre"), 997).cuda().eval()
    assert not isinstance(packed(model).decoder, FusedDecoder)
    model.to(torch.bfloat16)
    assert isinstance(packed(model).decoder, FusedDecoder)
    with torch.autocast("cuda", torch.bfloat16):
        assert not isinstance(packed(model).decoder, FusedDecoder)
    model.decoder.layers[0].float()
    assert not isinstance(packed(model).decoder, FusedDecoder)
