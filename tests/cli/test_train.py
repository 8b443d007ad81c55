"""`graftmt train`: from a YAML file and overrides to a base, with errors that name the key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from graftmt.base import Base


@pytest.fixture
def config(tmp_path: Path, toy_settings: Callable[..., dict[str, Any]]) -> str:
    """A configuration of two steps."""
    path = tmp_path / "config.yaml"
    mapping = toy_settings(tmp_path / "run", "stages.0.steps=2", "validation.every=2")
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return str(path)


def test_it_prints_the_folder_of_the_base_and_nothing_else(graftmt, config: str, tmp_path: Path) -> None:
    result = graftmt("train", config, "seed=5")
    assert (result.code, result.stdout) == (0, f"{tmp_path / 'run' / 'base'}\n")
    assert "validation at step 2" in result.stderr
    assert Base.load(tmp_path / "run" / "base").card["seed"] == 5
    again = graftmt("train", config, "seed=5", "--json", "--quiet")
    assert (json.loads(again.stdout), again.stderr) == ({"base": str(tmp_path / "run" / "base")}, "")


@pytest.mark.parametrize(
    ("merges", "said"), [("32000", "the default of 32,000 merges is more than"), ("5000", "merges only, 5,000 were asked for")]
)
def test_a_text_too_small_for_the_merges_is_said_as_all_else_is(graftmt, config: str, merges: str, said: str) -> None:
    result = graftmt("train", config, f"subwords.merges={merges}")
    assert result.code == 0 and said in result.stderr
    assert "UserWarning" not in result.stderr and ".py:" not in result.stderr


def test_another_seed_in_the_same_folder_needs_fresh(graftmt, config: str, tmp_path: Path) -> None:
    graftmt("train", config)
    refused = graftmt("train", config, "seed=5")
    assert refused.code == 1
    assert "seed: 1 then, 5 now" in refused.stderr
    assert Base.load(tmp_path / "run" / "base").card["seed"] == 1
    assert graftmt("train", config, "seed=5", "--fresh").code == 0
    assert Base.load(tmp_path / "run" / "base").card["seed"] == 5
    assert Base.load(tmp_path / "run.old-1" / "base").card["seed"] == 1


def test_a_dry_run_prints_the_whole_configuration_and_leaves_no_trace(graftmt, config: str, tmp_path: Path) -> None:
    result = graftmt("train", config, "stages.0.learning_rate=5e-4", "--dry-run")
    printed = yaml.safe_load(result.stdout)
    assert printed["stages"][0]["learning_rate"] == 5e-4
    assert printed["stages"][0]["betas"] == [0.9, 0.98]  # a default that the file does not name
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["data.corpus=nowhere"], "there is no corpus folder nowhere"),
        (["data.languages=[en, qq]"], "has no train text for language 'qq'"),
        (["validation.split=dev"], "has no files of the split 'dev'"),
        (["validation.directions=[en-qq]"], "'qq' is not a language here"),
        (["stages.0.directions=[en-qq]"], "'qq' is not a language here"),
    ],
)
def test_a_dry_run_looks_whether_the_files_are_there(graftmt, config: str, arguments: list[str], words: str) -> None:
    result = graftmt("train", config, "--dry-run", *arguments)
    assert (result.code, result.stdout) == (1, "")
    assert words in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["stages.0.warmpu=3"], "unknown key 'stages.0.warmpu'; did you mean 'warmup'?"),
        (["stages.0.steps=many"], "stages.0.steps is 'many', a str; expected int"),
        (["seed"], "override 'seed': expected KEY=VALUE"),
        (["run=/dev/null/run"], "/dev/null/run"),
    ],
)
def test_what_cannot_be_meant_is_one_paragraph_and_exit_code_1(graftmt, config: str, arguments: list[str], words: str) -> None:
    result = graftmt("train", config, *arguments)
    assert (result.code, result.stdout) == (1, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("text", "words"), [(None, "there is no configuration file"), ("a: [", "not valid YAML")])
def test_a_file_that_is_no_configuration_is_named(graftmt, tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "broken.yaml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    result = graftmt("train", str(path))
    assert result.code == 1
    assert words in result.stderr
    assert "broken.yaml" in result.stderr


def test_text_without_validation_lines_is_refused_before_a_vocabulary_is_made(graftmt, config: str, tmp_path: Path) -> None:
    result = graftmt("train", config, "validation.split=dev")
    assert result.code == 1
    assert "'dev'" in result.stderr and "graftmt prepare split" in result.stderr
    assert "vocabulary" not in result.stderr
    assert not list((tmp_path / "run").glob("subwords*"))
