"""The benchmark of the alignment runs, and its JSON says what the table shows; its figures are not tested."""

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
def test_the_benchmark_runs_on_few_pairs(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    options = [
        "--pairs",
        "4000",
        "2000",
        "--compared",
        "3000",
        "--threads",
        "1",
        "--memory",
        "200MB",
        "--folder",
        str(tmp_path),
    ]
    command = [sys.executable, str(ROOT / "benchmarks" / "alignment.py"), *options, "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["benchmark"] == "alignment"
    assert report["compared_pairs"] == 3000
    assert [run["pairs"] for run in report["runs"]] == [2000, 4000]
    for run in report["runs"]:
        assert run["pairs"] > run["lines"] + run["repeated"] > 0
        assert run["left_over_bytes"] == 0
        assert run.keys() >= {"pairs_per_second", "peak_memory_mb", "peak_temporary_gb", "output_gb", "processor_seconds"}
    assert report["extrapolation"]["pairs"] == 450_300_000
    assert report["extrapolation"]["exponent"] >= 1
    assert list(tmp_path.iterdir()) == []
