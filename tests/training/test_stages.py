"""A run as a whole: its folder, its vocabulary, its configuration, starting over."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from safetensors.torch import load_file

from graftmt.base import Base
from graftmt.configuration import from_mapping, load_yaml
from graftmt.data import Corpus
from graftmt.data.cache import cache_key
from graftmt.errors import ConfigError, GraftError, LanguageError
from graftmt.files import open_regular
from graftmt.folders import exclusive
from graftmt.text import Subwords
from graftmt.training import TrainConfig
from graftmt.training.bases import prepare
from graftmt.training.journal import read_log
from graftmt.training.loop import Trainer
from graftmt.training.run_configuration import SubwordConfig
from graftmt.training.run_text import run_subwords

ROOT = Path(__file__).parents[2]
CONFIGURATIONS = sorted(
    path
    for path in [*(ROOT / "configs").glob("*.yaml"), *(ROOT / "src").rglob("*.yaml")]
    if "experiments" not in path.parts and not {"packs", "method"} & load_yaml(path).keys()  # those are of other commands
)


def test_the_saved_configuration_is_the_resolved_one(uninterrupted: Path, short_config) -> None:
    assert from_mapping(TrainConfig, load_yaml(uninterrupted / "config.yaml")) == short_config(uninterrupted)


def test_the_base_says_how_it_was_made(uninterrupted: Path, short_config) -> None:
    card = Base.load(uninterrupted / "base").card
    assert from_mapping(TrainConfig, card["config"]) == short_config(uninterrupted)
    assert card["validation"]["step"] == 40
    log = read_log(uninterrupted / "log.jsonl")
    assert card["target_tokens"] == max(event.get("target_tokens", 0) for event in log)


def test_tensorboard_has_what_the_log_has(tmp_path: Path, one_stage, train) -> None:
    pytest.importorskip("tensorboard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    config = one_stage(tmp_path / "run", "tensorboard=true", "stages.0.steps=8")
    train(config)
    events = EventAccumulator(str(config.run / "tensorboard")).Reload()
    shown = {(scalar.step, scalar.value) for scalar in events.Scalars("stage1/train/loss")}
    log = read_log(config.run / "log.jsonl")
    logged = {(event["step"], event["loss"]) for event in log if event["event"] == "train"}
    assert {step for step, _ in shown} == {step for step, _ in logged} == set(range(1, 9))
    assert sorted(value for _, value in shown) == pytest.approx(sorted(value for _, value in logged), rel=1e-5)
    assert {"stage1/validation/chrf", "stage1/validation/en-xa/loss"} <= set(events.Tags()["scalars"])


def test_without_tensorboard_a_run_says_so_and_goes_on(
    tmp_path: Path, one_stage, train, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    config = one_stage(tmp_path / "run", "tensorboard=true", "stages.0.steps=2")
    assert any("TensorBoard is not installed" in text for text in train(config))
    assert (config.run / "base").is_dir()


@pytest.mark.slow
def test_starting_over_keeps_the_earlier_run_aside(stopped_copy: Path, short_config, train, same_result) -> None:
    before = (stopped_copy / "log.jsonl").read_bytes()
    for number in (1, 2):
        said = train(short_config(stopped_copy), fresh=True)
        aside = stopped_copy.with_name(f"{stopped_copy.name}.old-{number}")
        assert f"the earlier run is kept as {aside}" in said
        assert not any("resuming at" in text for text in said)
        same_result(stopped_copy)
    assert (stopped_copy.with_name("run.old-1") / "log.jsonl").read_bytes() == before
    assert (stopped_copy.with_name("run.old-1") / "checkpoints" / "stage1-step00000012").is_dir()


def test_before_the_first_checkpoint_another_vocabulary_is_made_where_the_options_changed(
    tmp_path: Path, one_stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    run = tmp_path / "run"
    first = prepare(one_stage(run, "subwords.merges=20")).codec.base
    made = (run / "subwords.model").stat().st_mtime_ns
    assert prepare(one_stage(run, "subwords.merges=20")).codec.base.fingerprint == first.fingerprint
    assert (run / "subwords.model").stat().st_mtime_ns == made  # kept
    second = prepare(one_stage(run, "subwords.merges=30")).codec.base
    assert len(second) == len(first) + 10


def test_the_fingerprint_of_the_text_is_that_of_earlier_versions_and_reads_each_file_once(
    tmp_path: Path, uninterrupted: Path, one_stage, toy_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that runs begun with them go on."""
    config = one_stage(tmp_path / "run", f"subwords.model={uninterrupted / 'subwords.model'}")
    tokenizer = prepare(config).codec.base
    keys = [
        " ".join(cache_key(path, tokenizer) for path in Corpus.open(toy_corpus, split).files.values())
        for split in ("train", "valid")
    ]
    read: list[str] = []

    def counting(path: Path) -> Any:
        read.append(path.name)
        return open_regular(path)

    for module in ("graftmt.data.cache", "graftmt.data.line_files", "graftmt.training.run_text"):
        monkeypatch.setattr(f"{module}.open_regular", counting)
    assert prepare(config).data == hashlib.sha256("".join(keys).encode()).hexdigest()
    text = [name for name in read if name.startswith("train.")]
    assert len(set(text)) == len(text) == 4


def test_a_given_vocabulary_is_used_as_it_is(tmp_path: Path, uninterrupted: Path, one_stage, train) -> None:
    given = uninterrupted / "subwords.model"
    config = one_stage(tmp_path / "run", f"subwords.model={given}", "stages.0.steps=1", "validation.lines=0")
    train(config)
    assert (config.run / "base" / "subwords.model").read_bytes() == given.read_bytes()
    assert json.loads((config.run / "vocabulary.json").read_text())["rows"] == len(Subwords.load(given).pieces) + 7 + 4


def test_excluded_languages_are_left_for_later(tmp_path: Path, one_stage, train) -> None:
    config = one_stage(tmp_path / "run", "data.exclude=[xc]", "stages.0.steps=1")
    train(config)
    assert Base.load(config.run / "base").languages == ("en", "xa", "xb")


def test_the_finished_base_is_stored_as_asked(tmp_path: Path, one_stage, train) -> None:
    config = one_stage(tmp_path / "run", "store_dtype=bf16", "stages.0.steps=1", "validation.lines=0")
    train(config)
    dtypes = {str(tensor.dtype) for tensor in load_file(config.run / "base" / "model.safetensors").values()}
    assert dtypes == {"torch.bfloat16"}


@pytest.mark.parametrize(
    ("override", "error", "words"),
    [
        ("stages.0.learning_rat=1", ConfigError, "'stages.0.learning_rat'; did you mean 'learning_rate'"),
        ("stagess=1", ConfigError, "'stagess'; did you mean 'stages'"),
        ("stages.0.steps=0", ConfigError, "steps is 0; expected at least 1"),
        ("stages.0.dropout=2", ConfigError, "dropout is 2.0; expected a number from 0 to below 1"),
        ("stages.0.patience=1 validation.lines=0", ConfigError, "there are none with validation.lines=0"),
        ("precision=fp8", ConfigError, "precision is 'fp8'"),
        ("model.size=tny", ConfigError, "did you mean 'tiny'"),
        ("data.exclude=[xz]", ConfigError, "data.exclude names xz"),
        ("data.exclude=[xa,xb,xc]", ConfigError, "1 language is left"),
        ("data.languages=[en,xd]", LanguageError, "no train text for language 'xd'"),
        ("data.corpus=nowhere", GraftError, "there is no corpus folder nowhere"),
        ("validation.split=vaild", GraftError, "no files of the split 'vaild'"),
        ("device=cuda:99", GraftError, "device"),
        ("device=tpu", GraftError, "device 'tpu' cannot be used"),
        ("stages.0.batch_tokens=5", ConfigError, "batch_tokens is 5"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, one_stage, train, override: str, error: type[GraftError], words: str
) -> None:
    with pytest.raises(error) as caught:
        train(one_stage(tmp_path / "run", *override.split()))
    assert words in str(caught.value)
    assert not (tmp_path / "run" / "base").exists()
    assert not list(tmp_path.glob("run/checkpoints/stage*"))


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: path.stem)
def test_every_shipped_configuration_can_be_used(path: Path, graftmt: Callable[..., Any], tmp_path: Path) -> None:
    for split in ("train", "valid"):
        for language in ("de", "el", "en", "es", "fr", "id", "ja", "ru", "sv", "uk"):
            (tmp_path / f"{split}.{language}.txt").touch()  # a dry run reads none of them
    result = graftmt("train", str(path), f"data.corpus={tmp_path}", "--dry-run")
    assert result.code == 0, result.stderr
    printed = from_mapping(TrainConfig, yaml.safe_load(result.stdout))
    shipped = from_mapping(TrainConfig, load_yaml(path))
    assert printed == replace(shipped, data=replace(shipped.data, corpus=tmp_path))
    assert not Path(printed.run).is_absolute()


def test_a_run_that_another_process_holds_is_neither_joined_nor_moved_aside(stopped_copy: Path, short_config, train) -> None:
    with exclusive(stopped_copy, "the run"):
        for fresh in (False, True):
            with pytest.raises(GraftError, match="in use by another process"):
                train(short_config(stopped_copy), fresh=fresh)
    assert (stopped_copy / "checkpoints").is_dir()
    assert not stopped_copy.with_name(f"{stopped_copy.name}.old-1").exists()


def test_mistakes_in_a_later_stage_are_found_before_the_first_begins(tmp_path: Path, one_stage) -> None:
    with pytest.raises(ConfigError, match=r"'bas'.*'base'"):
        one_stage(tmp_path / "run", "model.size=bas")
    with pytest.raises(ConfigError, match="temperature"):
        one_stage(tmp_path / "run", "stages.0.temperature=-1")


@pytest.mark.slow
def test_a_run_without_padding_learns_too_and_goes_on_exactly(tmp_path: Path, short_config, train) -> None:
    changes = ("stages.0.packed=true", "stages.1.packed=true")
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train(short_config(whole, *changes))
    train(short_config(cut, *changes), minutes=0.0)
    assert not (cut / "base").exists()
    train(short_config(cut, *changes))
    losses = [event["loss"] for event in read_log(whole / "log.jsonl") if event["event"] == "validation"]
    assert losses[-1] < losses[0]
    assert (whole / "base" / "model.safetensors").read_bytes() == (cut / "base" / "model.safetensors").read_bytes()


def test_a_vocabulary_of_samples_goes_by_all_lines(tmp_path: Path) -> None:
    """At T=1 a language 32 times as large has 32 times the weight, although no more of its lines are read."""
    (tmp_path / "train.aa").write_text("abab cdcd\n" * 3200, encoding="utf-8")
    (tmp_path / "train.bb").write_text("xyxyxyxyxyxyxy\n" * 100 + "\n" * 3100, encoding="utf-8")
    corpus = Corpus.open(tmp_path, "train")
    (tmp_path / "run").mkdir()
    options = SubwordConfig(merges=4, temperature=1.0, sample_lines=100, min_character_count=1)
    found = run_subwords(tmp_path / "run", options, corpus).symbols
    assert "xy" not in found
    assert "ab" in "".join(found)


def test_what_lies_where_the_base_goes_is_said_before_training(stopped_copy: Path, short_config, train) -> None:
    (stopped_copy / "base").mkdir()
    (stopped_copy / "base" / "thesis.txt").write_text("all of it", encoding="utf-8")
    before = (stopped_copy / "log.jsonl").read_bytes()
    with pytest.raises(GraftError, match=r"base is not empty and not a base \(thesis\.txt\)"):
        train(short_config(stopped_copy))
    assert (stopped_copy / "log.jsonl").read_bytes() == before


@pytest.mark.parametrize("step", [2, 23])
def test_a_run_whose_folder_is_removed_is_an_error_and_leaves_no_half_of_one(
    short_config, train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    run, update = tmp_path / "run", Trainer._update

    def remove(self: Trainer, batches: Any, optimizer: Any, number: int) -> Any:
        if number == step:
            shutil.rmtree(run)
        return update(self, batches, optimizer, number)

    monkeypatch.setattr(Trainer, "_update", remove)
    with pytest.raises(GraftError, match=f"{run} was removed"):
        train(short_config(run, "log_every=100"))
    assert not run.exists()


def test_a_vocabulary_that_is_damaged_is_made_again_or_named(
    stopped_copy: Path, short_config, train, toy_corpus: Path, tmp_path: Path
) -> None:
    corpus, options = Corpus.open(toy_corpus, "train"), SubwordConfig(merges=50, min_character_count=1)
    model, note = tmp_path / "new" / "subwords.model", tmp_path / "new" / "subwords.json"
    run_subwords(model.parent, options, corpus)
    before = model.read_bytes(), note.read_bytes()
    for path, content in ((model, before[0][:-1] + b"x"), (note, b"{"), (note, b"[]"), (note, before[1].replace(b"0", b"1"))):
        path.write_bytes(content)
        run_subwords(model.parent, options, corpus)
        assert (model.read_bytes(), note.read_bytes()) == before
    with model.open("r+b") as handle:  # one that takes no room, and would take an hour to read
        handle.truncate(1 << 40)
    run_subwords(model.parent, options, corpus)
    assert (model.read_bytes(), note.read_bytes()) == before
    stored = stopped_copy / "subwords.model"
    stored.write_bytes(stored.read_bytes()[:-1] + b"x")
    with pytest.raises(GraftError, match=rf"{stored}, was changed or damaged"):
        train(short_config(stopped_copy))
