from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graftmt.decoding import SearchOptions, batches, length_batches, search_all
from graftmt.model import Transformer

END = 2
FORBIDDEN = [0, 1, 3]


@given(lengths=st.lists(st.integers(1, 40)), beam=st.integers(1, 6), batch_tokens=st.integers(1, 300))
def test_batches_hold_each_row_once_longest_first(lengths: list[int], beam: int, batch_tokens: int) -> None:
    batches = list(length_batches(lengths, SearchOptions(beam=beam, batch_tokens=batch_tokens)))
    rows = [row for batch in batches for row in batch]
    assert sorted(rows) == list(range(len(lengths)))
    assert [lengths[row] for row in rows] == sorted(lengths, reverse=True)
    for batch in batches:
        cost = max(lengths[row] for row in batch) * len(batch) * beam
        assert cost <= batch_tokens or len(batch) == 1


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 5])
def test_neighbours_and_order_do_not_change_a_result(model: Transformer, sources: list[list[int]], beam: int) -> None:
    lines = sources[:40]
    order = random.Random(1).sample(range(40), 40)
    together, shuffled, small, alone = (
        search_all(model, chosen, [[END]] * 40, SearchOptions(beam=beam, batch_tokens=tokens), end=END, forbidden=FORBIDDEN)
        for chosen, tokens in ((lines, 100_000), ([lines[row] for row in order], 100_000), (lines, 100), (lines, 1))
    )
    unshuffled = [shuffled[order.index(row)] for row in range(40)]
    for other in (unshuffled, small, alone):
        for left, right in zip(together, other, strict=True):
            assert (left[0].tokens, left[0].finished) == (right[0].tokens, right[0].finished)
            assert abs(left[0].score - right[0].score) < 1e-4


def test_nothing_gives_nothing(model: Transformer) -> None:
    assert search_all(model, [], [], SearchOptions(), end=END) == []


@pytest.mark.parametrize("beam", [1, 3])
def test_prefixes_mix_in_a_batch(model: Transformer, sources: list[list[int]], beam: int) -> None:
    """Each source is decoded from its own prefix."""
    options = SearchOptions(beam=beam)
    lines, prefixes = [sources[0]] * 3, [[END, 7], [END, 8], [END, 9]]
    together = search_all(model, lines, prefixes, options, end=END)
    alone = [search_all(model, lines[:1], [prefix], options, end=END)[0] for prefix in prefixes]
    assert [found[0].tokens for found in together] == [found[0].tokens for found in alone]
    assert len({tuple(found[0].tokens) for found in together}) > 1


def test_progress_is_told_after_each_batch(model: Transformer, sources: list[list[int]]) -> None:
    told: list[int] = []
    options = SearchOptions(beam=2, batch_tokens=100)
    search_all(model, sources[:30], [[END]] * 30, options, end=END, on_batch=told.append)
    assert told == sorted(set(told))
    assert len(told) == len(list(length_batches([len(source) for source in sources[:30]], options)))
    assert told[-1] == 30


def test_a_search_leaves_the_model_as_it_was(model: Transformer, sources: list[list[int]]) -> None:
    before = {name: (id(parameter), parameter.clone()) for name, parameter in model.named_parameters()}
    modules = [id(module) for module in model.modules()]
    search_all(model, sources[:9], [[END]] * 9, SearchOptions(), end=END)
    assert [id(module) for module in model.modules()] == modules
    for name, parameter in model.named_parameters():
        assert id(parameter) == before[name][0]
        assert torch.equal(parameter, before[name][1])


@pytest.mark.parametrize("beam", [1, 3])
def test_what_does_not_fit_in_memory_is_done_in_halves(
    model: Transformer, sources: list[list[int]], beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = SearchOptions(beam=beam, batch_tokens=100_000)
    expected = search_all(model, sources[:50], [[END]] * 50, options, end=END)
    sizes: list[int] = []
    tokens: list[int] = []
    name = "greedy_search" if beam == 1 else "beam_search"
    plain = getattr(batches, name)

    def search(model: Transformer, source: torch.Tensor, *rest: Any, **options: Any) -> Any:
        sizes.append(len(source))
        if source.numel() > 100:
            raise torch.OutOfMemoryError
        tokens.append(source.numel())
        return plain(model, source, *rest, **options)

    monkeypatch.setattr(batches, name, search)
    told: list[int] = []
    found = search_all(model, sources[:50], [[END]] * 50, options, end=END, on_batch=told.append)
    assert [one[0].tokens for one in found] == [one[0].tokens for one in expected]
    assert len(sizes) - len(tokens) <= 4  # what did not fit once is not tried again
    assert max(tokens) > 50  # and no more is cut than that: later batches have shorter lines, and more of them
    assert told[-1] == 50
    monkeypatch.setattr(batches, name, lambda *all, **options: (_ for _ in ()).throw(torch.OutOfMemoryError()))
    with pytest.raises(torch.OutOfMemoryError):
        search_all(model, sources[:2], [[END]] * 2, options, end=END)
