"""The benchmark of large bases runs, and its JSON has what a reader looks for; nothing is timed here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_all_parts_at_a_tiny_size(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    found = tmp_path / "found.json"
    parts = ["train", "search", "3.3b", "small-vocabulary"]
    options = ["--device", "cpu", "--tiny", "--parts", *parts, "--output", str(found)]
    command = [sys.executable, str(ROOT / "benchmarks" / "large_base.py"), *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    report = json.loads(found.read_text(encoding="utf-8"))
    assert list(report["parts"]) == parts
    assert len(report["parts"]["train"]) == 5 and len(report["parts"]["search"]) == 3
    for part, rate in (("train", "pairs_per_second"), ("3.3b", "pairs_per_second"), ("search", "lines_per_second")):
        assert all(side[rate] > 0 for side in report["parts"][part].values())
    for name, side in report["parts"]["train"].items():
        assert ("ratio" in side) == name.startswith(("source", "target"))
        if "trained_parameters" in side:
            assert 0 < side["trained_parameters"] < side["rows"] * 1000
    assert "ratio" in report["parts"]["small-vocabulary"]["graftmt, into a pack's vocabulary"]
    for name in report["parts"]["train"]:
        assert name in done.stdout


@pytest.mark.slow
def test_what_there_is_no_time_for_is_left_out(tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    options = ["--device", "cpu", "--tiny", "--parts", "small-vocabulary", "--limit", "0", "--output", str(found)]
    command = [sys.executable, str(ROOT / "benchmarks" / "large_base.py"), *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    sides = json.loads(found.read_text(encoding="utf-8"))["parts"]["small-vocabulary"]
    assert all(side["error"].startswith("left out") for side in sides.values())


@pytest.mark.slow
def test_every_command_at_a_tiny_size(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("babel")
    options = ["--work", str(tmp_path / "work"), "--tiny", "--threads", "1", "--translated", "2", "--steps", "2", "--json"]
    command = [sys.executable, str(ROOT / "benchmarks" / "large_on_cpu.py"), *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT / "benchmarks")))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, (done.stderr, (tmp_path / "work" / "output.log").read_text(encoding="utf-8"))
    commands = json.loads(done.stdout)["commands"]
    assert len(commands) == 7 and [*commands][::6] == ["import", "verify"]
    assert all(one["exit_code"] == 0 and one["peak_gb"] > 0 for one in commands.values())
