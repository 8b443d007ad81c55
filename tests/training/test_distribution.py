"""Several processes train as one: the same batches, the same schedule, and checkpoints that move between numbers of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from patience import PATIENCE, until

from graftmt.data import Batch, Direction
from graftmt.errors import TrainingError
from graftmt.training.distribution import Processes, lost_processes

Torchrun = Callable[..., str]
Same = Callable[[Path, Path], None]


def batch_of(rows: int) -> Batch:
    ids = torch.arange(3 * rows).view(rows, 3)
    directions = [Direction("en", "fr")] * rows
    return Batch(ids, ids + 1, ids + 2, directions, list(range(rows)), target_tokens=3 * rows, source_tokens=3 * rows)


@pytest.mark.parametrize("rows", [1, 4, 7])
def test_the_shares_of_a_batch_are_the_batch(rows: int) -> None:
    batch = batch_of(rows)
    shares = [share for rank in range(3) if (share := Processes(rank, 3).share(batch, 0)) is not None]
    assert sorted(line for share in shares for line in share.lines) == batch.lines
    for share in shares:
        assert torch.equal(share.source, batch.source[share.lines])
        assert torch.equal(share.labels, batch.labels[share.lines])


def test_one_process_alone_needs_nothing() -> None:
    alone, batch = Processes(), batch_of(2)
    assert alone.share(batch, 0) is batch
    loss = torch.tensor(2.0)
    assert alone.sum_gradients([], loss) is loss
    assert alone.from_first(lambda: {"loss": 1.0}, torch.device("cpu")) == {"loss": 1.0}
    assert alone.agree(True, torch.device("cpu")) and not alone.agree(False, torch.device("cpu"))


def test_a_row_that_does_not_count_where_all_must_run_the_model() -> None:
    batch, padding = batch_of(1), 99
    (own, idle), nothing = (Processes(rank, 2, sharded=True).share(batch, padding) for rank in (0, 1)), Processes(1, 2)
    assert nothing.share(batch, padding) is None
    assert own is not None and idle is not None
    assert torch.equal(own.labels, batch.labels)
    assert torch.equal(idle.source, batch.source)
    assert (idle.labels == padding).all()


def test_that_another_process_is_gone_is_said_in_words() -> None:
    words = r"another process of the run has ended .* resumes at the last checkpoint"
    with pytest.raises(TrainingError, match=words), lost_processes():
        raise RuntimeError("[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:1")
    with pytest.raises(RuntimeError, match="of our own"), lost_processes():
        raise RuntimeError("of our own")


@pytest.mark.slow
def test_two_processes_train_the_base_that_one_trains(
    tmp_path: Path, torchrun: Torchrun, base_file: Callable[..., str], alone: Path, same_learned: Same
) -> None:
    run = tmp_path / "two"
    said = torchrun(2, "-m", "graftmt", "train", base_file(run))
    assert "2 processes" in said
    assert said.splitlines().count(str(run / "base")) == 1, "the first one alone says where it is"
    same_learned(run, alone)
    documents = [json.loads((folder / "base" / "base.json").read_text(encoding="utf-8")) for folder in (run, alone)]
    assert documents[0]["card"]["target_tokens"] == documents[1]["card"]["target_tokens"]


@pytest.mark.slow
def test_two_processes_train_the_pack_that_one_trains(
    tmp_path: Path,
    torchrun: Torchrun,
    pack_command: Callable[..., list[str]],
    pack_alone: Path,
    same_learned: Same,
) -> None:
    run = tmp_path / "two"
    assert "2 processes" in torchrun(2, *pack_command(run))
    same_learned(run, pack_alone)


@pytest.mark.slow
def test_two_processes_add_a_language_and_one_of_them_speaks(
    tmp_path: Path,
    torchrun: Torchrun,
    graftmt: Callable[..., Any],
    graft_base: Callable[..., Path],
    graft_corpus: Path,
    same_learned: Same,
) -> None:
    def command(run: Path) -> list[str]:
        quick = (
            "--merges",
            "20",
            "--steps",
            "6",
            "--lines",
            "2",
            "--beam",
            "1",
            "stages.0.dropout=0",
            "stages.0.clip_norm=0.5",
        )
        given = ("-b", str(graft_base()), "--train", str(graft_corpus), "--run", str(run), "--device", "cpu", "--json", "-q")
        return ["add", "el", *given, *quick, "tensorboard=false", "log_every=1", "validation.translate=false"]

    one, two = (tmp_path / name for name in ("one", "two"))
    expected = json.loads(graftmt(*command(one)).stdout)
    documents = [
        json.loads(line) for line in torchrun(2, "-m", "--", "graftmt", *command(two)).splitlines() if line.startswith("[")
    ]
    assert len(documents) == 1
    for found, wanted in zip(documents[0], expected, strict=True):
        assert found["verdict"]["scores"].keys() == wanted["verdict"]["scores"].keys()
        assert Path(found["pack"]) == two / found["side"] / "pack"
        same_learned(two / found["side"], one / found["side"])


@pytest.mark.slow
def test_a_run_that_two_were_asked_to_stop_is_finished_by_one(
    tmp_path: Path,
    torchrun: Torchrun,
    base_file: Callable[..., str],
    train_alone: Callable[..., list[str]],
    alone: Path,
    same_learned: Same,
) -> None:
    run = tmp_path / "moved"
    said = torchrun(2, "-m", "--", "graftmt", "train", base_file(run), "--minutes", "0", "--json")
    assert said.count("everything is saved") == 1
    documents = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert [(one["run"], one["step"], one["steps"], one["base"]) for one in documents] == [(str(run), 10, 30, None)]
    assert not (run / "base").exists()
    assert "resuming at stage1-step00000010" in train_alone(run)
    same_learned(run, alone)


@pytest.mark.slow
@pytest.mark.parametrize(("victim", "sharded"), [(1, False), (0, False), (0, True)])
def test_a_killed_worker_ends_the_job_and_one_process_finishes_it(
    victim: int,
    sharded: bool,
    tmp_path: Path,
    start_torchrun: Callable[..., subprocess.Popen[str]],
    base_file: Callable[..., str],
    train_alone: Callable[..., list[str]],
    alone: Path,
    same_learned: Same,
) -> None:
    run = tmp_path / "killed"
    job = start_torchrun(2, "-m", "graftmt", "train", base_file(run, f"sharded={str(sharded).lower()}"))
    workers = until(lambda: found if (found := workers_of(job.pid)).keys() == {0, 1} else None)
    until(lambda: (run / "checkpoints" / "stage1-step00000005").is_dir() or job.poll() is not None)
    os.kill(workers[victim], signal.SIGKILL)
    _, errors = job.communicate(timeout=PATIENCE)  # it ends; about a second is usual
    assert job.returncode != 0, errors
    until(lambda: not any(map(is_running, workers.values())))
    assert not (run / "base").exists()
    assert f"(pid: {workers[victim]})" in errors, errors
    assert "graftmt: another process of the run has ended" in errors, errors

    said = train_alone(run)
    assert any(line.startswith("resuming at stage") for line in said)
    assert not [*(run / "checkpoints").glob(".*")], "something half written is left"
    same_learned(run, alone)


def workers_of(launcher: int) -> dict[int, int]:
    """The process of each rank, among the children of torchrun."""
    found = {}
    for child in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
        try:
            environment = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        found |= {int(entry[5:]): int(child) for entry in environment if entry.startswith(b"RANK=")}
    return found


def is_running(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
