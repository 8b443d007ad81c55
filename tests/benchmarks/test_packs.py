"""The benchmark of packs runs, compares like with like, and says whether its aims are met; its figures are not tested."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE

ROOT = Path(__file__).parents[2]
SIDES = ["source: embed", "target: embed", "target: replaced layer", "target: parallel adapters"]


def run(*options: str) -> str:
    size = ["--runs", "2", "--lines", "3", "--tokens", "4", "--threads", "1"]
    command = [sys.executable, str(ROOT / "benchmarks" / "packs.py"), *size, *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return dict(json.loads(run("--json")))


@pytest.mark.slow
def test_a_first_line_has_its_parts_and_a_verdict(report: dict[str, Any]) -> None:
    assert list(report["first_line"]) == list(report["swap"]) == SIDES
    for row in report["first_line"].values():
        assert row["parts"].keys() == {"load", "compose", "translate"}
        assert row["worst_ms"] >= row["ms"] > max(row["parts"].values()) / 2 > 0
        assert row["aim_met"] == (row["ms"] <= report["aims"]["first_line_ms"])


@pytest.mark.slow
def test_every_side_reads_and_writes_as_many_tokens(report: dict[str, Any]) -> None:
    assert [search["beam"] for search in report["speed"]] == [1, 5]
    for search in report["speed"]:
        assert (search["lines"], search["output_tokens"]) == (3, 3 * 4)
        both = ["source and target composed", "the same two through English"]
        assert list(search["sides"]) == ["base", "base again", *SIDES, f"{SIDES[-1]}, unfolded", *both]
        composed, pivot = (search["sides"][name]["tokens_per_second"] for name in both)
        assert composed > pivot
        assert search["sides"]["base"]["time_by_base"] == 1
        for name in SIDES:
            side = search["sides"][name]
            assert side["tokens_per_second"] > 0
            assert side["aim_met"] == (side["time_by_base"] <= report["aims"]["slower"]) or side["time_by_base"] == 1.05


@pytest.mark.slow
def test_the_table_has_a_row_for_each_and_random_weights_have_no_aim_for_the_first_line() -> None:
    printed = run("--size", "tiny", "--clock", "cpu")
    assert all(printed.count(name) >= 4 for name in SIDES)
    first, _, rest = printed.partition("swap:")
    assert not any(line.endswith("met") for line in first.lower().splitlines())
    assert any(line.endswith("met") for line in rest.lower().splitlines())
