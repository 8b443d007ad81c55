"""The benchmark of the data loader runs, and its JSON says what the table shows; its figures are not tested."""

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
def test_the_benchmark_runs_on_a_tiny_corpus() -> None:
    corpus = ["--languages", "3", "--lines", "200", "--merges", "100"]
    batches = ["--views", "multi-parallel", "--batch-tokens", "300", "--seconds", "0.01"]
    command = [sys.executable, str(ROOT / "benchmarks" / "data_loading.py"), *corpus, *batches, "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["benchmark"] == "data_loading"
    assert report["tokenising"].keys() >= {"lines_per_second", "tokens_per_second", "lines", "tokens", "seconds"}
    loaders = [row["loader"] for row in report["loading"]]
    assert len(loaders) == len(set(loaders)) == 4
    assert {loader.partition(",")[0] for loader in loaders} == {"graftmt", "DataLoader"}
    for row in report["loading"]:
        assert row["view"] == "multi-parallel"
        assert row["target_tokens_per_second"] > 0
        assert 0 <= row["padding_share"] < 1
        assert 0 < row["target_tokens_per_batch"] <= row["batch_tokens"] == 300
        assert row.keys() >= {"planning_seconds", "pool_batches", "peak_memory_mb", "batches_per_second"}
