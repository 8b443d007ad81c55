from __future__ import annotations

import math
from typing import Any

import pytest

from graftmt.decoding import SearchOptions
from graftmt.errors import ConfigError


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
