"""Packed weights change nothing that is found; a model that stays is packed once, and nothing is kept longer than it is."""

from __future__ import annotations

import copy
import gc
import threading

import pytest
import torch

from graftmt.decoding import SearchOptions, search_all
from graftmt.decoding.full_sums import with_full_sums
from graftmt.decoding.weight_layout import _MODELS, _WEIGHTS, PackedLinear, kept_layout, packed
from graftmt.model import Transformer

END = 2
OPTIONS = SearchOptions(beam=2, max_length=5)


class Doubled(torch.nn.Linear):
    """A linear map with something of its own: its weight alone does not say what it computes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


class Norm(torch.nn.LayerNorm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + 1


class Outer(torch.nn.Module):
    """Around an FFN, whose weights it also looks at."""

    def __init__(self, ffn: torch.nn.Module) -> None:
        super().__init__()
        self.ffn = ffn

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.ffn(x) + x @ self.ffn.up.weight[: x.shape[-1]]


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


def like(linear: torch.nn.Linear) -> Doubled:
    result = Doubled(linear.in_features, linear.out_features)
    result.load_state_dict(linear.state_dict())
    return result


def with_parts_of_its_own(model: Transformer) -> Transformer:
    own = copy.deepcopy(model)
    layers = own.decoder.layers
    layers[0].ffn.down = like(layers[0].ffn.down)
    layers[0].self_attention.output = like(layers[0].self_attention.output)
    layers[-1].ffn = Outer(layers[-1].ffn)
    return own.eval().requires_grad_(False)


def test_parts_of_other_classes_are_not_taken_apart(
    model: Transformer, sources: list[list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    own = with_parts_of_its_own(model)
    fast = packed(own)
    left = [module for module in fast.decoder.modules() if isinstance(module, Doubled | Outer)]
    assert left == [module for module in own.decoder.modules() if isinstance(module, Doubled | Outer)]
    assert any(isinstance(module, PackedLinear) for module in fast.decoder.modules())
    assert sum("Outer" in record.getMessage() for record in caplog.records) == 1
    options = SearchOptions(beam=2, max_length=5)
    found = search_all(own, sources[:9], [[END]] * 9, options, end=END)
    alone = [search_all(own, [source], [[END]], options, end=END)[0] for source in sources[:9]]  # too few to pack
    for one, other in zip(found, alone, strict=True):
        assert one[0].tokens == other[0].tokens
        assert one[0].score == pytest.approx(other[0].score, abs=1e-4)


def test_sums_in_full_precision_leave_other_linear_maps_alone(model: Transformer) -> None:
    own = copy.deepcopy(model).bfloat16()
    own.decoder.layers[0].ffn.down = like(own.decoder.layers[0].ffn.down).bfloat16()
    own.decoder.layers[0].ffn_norm = Norm(own.decoder.layers[0].ffn_norm.normalized_shape).bfloat16()
    result = with_full_sums(own)
    assert type(result.decoder.layers[0].ffn.down) is Doubled
    assert type(result.decoder.layers[0].ffn_norm) is Norm


@pytest.fixture
def own(model: Transformer) -> Transformer:
    return copy.deepcopy(model).eval()


def packed_weights(model: Transformer) -> list[torch.Tensor]:
    return [module.weight for module in kept_layout(model).modules() if isinstance(module, PackedLinear)]


def twin_of(model: Transformer) -> Transformer:
    """As a composition is: modules of its own around the same weights."""
    from graftmt.packs.composition import twin

    return twin(model)


def test_it_is_made_once(own: Transformer) -> None:
    assert kept_layout(own) is kept_layout(own)
    assert kept_layout(kept_layout(own)) is kept_layout(own)


def test_a_search_finds_the_same_whether_it_is_kept_or_not(own: Transformer, sources: list[list[int]]) -> None:
    lines = sources[:9]
    for _ in range(2):
        kept, plain = (search_all(own, lines, [[END]] * 9, OPTIONS, end=END, keep=keep) for keep in (True, False))
        assert kept == plain


def test_models_share_what_is_packed_of_the_same_weights(own: Transformer) -> None:
    other = twin_of(own)
    other.decoder.layers[0].ffn.up.weight = torch.nn.Parameter(own.decoder.layers[0].ffn.up.weight * 2)
    first, second = packed_weights(own), packed_weights(other)
    assert len(first) == len(second)
    assert sum(one is not another for one, another in zip(first, second, strict=True)) == 1


def test_a_weight_that_changed_in_place_is_packed_again(own: Transformer, sources: list[list[int]]) -> None:
    before = search_all(own, sources[:9], [[END]] * 9, OPTIONS, end=END, keep=True)
    with torch.no_grad():
        own.projection.weight[7] *= 4
        own.decoder.layers[0].ffn.down.bias[::2] += 3
    after = search_all(own, sources[:9], [[END]] * 9, OPTIONS, end=END, keep=True)
    assert after == search_all(own, sources[:9], [[END]] * 9, OPTIONS, end=END) != before


@pytest.mark.slow
def test_nothing_is_kept_longer_than_the_models(own: Transformer) -> None:
    gc.collect()
    models, weights = len(_MODELS), len(_WEIGHTS)
    other = twin_of(own)
    kept_layout(own)
    kept_layout(other)
    assert len(_MODELS) == models + 2 and len(_WEIGHTS) > weights
    between = len(_WEIGHTS)
    del other
    gc.collect()
    assert len(_MODELS) == models + 1 and len(_WEIGHTS) == between
    del own
    gc.collect()
    assert len(_MODELS) <= models + 1  # the fixture still has it


def test_threads_that_begin_together_get_one(own: Transformer) -> None:
    found: list[Transformer] = []
    start = threading.Barrier(4)

    def take() -> None:
        start.wait()
        found.append(kept_layout(own))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len({id(one) for one in found}) == 1


def test_what_cannot_be_packed_is_handed_back(own: Transformer) -> None:
    lower = own.bfloat16()
    assert kept_layout(lower) is lower
