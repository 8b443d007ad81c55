"""The training benchmark runs, on a tiny model and made-up text, and measures both sides."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "training.py"


@pytest.mark.slow
def test_the_benchmark_measures_both_sides_on_the_same_pairs() -> None:
    options = "--size tiny --vocabulary 1200 --merges 300 --lines 300 --batch-tokens 512 --steps 1 --warm-up 1"
    command = [sys.executable, str(SCRIPT), *options.split(), "--device", "cpu", "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    sides = json.loads(run.stdout)["sides"]
    assert [side["side"].partition(",")[0] for side in sides] == ["Hugging Face", "graftmt", "graftmt", "graftmt"]
    assert all(side["pairs_per_second"] > 0 for side in sides)
    theirs, full, source, target = (side["trained_parameters"] for side in sides)
    assert theirs == full > target > source
