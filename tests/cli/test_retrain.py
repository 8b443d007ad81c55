"""`graftmt retrain` and the bilingual baseline: shipped configurations, overrides, killed and gone on, used after."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from patience import until

from graftmt.base import Base
from graftmt.configuration import from_mapping, load_yaml
from graftmt.model import Transformer
from graftmt.training import RetrainConfig, TrainConfig
from graftmt.training.journal import read_log

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture
def config(tmp_path: Path) -> str:
    """A run of some steps that names neither base nor text."""
    stage = {"steps": 30, "batch_tokens": 400, "learning_rate": 0.01, "warmup": 4}
    mapping = {
        "run": str(tmp_path / "run"),
        "stages": [{"directions": ["multi-parallel"], **stage}],
        "validation": {"lines": 4, "every": 10},
        "checkpoint_every": 5,
        "log_every": 1,
        "device": "cpu",
        "threads": 1,
        "tensorboard": False,
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return str(path)


@pytest.fixture
def options(graft_base: Callable[..., Path], graft_corpus: Path) -> list[str]:
    return ["--base", str(graft_base()), "--corpus", str(graft_corpus), "--new", "el"]


@pytest.mark.slow
def test_it_prints_the_folder_and_the_base_works_like_any_other(
    graftmt, config: str, options: list[str], tmp_path: Path, graft_corpus: Path
) -> None:
    result = graftmt("retrain", config, *options, "stages.0.steps=4", "seed=5")
    base = tmp_path / "run" / "base"
    assert (result.code, result.stdout) == (0, f"{base}\n"), result.stderr
    assert "copied by token" in result.stderr
    assert "average     old" in result.stderr
    for source, target in (("fr", "ru"), ("el", "en")):
        lines = b"fada\ngoka\n"
        translated = graftmt("translate", "--base", str(base), "-s", source, "-t", target, "--device", "cpu", stdin=lines)
        assert (translated.code, translated.stdout.count("\n")) == (0, 2), translated.stderr
    scored = graftmt(
        *("evaluate", "--base", str(base), "--corpus", str(graft_corpus), "--directions", "en-fr,el-en"),
        *("--lines", "3", "--beam", "1", "--device", "cpu", "--json"),
    )
    assert scored.code == 0, scored.stderr
    inspected = json.loads(graftmt("inspect", str(tmp_path / "run"), "--json").stdout)
    assert (inspected["method"], inspected["new_languages"], inspected["base"]) == ("retrain", ["el"], str(base))
    assert json.loads(graftmt("inspect", str(base), "--json").stdout)["training"]["method"] == "retrain"


@pytest.mark.slow
def test_json_has_the_parent_the_rows_and_the_scores(graftmt, config: str, options: list[str], graft_base) -> None:
    result = graftmt("retrain", config, *options, "--method", "substitute", "stages.0.steps=2", "--json", "--quiet")
    assert (result.code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert found["parent"] == Base.load(graft_base()).fingerprint
    assert found["fingerprint"] == Base.load(found["base"]).fingerprint
    assert found["method"] == "substitute"
    assert found["rows"]["substituted"] == found["rows"]["outdated"]
    assert found["scores"]["en-el"]["new"] and not found["scores"]["en-fr"]["new"]


@pytest.mark.slow
def test_killed_and_given_again_it_ends_with_the_same_bits(
    graftmt,
    config: str,
    options: list[str],
    tmp_path: Path,
    start_graftmt: Callable[..., subprocess.Popen[bytes]],
) -> None:
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert graftmt("retrain", config, *options, f"run={whole}").code == 0
    process = start_graftmt("retrain", config, *options)

    def is_under_way() -> bool:
        assert process.poll() is None, process.communicate()[1].decode()
        log = run / "log.jsonl"
        return log.is_file() and any(event["step"] >= 7 for event in read_log(log))

    until(is_under_way)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (run / "base").exists()
    assert "resuming at stage1-step" in graftmt("retrain", config, *options).stderr
    for name in ("base/model.safetensors", "base/subwords.model", "before.json"):
        assert (run / name).read_bytes() == (whole / name).read_bytes()


def test_minutes_stop_it_cleanly(graftmt, config: str, options: list[str], tmp_path: Path) -> None:
    result = graftmt("retrain", config, *options, "validation.lines=0", "--minutes", "0", "--json")
    assert result.code == 0
    assert "--minutes" in json.loads(result.stdout)["stopped"]
    assert (tmp_path / "run" / "checkpoints" / "stage1-step00000001").is_dir()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--new", "fr"], "a language of the base"),
        (["--new", "xx"], "no train text in xx"),
        (["stages.0.warmpu=3"], "did you mean 'warmup'?"),
        (["model.size=tiny"], "Re-training keeps the base's architecture"),
        (["sharded=true"], "sharded=true is for training a base or a pack; leave it out here."),
        (["sharded=true", "validation.lines=0", "--dry-run"], "sharded=true is for training a base or a pack"),
    ],
)
def test_what_cannot_be_meant_is_one_paragraph_and_exit_code_1(
    graftmt, config: str, options: list[str], arguments: list[str], words: str
) -> None:
    result = graftmt("retrain", config, *options, *arguments)
    assert (result.code, result.stdout) == (1, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_a_configuration_without_a_base_says_which_key_is_missing(graftmt, config: str) -> None:
    assert "the key 'base' is missing" in graftmt("retrain", config, "--new", "el", "data.corpus=x").stderr


@pytest.mark.parametrize(("name", "method", "rate"), [("retrain", "retrain", 5e-4), ("substitute", "substitute", 1e-4)])
def test_shipped_configurations_are_the_paper_s(graftmt, options: list[str], name: str, method: str, rate: float) -> None:
    path = CONFIGS / f"{name}.yaml"
    shipped = from_mapping(RetrainConfig, load_yaml(path))
    assert not shipped.run.is_absolute() and not shipped.base.is_absolute()
    result = graftmt("retrain", str(path), *options, "--dry-run")
    assert result.code == 0, result.stderr
    printed = from_mapping(RetrainConfig, yaml.safe_load(result.stdout))
    stage = printed.stages[0]
    assert (printed.method, stage.learning_rate, stage.dropout, stage.betas) == (method, rate, 0.1, (0.9, 0.999))
    assert stage.batch_tokens * stage.accumulate == 16_000
    assert printed.upsample == (5 if method == "substitute" else 1)


def test_a_dry_run_checks_what_is_there_and_says_what_is_not(graftmt, options: list[str], tmp_path: Path) -> None:
    path = str(CONFIGS / "retrain.yaml")
    wrong = graftmt("retrain", path, *options, "new=[xx]", "--dry-run")
    assert wrong.code != 0 and "no train text in xx" in wrong.stderr
    for option, words in (("--base", "no base folder"), ("--corpus", "no corpus folder")):
        absent = graftmt("retrain", path, *options, option, str(tmp_path / "nowhere"), "--dry-run")
        assert (absent.code, absent.stdout) == (1, "")
        assert f"there is {words} {tmp_path / 'nowhere'}" in absent.stderr
    unvalidated = graftmt("retrain", path, *options, "validation.split=dev", "--dry-run")
    assert unvalidated.code == 1 and "no files of the split 'dev'" in unvalidated.stderr


# The bilingual baseline is `graftmt train` with a configuration


def test_the_bilingual_baseline_has_the_paper_s_size() -> None:
    config = from_mapping(TrainConfig, load_yaml(CONFIGS / "bilingual.yaml"))
    with torch.device("meta"):
        model = Transformer.build(config.model.architecture(), config.subwords.merges + 150)  # characters, codes, specials
    assert sum(parameter.numel() for parameter in model.parameters()) == pytest.approx(35.7e6, rel=0.002)


@pytest.mark.slow
def test_the_bilingual_baseline_trains_in_one_direction(graftmt, tmp_path: Path, graft_corpus: Path) -> None:
    small: dict[str, Any] = {"model_dim": 16, "ffn_dim": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    result = graftmt(
        *("train", str(CONFIGS / "bilingual.yaml"), f"data.corpus={graft_corpus}", f"run={tmp_path / 'run'}"),
        *(f"model.{key}={value}" for key, value in small.items()),
        *("subwords.merges=50", "stages.0.steps=4", "stages.0.batch_tokens=400", "stages.0.warmup=2", "validation.every=2"),
        *("precision=fp32", "device=cpu", "threads=1", "tensorboard=false", "validation.lines=4"),
    )
    assert result.code == 0, result.stderr
    base = Base.load(tmp_path / "run" / "base")
    assert (base.languages, base.model.config.norm) == (("el", "en"), "post")
    assert list(base.card["validation"]["directions"]) == ["el-en"]
    assert "in 1 direction," in result.stderr
