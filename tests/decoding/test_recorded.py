"""Steps in fixed memory find what the plain searches find. (Recording them needs a GPU: tests/gpu.)"""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from graftmt.decoding import Hypothesis, SearchOptions, beam_search, greedy_search, recorded, search
from graftmt.decoding.batches import search_all
from graftmt.decoding.recorded import FIRST_ROOM, next_room, recorded_search
from graftmt.decoding.weight_layout import PaddedProjection
from graftmt.model import Transformer, named_size

END, PADDING = 2, 1
FORBIDDEN = [0, 1, 3]


def arguments(sources: list[list[int]], prefix: list[int], options: SearchOptions) -> tuple[torch.Tensor, ...]:
    longest = max(map(len, sources))
    source = torch.tensor([[*line, *[PADDING] * (longest - len(line))] for line in sources])
    limits = torch.tensor([options.limit(len(line)) for line in sources])
    return source, torch.tensor([prefix] * len(sources)), limits


def assert_same(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert [(best.tokens, best.finished) for best in one] == [(best.tokens, best.finished) for best in other]
        assert [best.score for best in one] == pytest.approx([best.score for best in other], abs=1e-4)


@pytest.mark.parametrize("settings", [{}, {"n_best": 3, "length_penalty": 0.6}, {"max_length": 1}, {"max_length": 5}])
@pytest.mark.parametrize("prefix", [[END], [END, 7, 8]])
@pytest.mark.parametrize("beam", [1, 2, 5])
def test_it_finds_what_the_plain_search_finds(
    model: Transformer, sources: list[list[int]], beam: int, prefix: list[int], settings: dict[str, Any]
) -> None:
    options = SearchOptions(beam=beam, **{**settings, "n_best": min(beam, settings.get("n_best", 1))})
    source, prefixes, limits = arguments(sources[:60], prefix, options)
    plain = greedy_search if beam == 1 else beam_search
    expected = plain(model, source, prefixes, options, limits=limits, end=END, forbidden=FORBIDDEN)
    found = recorded_search(model, source, prefixes, options, limits=limits, end=END, forbidden=FORBIDDEN)
    assert_same(found, expected)


@pytest.mark.parametrize("changes", [{"positions": "sinusoidal-even"}, {"positions": "learned", "embedding_norms": True}])
def test_other_positions_are_found_at_each_step(changes: dict[str, Any]) -> None:
    """Also up to the last position that there is."""
    torch.manual_seed(2)
    limited = {"most_positions": 12} if changes["positions"] == "learned" else {}
    model = Transformer.build(named_size("tiny", decoder_heads=2, **changes, **limited), 40).eval()
    lines = [[7, 9, 11, END], [8, END], [5, 5, 6, 21, END]]
    options = SearchOptions(beam=3, max_length=30)
    source, prefixes, _ = arguments(lines, [END, 7], options)
    limits = torch.tensor([11, 11, 11])
    expected = beam_search(model, source, prefixes, options, limits=limits, end=END)
    assert_same(recorded_search(model, source, prefixes, options, limits=limits, end=END), expected)
    assert search_all(model, lines, [[END, 7]] * 3, options, end=END)[0][0].tokens[:3] == expected[0][0].tokens[:3]


@pytest.mark.parametrize("beam", [1, 4])
def test_long_outputs_and_many_sentences_change_the_shapes(
    model: Transformer, sources: list[list[int]], beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a model that ends late or never, with sentences leaving as soon as half of them are done."""
    options = SearchOptions(beam=beam, max_length=70, length_ratio=100)
    monkeypatch.setattr(recorded, "MANY_ROWS", 8)
    moves: list[tuple[int, int]] = []
    move = recorded._Board.move

    def counted(board: Any, kept: torch.Tensor) -> None:
        before = len(board.done)
        move(board, kept)
        moves.append((before - len(board.done), board._slots.room))

    monkeypatch.setattr(recorded._Board, "move", counted)
    source, prefixes, limits = arguments(sources, [END], options)
    limits[::3] = 4
    plain = greedy_search if beam == 1 else beam_search
    expected = plain(model, source, prefixes, options, limits=limits, end=END)
    assert_same(recorded_search(model, source, prefixes, options, limits=limits, end=END), expected)
    assert any(left for left, _ in moves)
    assert moves[-1][1] > FIRST_ROOM


def test_rooms_grow_by_halves_and_thirds() -> None:
    assert sorted({next_room(tokens) for tokens in range(1, 200)}) == [16, 24, 32, 48, 64, 96, 128, 192, 256]


@pytest.mark.parametrize(("rows", "beam"), [(12, 8), (20, 10)])
def test_rows_that_only_fill_up_are_never_read(rows: int, beam: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer tokens allowed than a beam looks at, as on a GPU."""
    torch.manual_seed(1)
    model = Transformer.build(named_size("tiny"), rows).eval()
    padded = copy.copy(model)
    padded._modules = {**model._modules, "projection": PaddedProjection(model.projection)}

    def maxima(scores: torch.Tensor, allowed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return scores.masked_fill(~allowed, -torch.inf).view(len(scores), -1, 64).amax(2), scores.logsumexp(1)

    source, prefix, limits = torch.randint(4, rows, (3, 8)), torch.full((3, 1), END), torch.tensor([20, 30, 40])
    options = SearchOptions(beam=beam)
    expected = beam_search(model, source, prefix, options, limits=limits, end=END, forbidden=FORBIDDEN)
    monkeypatch.setattr(search, "can_take_maxima", lambda scores: True)
    monkeypatch.setattr(search, "group_maxima", maxima)
    assert_same(recorded_search(padded, source, prefix, options, limits=limits, end=END, forbidden=FORBIDDEN), expected)


def test_a_model_without_numbers_still_gives_a_hypothesis() -> None:
    model = Transformer.build(named_size("tiny"), 100).eval()
    with torch.no_grad():
        model.projection.weight[50] = torch.inf
    source, prefix = torch.randint(4, 40, (2, 5)), torch.full((2, 1), END)
    found = recorded_search(model, source, prefix, SearchOptions(beam=1), limits=torch.tensor([5, 6]), end=END)
    assert [len(one) for one in found] == [1, 1]


def test_threads_search_at_the_same_time(model: Transformer, sources: list[list[int]]) -> None:
    options = SearchOptions(beam=3, max_length=40, length_ratio=50)
    parts = [arguments(sources[start : start + 20], [END], options) for start in range(0, 120, 20)]

    def found(part: tuple[torch.Tensor, ...]) -> list[list[Hypothesis]]:
        source, prefixes, limits = part
        return recorded_search(model, source, prefixes, options, limits=limits, end=END)

    expected = [found(part) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(pool.map(found, parts), expected, strict=True):
            assert_same(one, other)
