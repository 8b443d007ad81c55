"""Benchmarks run, and their JSON has what a reader looks for; nothing is timed here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE

ROOT = Path(__file__).parents[2]


def run(name: str, *options: str) -> str:
    command = [sys.executable, str(ROOT / "benchmarks" / name), *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "COLUMNS": "400"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_decoding() -> None:
    pytest.importorskip("transformers")
    size = ["--size", "tiny", "--vocabulary", "200", "--sentences", "6", "--length", "8", "--batch", "4", "--repeats", "1"]
    report = json.loads(run("decoding.py", *size, "--threads", "1", "--json"))
    assert report.keys() >= {"benchmark", "size", "parameters", "vocabulary", "sentences", "device", "threads", "seed"}
    assert report["versions"].keys() >= {"graftmt", "torch", "transformers"}
    assert report["searches"].keys() == {"greedy", "beam 5"}
    for search in report["searches"].values():
        assert search["identical"] == search["ended"] == 1.0
        assert search["ratio"] > 0
        for side in ("graftmt", "hugging_face"):
            assert search[side]["tokens_per_second"] > search[side]["sentences_per_second"] > 0
            assert search[side].keys() >= {"seconds", "batch", "peak_memory_mb", "output_tokens"}


def benchmarks_of_make() -> list[str]:
    shown = subprocess.run(["make", "-n", "-s", "bench"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(set(re.findall(r"benchmarks/(\w+\.py)", shown)))


def test_make_bench_runs_all_but_those_for_a_gpu() -> None:
    every = {path.name for path in (ROOT / "benchmarks").glob("*.py")}
    assert every - set(benchmarks_of_make()) == {"foreign_base.py", "foreign_text.py", "large_base.py"}


@pytest.mark.slow
@pytest.mark.parametrize("name", benchmarks_of_make())
def test_make_bench_can_run_every_one_without_arguments(name: str) -> None:
    shown = run(name, "--help")
    usage = shown.partition("\n\n")[0].removeprefix("usage: ")
    while "[" in usage:  # from the inside out: what may be left out
        usage = re.sub(r"\[[^\[\]]*\]", "", usage)
    assert usage.split() == [name], f"{name} needs {usage}"


@pytest.mark.slow
def test_language_id_makes_text_of_its_own() -> None:
    pytest.importorskip("py3langid")
    pytest.importorskip("babel")
    report = json.loads(run("language_id.py", "--lines", "60", "--trusted-split", "valid", "--json"))
    assert report["corpus"] == "the demo's" and "made from CLDR" in report["note"]
    assert report["filters"].keys() == {"closed set", "open set", "n-grams"}
    for measured in report["filters"].values():
        assert measured["languages"].keys() == {"en", "fr", "de", "es", "ru", "el", "uk"}
        assert measured["languages"]["el"]["wrong_dropped"] == 1  # no other language here has its script


@pytest.mark.slow
def test_misalignment_makes_text_of_its_own() -> None:
    pytest.importorskip("babel")
    report = json.loads(run("misalignment.py", "--sizes", "1000", "--tries", "6", "--json"))
    assert [row["kind"] for row in report["rows"]] == ["clean", "shifted", "shuffled", "exchanged"]
    for row in report["rows"][:3]:
        assert row["right"] == row["tries"] == 6


@pytest.mark.slow
def test_language_id_of_two_languages_says_before_and_after() -> None:
    pytest.importorskip("py3langid")
    pytest.importorskip("babel")
    report = json.loads(run("language_id.py", "--two-languages", "--lines", "60", "--json"))
    measured = report["kinds"]["CLDR phrases"]["languages"]
    assert measured.keys() == {"fr", "de", "es", "ru", "el", "uk"}
    for row in measured.values():
        assert row["good"] == 60 and row["wrong"] == 7
        for when in ("before", "after"):
            assert 0 <= row[when]["wrong_dropped"] <= 1 and 0.5 < row[when]["good_kept"] <= 1
