from __future__ import annotations

import copy

import pytest
import torch

from graftmt.decoding import SearchOptions, search_all
from graftmt.decoding.packing import PackedLinear, packed
from graftmt.model import Transformer

END = 2

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")


@pytest.mark.parametrize("rows", [1, 3, 40])
@torch.inference_mode()
def test_packed_weights_give_the_same_scores(model: Transformer, sources: list[list[int]], rows: int) -> None:
    source = torch.tensor([line for line in sources if len(line) == 6][:1]).expand(rows, -1)
    tokens = torch.randint(4, 24, (rows, 5))
    states = [each.start(*each.encode(source), beam=1, capacity=6) for each in (model, packed(model))]
    prefix = torch.full((rows, 1), END)
    for step in range(6):
        plain, fast = (each.step(prefix, state) for each, state in zip((model, packed(model)), states, strict=True))
        torch.testing.assert_close(fast, plain, atol=1e-4, rtol=1e-4)
        prefix = tokens[:, step : step + 1]


def test_only_the_decoder_is_packed_and_all_else_shared(model: Transformer) -> None:
    fast = packed(model)
    assert fast.encoder is model.encoder
    assert fast.source_embedding is model.source_embedding
    assert fast.config is model.config
    assert isinstance(fast.projection, PackedLinear)
    linear = sum(isinstance(module, torch.nn.Linear) for module in model.decoder.modules())
    assert sum(isinstance(module, PackedLinear) for module in fast.decoder.modules()) == linear > 0
    assert not any(isinstance(module, PackedLinear) for module in model.modules())


def test_a_search_sees_the_weights_of_the_moment(model: Transformer, sources: list[list[int]]) -> None:
    """Packed weights are copies: a search between two training steps must not use older ones."""
    own = copy.deepcopy(model)
    options = SearchOptions(beam=2, max_length=5)
    before = search_all(own, sources[:9], [[END]] * 9, options, end=END)
    with torch.no_grad():
        own.decoder.layers[0].ffn.down.bias[::2] += 3
        own.projection.weight[7] *= 4
    after = search_all(own, sources[:9], [[END]] * 9, options, end=END)
    alone = [search_all(own, [source], [[END]], options, end=END)[0] for source in sources[:9]]
    assert [found[0].tokens for found in after] == [found[0].tokens for found in alone]
    assert [found[0].tokens for found in after] != [found[0].tokens for found in before]


def test_what_cannot_be_packed_stays_as_it_is(model: Transformer) -> None:
    lower = copy.deepcopy(model).bfloat16()
    assert packed(lower) is lower
    with torch.autocast("cpu", torch.bfloat16):
        assert packed(model) is model


def test_packing_twice_is_packing_once(model: Transformer) -> None:
    fast = packed(model)
    assert packed(fast) is fast
