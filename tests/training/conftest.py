"""Short runs for the tests of training: two stages, dropout, accumulation, checkpoints between and at validations."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.configuration import apply_overrides, from_mapping
from graftmt.training import TrainConfig
from graftmt.training.journal import read_log
from graftmt.training.loop import Trainer

SHORT = (
    "stages.0={name: first, directions: [en-centric], steps: 24, batch_tokens: 200, accumulate: 2, learning_rate: 0.005, "
    "warmup: 10, dropout: 0.1}",
    "validation.every=8",
    "checkpoint_every=5",
    "log_every=1",
)
SECOND = {"name": "second", "directions": ["multi-parallel"], "steps": 40, "accumulate": 2, "learning_rate": 0.003, "warmup": 5}


@pytest.fixture(scope="session")
def short_settings(toy_settings: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """`short_settings(run, "seed=2")`: the plain form of a run of 24 and 40 steps."""

    def settings(run: Path, *overrides: str) -> dict[str, Any]:
        mapping = toy_settings(run, *SHORT)
        mapping["stages"].append({**mapping["stages"][0], **SECOND})
        return apply_overrides(mapping, overrides)

    return settings


@pytest.fixture(scope="session")
def short_config(short_settings: Callable[..., dict[str, Any]]) -> Callable[..., TrainConfig]:
    return lambda run, *overrides: from_mapping(TrainConfig, short_settings(run, *overrides))


@pytest.fixture
def one_stage(short_settings: Callable[..., dict[str, Any]]) -> Callable[..., TrainConfig]:
    """The same without the second stage."""

    def config(run: Path, *overrides: str) -> TrainConfig:
        mapping = short_settings(run)
        del mapping["stages"][1]
        return from_mapping(TrainConfig, apply_overrides(mapping, overrides))

    return config


@pytest.fixture(scope="session")
def uninterrupted(
    tmp_path_factory: pytest.TempPathFactory, short_config: Callable[..., TrainConfig], train: Callable[..., list[str]]
) -> Path:
    """The folder of a short run that nothing disturbed."""
    run = tmp_path_factory.mktemp("short") / "uninterrupted"
    train(short_config(run))
    return run


@pytest.fixture(scope="session")
def same_result(uninterrupted: Path) -> Callable[[Path], None]:
    """Asserts that a run ended exactly as the uninterrupted one: weights bit for bit, and every loss and score on the way."""

    def check(run: Path) -> None:
        for name in ("model.safetensors", "subwords.model"):
            assert (run / "base" / name).read_bytes() == (uninterrupted / "base" / name).read_bytes()
        assert fingerprint(run) == fingerprint(uninterrupted)
        assert comparable_events(run) == comparable_events(uninterrupted)

    return check


def fingerprint(run: Path) -> str:
    return str(json.loads((run / "base" / "base.json").read_text(encoding="utf-8"))["fingerprint"])


def comparable_events(run: Path) -> list[dict[str, Any]]:
    """The log without what depends on the clock."""
    clock = {"seconds", "target_tokens_per_second", "waiting_for_data"}
    return [{key: value for key, value in event.items() if key not in clock} for event in read_log(run / "log.jsonl")]


@pytest.fixture(scope="session")
def stopped_run(
    tmp_path_factory: pytest.TempPathFactory, short_config: Callable[..., TrainConfig], train: Callable[..., list[str]]
) -> Path:
    """A run stopped in its first stage, with two whole checkpoints; read only."""
    run = tmp_path_factory.mktemp("short") / "stopped"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graftmt.training.run.Trainer", stopping_after(12))
        train(short_config(run))
    return run


def stopping_after(step: int) -> type[Trainer]:
    """A trainer that is asked to stop after so many updates."""

    class Stopping(Trainer):
        def _update(self, *arguments: Any) -> Any:
            loss = super()._update(*arguments)
            if arguments[2] + 1 == step:
                self.request.deadline = 0.0
            return loss

    return Stopping


@pytest.fixture
def stopped_copy(stopped_run: Path, tmp_path: Path) -> Path:
    """A copy of the stopped run, to be damaged or gone on with."""
    return Path(shutil.copytree(stopped_run, tmp_path / "run"))


@pytest.fixture
def customise_trainer(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Trainer], None]], None]:
    """`customise_trainer(change)`: every trainer that a run makes goes through `change` before it begins."""

    def customise(change: Callable[[Trainer], None]) -> None:
        class Custom(Trainer):
            def run(self, *arguments: Any) -> None:
                change(self)
                super().run(*arguments)

        monkeypatch.setattr("graftmt.training.run.Trainer", Custom)

    return customise
