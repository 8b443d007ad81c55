"""The benchmark of engines runs on few lines, and says of each whether it gives what graftmt gives."""

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
def test_the_benchmark_runs_on_few_lines(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("in 3 days\n5 kilometers per hour\nMarch and April\n")
    base = ROOT / "src" / "graftmt" / "demo" / "base"
    options = [str(base), "-s", "en", "-t", "fr", "-i", str(tmp_path / "lines.txt"), "--threads", "1", "--json"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "engines.py"), *options],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["benchmark"] == "engines" and report["lines"] == 3
    names = [run["engine"] for run in report["runs"]]
    assert names[:2] == ["graftmt fp32", "graftmt int8"] and names[-1] == "Hugging Face fp32" and len(names) == 5
    assert all(run["same_lines"] == 3 for run in report["runs"] if "int8" not in run["engine"])
