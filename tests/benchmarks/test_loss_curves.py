"""The benchmark of loss curves runs, on a tiny model and made-up text, and its ways agree."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE

import graftmt.demo

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "loss_curves.py"


@pytest.mark.slow
def test_ways_agree_without_dropout(tmp_path: Path) -> None:
    options = "--size tiny --merges 300 --lines 300 --batch-tokens 512 --steps 3 --dropout 0 --device cpu --json"
    ways = ["padded, fp32", "padded, bf16", "packed", "packed, recorded", "… dropout by a hash"]
    command = [sys.executable, str(SCRIPT), *options.split(), "--ways", *ways, "--plot", str(tmp_path / "curves.png")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    curves = [one["validation"] for one in json.loads(run.stdout)["runs"].values()]
    assert len(curves) == len(ways)
    assert curves[0][-1][1] < curves[0][0][1]
    assert [step for step, _ in curves[0]] == [1, 2, 3]
    for curve in curves[1:]:
        assert all(abs(loss - other) < 0.01 for (_, loss), (_, other) in zip(curve, curves[0], strict=True))
    assert (tmp_path / "curves.png").stat().st_size > 0


@pytest.mark.slow
def test_packs_train_in_several_ways_too(tmp_path: Path) -> None:
    base = Path(graftmt.demo.__file__).parent / "base"
    options = f"--base {base} --merges 300 --lines 300 --batch-tokens 512 --steps 3 --dropout 0 --device cpu --json"
    command = [sys.executable, str(SCRIPT), *options.split(), "--ways", "padded, fp32", "padded, bf16"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["pack"] == {"language": "el", "recipe": "embed + enc-first-layer"}
    first, second = (one["validation"] for one in report["runs"].values())
    assert first[-1][1] < first[0][1]
    assert all(abs(loss - other) < 0.02 for (_, loss), (_, other) in zip(first, second, strict=True))


@pytest.mark.slow
def test_a_way_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--device", "cpu", "--ways", "padded, base in bf16"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 2
    assert "no such way here: padded, base in bf16. There are: padded, fp32; padded, bf16" in run.stderr
