"""A run that is killed or asked to stop, at any moment, ends with exactly the weights of one that was left alone."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from patience import PATIENCE, until

from graftmt.training.journal import read_log


@pytest.fixture
def short_run(tmp_path: Path, short_settings: Callable[..., dict[str, Any]]) -> tuple[Path, str]:
    """The folder of a run that has not begun, and its configuration as a file."""
    run, config = tmp_path / "run", tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(short_settings(run)), encoding="utf-8")
    return run, str(config)


def wait_for(process: subprocess.Popen[bytes], run: Path, stage: int, step: int) -> None:
    """Returns when this process, and not one before it, has logged the step."""
    started, log = time.time(), run / "log.jsonl"

    def logged() -> bool:
        assert process.poll() is None, process.communicate()[1].decode()
        events = read_log(log) if log.is_file() and log.stat().st_mtime > started else []
        return bool(events) and (events[-1]["stage"], events[-1]["step"]) >= (stage, step)

    until(logged)


def finish(process: subprocess.Popen[bytes], code: int = 0) -> str:
    """What the process said on standard error, once it has ended as expected."""
    said = process.communicate(timeout=PATIENCE)[1].decode()
    assert process.returncode == code, said
    return said


@pytest.mark.slow
def test_killed_again_and_again_it_ends_with_the_same_bits(
    short_run: tuple[Path, str],
    same_result: Callable[[Path], None],
    start_graftmt: Callable[..., subprocess.Popen[bytes]],
) -> None:
    run, config = short_run
    # Before the first checkpoint (5), between two, around a validation (8, 16, 24), and in the second stage before and
    # after its first checkpoint; the moment within or after that step is random.
    for stage, step in [(0, 2), (0, 8), (0, 17), (1, 2), (1, 12)]:
        process = start_graftmt("train", config)
        wait_for(process, run, stage, step)
        time.sleep(random.random() * 0.03)
        process.kill()
        finish(process, -signal.SIGKILL)
        assert not (run / "base").exists()
    finish(start_graftmt("train", config))
    same_result(run)
    assert not list((run / "checkpoints").glob(".*")), "a kill left something that the next start did not remove"


@pytest.mark.slow
def test_asked_to_stop_it_saves_itself_and_goes_on_exactly(
    short_run: tuple[Path, str],
    same_result: Callable[[Path], None],
    start_graftmt: Callable[..., subprocess.Popen[bytes]],
) -> None:
    run, config = short_run
    said = finish(start_graftmt("train", config, "--minutes", "0.001"))
    assert "--minutes is over; everything is saved" in said
    for number, stage, step in [(signal.SIGTERM, 0, 11), (signal.SIGINT, 1, 3)]:
        process = start_graftmt("train", config)
        wait_for(process, run, stage, step)
        process.send_signal(number)
        said = finish(process, 128 + number)
        assert f"stopped by {number.name}; everything is saved" in said
        assert "Traceback" not in said
        last = read_log(run / "log.jsonl")[-1]
        # Saved where it was, not only where it was last due.
        assert (run / "checkpoints" / f"stage{last['stage'] + 1}-step{last['step']:08d}").is_dir()
    said = finish(start_graftmt("train", config))
    assert "resuming at stage2-step" in said
    same_result(run)


def test_a_finished_run_given_again_changes_nothing(
    uninterrupted: Path, train: Callable[..., list[str]], short_config: Callable[..., Any], same_result: Callable[[Path], None]
) -> None:
    before = (uninterrupted / "base" / "model.safetensors").read_bytes()
    train(short_config(uninterrupted))
    assert (uninterrupted / "base" / "model.safetensors").read_bytes() == before
    same_result(uninterrupted)


@pytest.mark.slow
def test_the_log_has_each_step_once(uninterrupted: Path, stopped_copy: Path, train, short_config) -> None:
    # A kill can cut a line, and leave steps that come after the last checkpoint.
    with (stopped_copy / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"event": "train", "stage": 0, "step": 13, "loss": 1.0}\n{"event": "train", "sta')
    train(short_config(stopped_copy))
    events = [(event["event"], event["stage"], event["step"]) for event in read_log(stopped_copy / "log.jsonl")]
    assert len(set(events)) == len(events)
    assert events == [(event["event"], event["stage"], event["step"]) for event in read_log(uninterrupted / "log.jsonl")]
