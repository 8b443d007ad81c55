"""Options are checked, and searches find what they should."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch

from graftmt.decoding import Hypothesis, SearchOptions, beam_search, greedy_search, search_all
from graftmt.errors import ConfigError
from graftmt.model import ModelConfig, Transformer


def test_the_defaults_are_the_papers() -> None:
    options = SearchOptions()
    assert (options.beam, options.n_best, options.length_penalty) == (5, 1, 1.0)


@pytest.mark.parametrize(
    "wrong", [{"beam": 0}, {"max_length": 0}, {"batch_tokens": 0}, {"length_ratio": -1.0}, {"n_best": 0}, {"n_best": 6}]
)
def test_impossible_options(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="must be"):
        SearchOptions(**wrong)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("length_penalty", math.nan),
        ("length_penalty", math.inf),
        ("length_penalty", -1e9),
        ("beam", 100_000),
        ("length_ratio", math.nan),
        ("length_ratio", math.inf),
    ],
)
def test_numbers_that_would_give_nonsense_or_take_all_memory(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        SearchOptions(**{name: value})


def test_limits_grow_with_the_source_up_to_the_maximum() -> None:
    options = SearchOptions(max_length=50, length_ratio=1.5)
    assert [options.limit(length) for length in (0, 1, 10, 20, 1000)] == [20, 21, 35, 50, 50]
    assert SearchOptions(max_length=1).limit(100) == 1


@pytest.mark.parametrize("name", ["beam", "n_best", "max_length", "batch_tokens", "length_penalty", "length_ratio"])
def test_what_is_no_number_is_named(name: str) -> None:
    for wrong in ("1", None, True):
        with pytest.raises(ConfigError, match=f"{name} is .*expected a"):
            SearchOptions(**{name: wrong})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="expected a whole number"):
        SearchOptions(beam=2.5)  # type: ignore[arg-type]
    assert SearchOptions(length_penalty=1).length_penalty == SearchOptions().length_penalty


PADDING, END = 1, 2
FORBIDDEN = [0, PADDING, 3]


def search(
    model: Transformer, sources: list[list[int]], prefix: tuple[int, ...] = (END,), **options: Any
) -> list[list[Hypothesis]]:
    settings = SearchOptions(**options)
    return search_all(model, sources, [prefix] * len(sources), settings, end=END, forbidden=FORBIDDEN)


def log_probability(model: Transformer, source: list[int], prefix: tuple[int, ...], output: list[int]) -> float:
    """Of the output after the prefix, from one full forward."""
    scores = model(torch.tensor([source]), torch.tensor([[*prefix, *output[:-1]]]))[0, len(prefix) - 1 :]
    chosen = torch.log_softmax(scores, dim=-1).gather(1, torch.tensor(output)[:, None])
    return chosen.sum().item()


def whole(hypothesis: Hypothesis) -> list[int]:
    return [*hypothesis.tokens, *([END] if hypothesis.finished else [])]


def close(left: float, right: float) -> bool:
    return abs(left - right) < 1e-4


@pytest.mark.parametrize("penalty", [1.0, 0.6])
def test_a_beam_of_one_is_greedy(model: Transformer, sources: list[list[int]], penalty: float) -> None:
    options = SearchOptions(beam=1, length_penalty=penalty)
    lines = [source for source in sources if len(source) == 6]
    arguments = (model, torch.tensor(lines), torch.full((len(lines), 1), END), options)
    limits = torch.tensor([4, 30] * len(lines))[: len(lines)]
    greedy = greedy_search(*arguments, limits=limits, end=END, forbidden=FORBIDDEN)
    beam = beam_search(*arguments, limits=limits, end=END, forbidden=FORBIDDEN)
    assert {hypotheses[0].finished for hypotheses in greedy} == {True, False}
    for [left], [right] in zip(greedy, beam, strict=True):
        assert (left.tokens, left.finished) == (right.tokens, right.finished)
        assert close(left.score, right.score)


def test_greedy_takes_the_best_token_each_time(model: Transformer, sources: list[list[int]]) -> None:
    for source, [found] in zip(sources[:20], search(model, sources[:20], beam=1, max_length=15), strict=True):
        output: list[int] = []
        while len(output) < 15 and END not in output:
            scores = model(torch.tensor([source]), torch.tensor([[END, *output]]))[0, -1]
            scores[FORBIDDEN] = -torch.inf
            output.append(int(scores.argmax()))
        assert whole(found) == output


def test_a_wider_beam_finds_better_outputs(model: Transformer, sources: list[list[int]]) -> None:
    """By total log-probability (penalty 0); not for every line, for the beam may lose the greedy path."""
    greedy = [found[0].score for found in search(model, sources, beam=1, length_penalty=0.0)]
    beam = [found[0].score for found in search(model, sources, beam=5, length_penalty=0.0)]
    assert sum(beam) > sum(greedy) + 1
    assert sum(wide >= narrow - 1e-4 for wide, narrow in zip(beam, greedy, strict=True)) > 0.95 * len(sources)


@pytest.mark.parametrize("prefix", [(END,), (END, 7)])
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 1.5])
@pytest.mark.parametrize("beam", [1, 4])
def test_scores_are_those_of_the_full_forward(
    model: Transformer, sources: list[list[int]], prefix: tuple[int, ...], penalty: float, beam: int
) -> None:
    found = search(model, sources[:12], prefix, beam=beam, n_best=beam, length_penalty=penalty, max_length=8)
    assert {hypothesis.finished for hypotheses in found for hypothesis in hypotheses} == {True, False}
    for source, hypotheses in zip(sources, found, strict=False):
        for hypothesis in hypotheses:
            output = whole(hypothesis)
            expected = log_probability(model, source, prefix, output) / len(output) ** penalty
            assert close(hypothesis.score, expected)


def test_the_n_best_are_sorted_and_distinct(model: Transformer, sources: list[list[int]]) -> None:
    every = search(model, sources[:60], beam=6, n_best=6)
    for hypotheses in every:
        assert len(hypotheses) == 6
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(hypothesis.tokens) for hypothesis in hypotheses}) == 6
    fewer = search(model, sources[:60], beam=6, n_best=2)
    assert fewer == [hypotheses[:2] for hypotheses in every]


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_limits_hold_with_the_end_counted(model: Transformer, sources: list[list[int]], beam: int, limit: int) -> None:
    cut = 0
    for hypotheses in search(model, sources[:40], beam=beam, n_best=beam, max_length=limit):
        for hypothesis in hypotheses:
            assert len(whole(hypothesis)) <= limit
            assert END not in hypothesis.tokens
            if not hypothesis.finished:
                cut += 1
                assert len(hypothesis.tokens) == limit
    assert cut


def test_each_sentence_has_its_own_limit(model: Transformer, sources: list[list[int]]) -> None:
    lines = torch.tensor([source for source in sources if len(source) == 8][:4])
    prefix, options = torch.full((4, 1), END), SearchOptions(beam=4)
    limits = torch.tensor([3, 1, 40, 5])
    together = beam_search(model, lines, prefix, options, limits=limits, end=END)
    for row in range(4):
        one = slice(row, row + 1)
        [alone] = beam_search(model, lines[one], prefix[one], options, limits=limits[one], end=END)
        assert together[row][0].tokens == alone[0].tokens
        assert len(whole(together[row][0])) <= limits[row]


@pytest.mark.parametrize("beam", [1, 5])
def test_forbidden_tokens_never_come_out(model: Transformer, sources: list[list[int]], beam: int) -> None:
    free = search(model, sources[:30], beam=beam, n_best=beam)
    usual = {token for hypotheses in free for hypothesis in hypotheses for token in hypothesis.tokens}
    forbidden = [*FORBIDDEN, *sorted(usual)[::2]]
    options = SearchOptions(beam=beam, n_best=beam, max_length=20)
    found = search_all(model, sources[:30], [[END]] * 30, options, end=END, forbidden=forbidden)
    outputs = [hypothesis.tokens for hypotheses in found for hypothesis in hypotheses]
    assert any(outputs)
    assert not {token for output in outputs for token in output} & set(forbidden)


@pytest.mark.parametrize("words", [0, 1, 3])
@pytest.mark.parametrize("limit", [1, 3, 4])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_beam_that_is_wide_enough_finds_everything(words: int, limit: int, penalty: float) -> None:
    """Every possible output with its score, best first, and nothing that is not possible."""
    torch.manual_seed(1)
    model = Transformer.build(ModelConfig(model_dim=8, ffn_dim=8, heads=2, encoder_layers=1, decoder_layers=1), 10).eval()
    with torch.no_grad():
        model.projection.weight.mul_(5)
    allowed, source = list(range(4, 4 + words)), [5, 4, END]
    ended = [[*start, END] for length in range(limit) for start in itertools.product(allowed, repeat=length)]
    possible = [*ended, *(list(cut) for cut in itertools.product(allowed, repeat=limit))]
    forbidden = [token for token in range(10) if token != END and token not in allowed]
    options = SearchOptions(beam=len(possible) + 3, n_best=len(possible) + 3, length_penalty=penalty, max_length=limit)
    [found] = search_all(model, [source], [[END]], options, end=END, forbidden=forbidden)
    scores = {tuple(output): log_probability(model, source, (END,), output) / len(output) ** penalty for output in possible}
    assert [tuple(whole(hypothesis)) for hypothesis in found] == sorted(scores, key=scores.__getitem__, reverse=True)
    assert all(close(hypothesis.score, scores[tuple(whole(hypothesis))]) for hypothesis in found)


def test_half_precision_searches_too(model: Transformer, sources: list[list[int]]) -> None:
    lower = Transformer.build(model.config, 24).eval()
    lower.load_state_dict(model.state_dict())
    exact, rounded = (search(each, sources[:40], beam=3) for each in (model, lower.bfloat16()))
    same = sum(left[0].tokens == right[0].tokens for left, right in zip(exact, rounded, strict=True))
    assert same > 20
