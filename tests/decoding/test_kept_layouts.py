"""A model that stays is packed once, compositions share what they have in common, and nothing is kept longer than they are."""

from __future__ import annotations

import copy
import gc
import threading

import pytest
import torch

from graftmt.decoding import SearchOptions, search_all
from graftmt.decoding.kept_layouts import _MODELS, _WEIGHTS, kept_layout
from graftmt.decoding.weight_layout import PackedLinear
from graftmt.model import Transformer

END = 2
OPTIONS = SearchOptions(beam=2, max_length=5)


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
