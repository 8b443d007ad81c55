"""Benchmarks run, and their JSON has what a reader looks for; nothing is timed here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_decoding() -> None:
    pytest.importorskip("transformers")
    size = ["--size", "tiny", "--vocabulary", "200", "--sentences", "6", "--length", "8", "--batch", "4", "--repeats", "1"]
    command = [sys.executable, str(ROOT / "benchmarks" / "decoding.py"), *size, "--threads", "1", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report.keys() >= {"benchmark", "size", "parameters", "vocabulary", "sentences", "device", "threads", "seed"}
    assert report["versions"].keys() >= {"graftmt", "torch", "transformers"}
    assert report["searches"].keys() == {"greedy", "beam 5"}
    for search in report["searches"].values():
        assert search["identical"] == search["ended"] == 1.0
        assert search["ratio"] > 0
        for side in ("graftmt", "hugging_face"):
            assert search[side]["tokens_per_second"] > search[side]["sentences_per_second"] > 0
            assert search[side].keys() >= {"seconds", "batch", "peak_memory_mb", "output_tokens"}
