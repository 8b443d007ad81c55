"""Several processes train as one: the same batches, the same schedule, and checkpoints that move between numbers of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from graftmt.configuration import to_yaml
from graftmt.data import Batch, Direction
from graftmt.training.distribution import Processes
from graftmt.training.journal import read_log


def batch_of(rows: int) -> Batch:
    ids = torch.arange(3 * rows).view(rows, 3)
    directions = [Direction("en", "fr")] * rows
    return Batch(ids, ids + 1, ids + 2, directions, list(range(rows)), target_tokens=3 * rows, source_tokens=3 * rows)


@pytest.mark.parametrize("rows", [1, 4, 7])
def test_the_shares_of_a_batch_are_the_batch(rows: int) -> None:
    batch = batch_of(rows)
    shares = [share for rank in range(3) if (share := Processes(rank, 3).share(batch)) is not None]
    assert sorted(line for share in shares for line in share.lines) == batch.lines
    for share in shares:
        assert torch.equal(share.source, batch.source[share.lines])
        assert torch.equal(share.labels, batch.labels[share.lines])


def test_one_process_alone_needs_nothing() -> None:
    alone, batch = Processes(), batch_of(2)
    assert alone.share(batch) is batch
    loss = torch.tensor(2.0)
    assert alone.sum_gradients([], loss) is loss
    assert alone.from_first(lambda: {"loss": 1.0}, torch.device("cpu")) == {"loss": 1.0}
    assert alone.agree(True, torch.device("cpu")) and not alone.agree(False, torch.device("cpu"))


def train_with(count: int, config: Path, *overrides: str) -> str:
    """`graftmt train` in so many processes of torchrun."""
    command = [sys.executable, "-m", "graftmt", "train", str(config), *overrides, "--quiet"]
    if count > 1:
        command[1:1] = [
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            str(count),
            "--master-port",
            "0",
            "--rdzv-backend",
            "c10d",
        ]
        command[command.index("c10d") + 1 : command.index("c10d") + 1] = ["--rdzv-endpoint", "localhost:0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout


def losses(run: Path) -> dict[tuple[str, int, int], float]:
    return {(e["event"], e["stage"], e["step"]): e["loss"] for e in read_log(run / "log.jsonl")}


@pytest.fixture
def config_file(tmp_path: Path, short_config) -> Path:
    """The short two-stage run of the other tests, without dropout: its random numbers differ from process to process."""
    config = short_config(tmp_path / "unused", "stages.0.dropout=0", "stages.1.dropout=0")
    path = tmp_path / "config.yaml"
    path.write_text(to_yaml(config), encoding="utf-8")
    return path


def test_two_processes_learn_what_one_learns_and_can_be_continued_by_one(tmp_path: Path, config_file: Path) -> None:
    train_with(1, config_file, f"run={tmp_path / 'one'}")
    train_with(2, config_file, f"run={tmp_path / 'two'}")
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert one.keys() == two.keys()
    assert all(two[key] == pytest.approx(one[key], rel=2e-3) for key in one)
    documents: list[dict[str, Any]] = [
        json.loads((tmp_path / name / "base" / "base.json").read_text(encoding="utf-8")) for name in ("one", "two")
    ]
    assert documents[0]["card"]["target_tokens"] == documents[1]["card"]["target_tokens"]


def test_a_run_goes_on_with_another_number_of_processes(tmp_path: Path, config_file: Path) -> None:
    train_with(1, config_file, f"run={tmp_path / 'whole'}")
    run = tmp_path / "moved"
    train_with(2, config_file, f"run={run}", "--minutes", "0")
    assert not (run / "base").exists()
    assert list((run / "checkpoints").glob("stage1-step*"))
    train_with(1, config_file, f"run={run}")
    whole, moved = losses(tmp_path / "whole"), losses(run)
    assert all(moved[key] == pytest.approx(whole[key], rel=2e-3) for key in whole if key in moved)
    assert max(whole) == max(moved)
