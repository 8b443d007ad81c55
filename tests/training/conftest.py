"""Short runs for the tests of training: two stages, dropout, accumulation, checkpoints between and at validations."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from patience import PATIENCE
from safetensors.torch import load_file
from torch import Tensor

import graftmt
from graftmt.base import Base
from graftmt.configuration import apply_overrides, from_mapping, to_yaml
from graftmt.data import Corpus
from graftmt.packs import Pack
from graftmt.training import PackConfig, TrainConfig, ValidationConfig, train_pack
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
    tmp_path_factory: pytest.TempPathFactory,
    short_config: Callable[..., TrainConfig],
    train: Callable[..., list[str]],
    stopping_after: Callable[..., type[Trainer]],
) -> Path:
    """A run stopped in its first stage, with two whole checkpoints; read only."""
    run = tmp_path_factory.mktemp("short") / "stopped"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graftmt.training.stages.Trainer", stopping_after(12))
        train(short_config(run))
    return run


@pytest.fixture(scope="session")
def stopping_after() -> Callable[..., type[Trainer]]:
    """`stopping_after(7)`: a trainer that is asked to stop after so many updates, of the stages whose name ends so."""

    def make(step: int, stage: str = "") -> type[Trainer]:
        class Stopping(Trainer):
            def _update(self, *arguments: Any) -> Any:
                loss = super()._update(*arguments)
                if self.stage.name.endswith(stage) and arguments[2] + 1 == step:
                    self.request.deadline = 0.0
                return loss

        return Stopping

    return make


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

        monkeypatch.setattr("graftmt.training.stages.Trainer", Custom)

    return customise


# Several processes. Losses and weights are those of one process but for the order in which floats are summed.

LOSS_TOLERANCE = 1e-5
"""Relative, of every logged loss; 2e-7 has been seen."""
WEIGHT_TOLERANCE = 2e-5
"""Absolute, of weights up to about 1, after 30 updates at rates of 1e-3 and more; 4e-7 has been seen."""

PACK_WORKER = """
import sys
from pathlib import Path
from graftmt.base import Base, parameters
from graftmt.configuration import from_mapping, load_yaml
from graftmt.data import Corpus
from graftmt.progress import heard_by
from graftmt.training import PackConfig, train_pack

config, folder, corpus = map(Path, sys.argv[1:])
base = Base.load(folder)
with heard_by(lambda text: print(text, flush=True)):
    train_pack(
        from_mapping(PackConfig, load_yaml(config)),
        base,
        *(Corpus.open(corpus, split) for split in ("train", "valid")),
    )
kept, stored = parameters(base.model), parameters(Base.load(folder).model)
assert all(kept[name].equal(tensor) for name, tensor in stored.items()), "the resident base has changed"
"""


@pytest.fixture(scope="session")
def start_torchrun() -> Callable[..., subprocess.Popen[str]]:
    """`start_torchrun(2, "-m", "graftmt", "train", …)`: as many processes, of which torchrun takes care."""
    source = str(Path(graftmt.__file__).parents[1])

    def start(count: int, *command: str) -> subprocess.Popen[str]:
        options = ("--nproc-per-node", str(count), "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0")
        paths = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        arguments = [sys.executable, "-m", "torch.distributed.run", *options, *command]
        return subprocess.Popen(arguments, env=environment, text=True, **pipes)

    return start


@pytest.fixture(scope="session")
def torchrun(start_torchrun: Callable[..., subprocess.Popen[str]]) -> Callable[..., str]:
    """The same, to its end; returns what was said."""

    def run(count: int, *command: str) -> str:
        process = start_torchrun(count, *command)
        output, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors[-3000:]
        return output + errors

    return run


@pytest.fixture(scope="session")
def base_settings(short_settings: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """A short run of two stages for several processes. It has no dropout, whose random numbers differ from one to the next;
    gradients are clipped in the first stage, and batches of the second often have one row only."""
    overrides = (
        *("stages.0.dropout=0", "stages.0.steps=12", "stages.0.clip_norm=0.5"),
        *("stages.1.dropout=0", "stages.1.steps=18", "stages.1.batch_tokens=20", "data.max_length=18"),
        "validation.translate=false",
    )
    return lambda run, *more: short_settings(run, *overrides, *more)


@pytest.fixture
def base_file(tmp_path: Path, base_settings: Callable[..., dict[str, Any]]) -> Callable[..., str]:
    """`base_file(run, "sharded=true")`: that configuration as a file."""

    def write(run: Path, *overrides: str) -> str:
        path = tmp_path / f"{run.name}.yaml"
        path.write_text(yaml.safe_dump(base_settings(run, *overrides)), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture(scope="session")
def train_alone(base_settings: Callable[..., dict[str, Any]], train: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """`train_alone(run)`: that run, or what is left of it, in this process."""
    return lambda run, *overrides, **options: train(from_mapping(TrainConfig, base_settings(run, *overrides)), **options)


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory, train_alone: Callable[..., list[str]]) -> Path:
    """The folder of that run, finished by one process; read only."""
    run = tmp_path_factory.mktemp("processes") / "alone"
    train_alone(run)
    return run


@pytest.fixture(scope="session")
def pack_config(graft_config: Callable[..., PackConfig]) -> Callable[..., PackConfig]:
    """`pack_config(run, sharded=True)`: a pack for several processes: rows, a layer of its own and adapters in others."""
    options = {"validation": ValidationConfig(every=4, lines=6, translate=False), "log_every": 1, "checkpoint_every": 5}
    recipe = "embed + dec-last-layer + enc-adapters-last(4)"

    def config(run: Path, **changes: Any) -> PackConfig:
        made = graft_config(run, "target", recipe, steps=12, dropout=0.0, **options, **changes)
        return replace(made, stages=(replace(made.stages[0], clip_norm=0.5),))

    return config


@pytest.fixture
def pack_command(
    tmp_path: Path, pack_config: Callable[..., PackConfig], graft_base: Callable[..., Path], graft_corpus: Path
) -> Callable[..., list[str]]:
    """`torchrun(2, *pack_command(run))`: that pack, trained by `train_pack` in each process."""

    def command(run: Path, **changes: Any) -> list[str]:
        script, config = tmp_path / "train_pack.py", tmp_path / f"{run.name}.yaml"
        script.write_text(PACK_WORKER, encoding="utf-8")
        config.write_text(to_yaml(pack_config(run, **changes)), encoding="utf-8")
        return [str(script), str(config), str(graft_base()), str(graft_corpus)]

    return command


@pytest.fixture(scope="session")
def train_pack_alone(
    pack_config: Callable[..., PackConfig], graft_base: Callable[..., Path], graft_corpus: Path
) -> Callable[..., Pack]:
    """`train_pack_alone(run)`: that pack in this process."""

    def train(run: Path, **changes: Any) -> Pack:
        texts = (Corpus.open(graft_corpus, split) for split in ("train", "valid"))
        return train_pack(pack_config(run, **changes), Base.load(graft_base()), *texts)

    return train


@pytest.fixture(scope="session")
def pack_alone(tmp_path_factory: pytest.TempPathFactory, train_pack_alone: Callable[..., Pack]) -> Path:
    """The folder of that pack's run, finished by one process; read only."""
    run = tmp_path_factory.mktemp("processes") / "pack"
    train_pack_alone(run)
    return run


@pytest.fixture(scope="session")
def same_learned() -> Callable[[Path, Path], None]:
    """Asserts that two runs logged the same losses and ended with the same weights, to the tolerances above."""

    def check(run: Path, other: Path) -> None:
        found, expected = losses(run), losses(other)
        assert found.keys() == expected.keys()
        for key, loss in expected.items():
            assert found[key] == pytest.approx(loss, rel=LOSS_TOLERANCE), key
        stored = sorted(str(path.relative_to(other)) for path in other.rglob("*.safetensors"))
        assert sorted(str(path.relative_to(run)) for path in run.rglob("*.safetensors")) == stored
        for name in stored:
            if not name.endswith("optimizer.safetensors"):
                same_weights(load_file(run / name), load_file(other / name), name)

    return check


def losses(run: Path) -> dict[tuple[str, int, int], float]:
    return {(event["event"], event["stage"], event["step"]): event["loss"] for event in read_log(run / "log.jsonl")}


def same_weights(found: dict[str, Tensor], expected: dict[str, Tensor], where: str) -> None:
    assert found.keys() == expected.keys()
    for name, weight in expected.items():
        # A bias of attention's keys adds the same to all scores of a query: it changes nothing, and its gradient is zero but
        # for rounding, which Adam scales up to whole steps.
        if not name.endswith("key.bias"):
            torch.testing.assert_close(
                found[name], weight, rtol=0, atol=WEIGHT_TOLERANCE, msg=lambda text, name=name: f"{where}, {name}: {text}"
            )
