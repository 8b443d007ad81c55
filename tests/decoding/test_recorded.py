"""Steps in fixed memory find what the plain searches find. (Recording them needs a GPU: tests/gpu.)"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from graftmt.decoding import Hypothesis, SearchOptions, beam_search, greedy_search, recorded
from graftmt.decoding.recorded import FIRST_ROOM, next_room, recorded_search
from graftmt.model import Transformer

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
