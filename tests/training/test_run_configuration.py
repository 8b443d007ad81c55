"""Every number of a training configuration has a range, and what lies outside it is an error that names the key."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_type_hints

import pytest

from graftmt.configuration import apply_overrides, from_mapping
from graftmt.errors import ConfigError
from graftmt.training import PackConfig, TrainConfig
from graftmt.training.optimization import StageConfig
from graftmt.training.run_configuration import (
    DataConfig,
    ModelSection,
    NewDirectionsConfig,
    PackDataConfig,
    RetrainConfig,
    RetrainDataConfig,
    RunConfig,
    SubwordConfig,
)
from graftmt.training.validation import ValidationConfig

NUMBERS = (int, float, int | None, float | None, tuple[float, ...])
SECTIONS = (
    DataConfig,
    PackDataConfig,
    RetrainDataConfig,
    SubwordConfig,
    ModelSection,
    StageConfig,
    ValidationConfig,
    NewDirectionsConfig,
    RunConfig,
    TrainConfig,
    PackConfig,
    RetrainConfig,
)
REQUIRED: dict[type, dict[str, Any]] = {
    DataConfig: {"corpus": "text"},
    RetrainDataConfig: {"corpus": "text"},
    RunConfig: {"run": "run"},
    TrainConfig: {"run": "run", "data": {"corpus": "text"}},
    PackConfig: {"run": "run", "languages": ["el"], "side": "source"},
    RetrainConfig: {"run": "run", "base": "base", "new": ["el"], "data": {"corpus": "text"}},
}


def numeric_fields() -> list[tuple[type, str, Any]]:
    hints = [(section, field.name, get_type_hints(section)[field.name]) for section in SECTIONS for field in fields(section)]
    return [(section, name, hint) for section, name, hint in hints if hint in NUMBERS]


@pytest.mark.parametrize(("section", "name", "hint"), numeric_fields(), ids=lambda one: getattr(one, "__name__", str(one)))
def test_no_number_may_be_negative_endless_or_none(section: type, name: str, hint: Any) -> None:
    wrong: list[Any] = [-1] if hint in (int, int | None) else [-1.0, float("nan"), float("inf")]
    for value in wrong:
        given = [0.9, value] if hint == tuple[float, ...] else value
        with pytest.raises(ConfigError, match=rf"\b{name} is .*; expected"):
            from_mapping(section, {**REQUIRED.get(section, {}), name: given})


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("seed=-1", "seed is -1; expected a number from 0 to"),
        ("seed=9223372036854775808", "seed is 9223372036854775808; expected"),
        ("threads=-1", "threads is -1; expected 0 to 4096"),
        ("threads=100000", "threads is 100000"),
        ("checkpoint_every=0", "checkpoint_every is 0; expected at least 1"),
        ("validation.lines=-3", "validation: lines is -3; expected at least 1, or 0 for no validation"),
        ("validation.every=0", "validation: every is 0; expected at least 1"),
        ("data.max_length=0", "data: max_length is 0; expected at least 1"),
        ("subwords.pieces=0", "subwords: pieces is 0; expected 1 to"),
        ("stages=[{warmup: -5}]", "warmup is -5; expected a number that is not negative"),
        ("stages=[{clip_norm: -1}]", "clip_norm is -1.0; expected a number that is not negative"),
        ("stages=[{dropout: 1}]", "dropout is 1.0; expected a number from 0 to below 1"),
        ("stages=[{betas: [0.9, 2.0]}]", "betas is [0.9, 2.0]; expected two numbers from 0 to below 1"),
        ("stages=[{betas: [0.9]}]", "betas is [0.9]; expected two numbers"),
        ("stages=[{patience: 1}, {patience: 0}]; validation.lines=0", "there are none with validation.lines=0"),
    ],
)
def test_the_error_says_what_was_expected(override: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_mapping(TrainConfig, apply_overrides(REQUIRED[TrainConfig], override.split("; ")))
    assert words in str(caught.value)


def test_the_ends_of_the_ranges_are_allowed() -> None:
    zeros = dict.fromkeys(("warmup", "warmup_from", "clip_norm", "dropout", "label_smoothing", "learning_rate", "patience"), 0)
    stage = {**zeros, "betas": [0, 0], "cooldown": 1, "steps": 1}
    made = from_mapping(TrainConfig, {**REQUIRED[TrainConfig], "seed": 0, "threads": 0, "stages": [stage]})
    assert made.stages[0].cooldown == 1
    assert from_mapping(TrainConfig, {**REQUIRED[TrainConfig], "seed": 2**63 - 1, "validation": {"lines": 0}})
