"""A fused decoder finds what the plain one finds. (Its kernel and its use need a GPU: tests/gpu.)"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from graftmt.decoding import Hypothesis, SearchOptions, beam_search, greedy_search
from graftmt.decoding.full_sums import with_full_sums
from graftmt.decoding.fused import FusedDecoder, can_be_fused, is_plain
from graftmt.decoding.recorded import recorded_search
from graftmt.model import DecoderState, ModelConfig, Transformer

END, PADDING, VOCABULARY = 2, 1, 40


def make_model(**changes: Any) -> Transformer:
    """Random everywhere: fresh biases are 0 and norms 1, which would hide a swapped one."""
    torch.manual_seed(1)
    shape = {"model_dim": 32, "ffn_dim": 48, "heads": 4, "encoder_layers": 1, "decoder_layers": 3, "norm": "pre"}
    model = Transformer.build(ModelConfig(**{**shape, **changes}), VOCABULARY)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(std=0.3)
            if "norm.weight" in name:
                parameter.add_(1)
    return model.eval().requires_grad_(False)


def fused(model: Transformer) -> Transformer:
    result = copy.copy(model)
    result._modules = {**model._modules, "decoder": FusedDecoder(model.decoder)}
    return result


def sources(count: int) -> torch.Tensor:
    result = torch.randint(4, VOCABULARY, (count, 9), generator=torch.Generator().manual_seed(2))
    for row in range(count):
        result[row, 3 + row % 7 :] = PADDING
    return result


@pytest.mark.parametrize("search", [beam_search, greedy_search, recorded_search])
@pytest.mark.parametrize("prefix", [[END], [END, 7, 8]])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_same_hypotheses(search: Callable[..., list[list[Hypothesis]]], prefix: list[int], activation: str) -> None:
    model = make_model(activation=activation)
    options = SearchOptions(beam=1 if search is greedy_search else 4, n_best=1 if search is greedy_search else 2)
    source, prefixes = sources(20), torch.tensor([prefix] * 20)
    limits = torch.arange(20) % 13 + 12  # past the first room of the recorded search
    expected, found = (
        search(each, source, prefixes, options, limits=limits, end=END, forbidden=[0, 1]) for each in (model, fused(model))
    )
    for one, other in zip(found, expected, strict=True):
        assert [best.tokens for best in one] == [best.tokens for best in other]
        assert [best.score for best in one] == pytest.approx([best.score for best in other], abs=1e-4)
    assert len({tuple(one[0].tokens) for one in found}) > 10


def steps(model: Transformer, source: torch.Tensor, beam: int) -> list[torch.Tensor]:
    """Scores of a prefix of three tokens at once, of one more after a reordering, and of another after a sentence left."""
    rows = len(source) * beam
    tokens = torch.randint(4, VOCABULARY, (rows, 5), generator=torch.Generator().manual_seed(3))
    state: DecoderState = model.start(*model.encode(source), beam=beam, capacity=5)
    scores = [model.step(tokens[:, :3], state)]
    state.reorder(torch.arange(rows).flip(0))
    scores.append(model.step(tokens[:, 3:4], state))
    state.keep_sentences(torch.arange(1, len(source)))
    state.reorder(torch.arange(beam, rows))
    scores.append(model.step(tokens[beam:, 4:], state))
    assert state.position == 5
    return scores


@pytest.mark.parametrize("beam", [1, 3])
@torch.inference_mode()
def test_numbers_in_half_precision_are_those_of_full_sums(beam: int) -> None:
    half = make_model().to(torch.bfloat16)
    plain = with_full_sums(half)
    both = with_full_sums(half, FusedDecoder(half.decoder))
    for found, expected in zip(steps(both, sources(6), beam), steps(plain, sources(6), beam), strict=True):
        assert found.dtype == expected.dtype
        assert (found - expected).float().norm() < 0.01 * expected.float().norm()


@torch.inference_mode()
def test_the_given_model_stays_as_it_is_and_shares_its_weights() -> None:
    model = make_model()
    before = copy.deepcopy(model.state_dict())
    shared = fused(model)
    steps(shared, sources(3), 2)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    layer, own = shared.decoder.layers[0], model.decoder.layers[0]
    assert layer.ffn is own.ffn and layer.cross_attention is own.cross_attention
    assert layer.self_output.weight.data_ptr() == own.self_attention.output.weight.data_ptr()


class Linear(nn.Linear):
    """With something of its own."""


def test_only_what_is_plain_is_fused(caplog: pytest.LogCaptureFixture) -> None:
    half = make_model().to(torch.bfloat16)
    assert is_plain(half.decoder)
    assert is_plain(half.to(torch.float16).decoder)
    assert not can_be_fused(half.decoder)  # not on a GPU
    assert not is_plain(make_model().decoder)
    assert not is_plain(make_model(norm="post").to(torch.bfloat16).decoder)
    mixed = copy.deepcopy(half)
    mixed.decoder.layers[1].ffn_norm.float()
    assert not is_plain(mixed.decoder)
    other = copy.deepcopy(half)
    other.decoder.layers[2].ffn.up = Linear(32, 48, dtype=torch.float16)
    assert not is_plain(other.decoder)
    assert [record for record in caplog.records if "fused steps" in record.getMessage() and "Linear" in record.getMessage()]
    assert not is_plain(FusedDecoder(half.decoder))
    half.train().set_dropout(0.1)
    assert not is_plain(half.decoder)
