"""A seeded sample of every attack finds nothing. `make robustness` runs all, and docs/reliability.md says what that proves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import graftmt
from robustness.attacks import COUNTS

PLACES = (Path(graftmt.__file__).parents[1], Path(__file__).parents[1], Path(__file__).parents[2] / "benchmarks")


@pytest.mark.slow
def test_a_sample_of_every_attack_finds_nothing(tmp_path: Path) -> None:
    """In a process of its own: cases are forked from it, which a process with many tests behind it is too large for."""
    output = tmp_path / "counts.json"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, PLACES)), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "robustness", "--sample", "--processes", "1", "--output", str(output)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    kinds = json.loads(output.read_text(encoding="utf-8"))["kinds"]
    assert {kind: found["cases"] for kind, found in kinds.items()} == {kind: sample for kind, (_, sample) in COUNTS.items()}
