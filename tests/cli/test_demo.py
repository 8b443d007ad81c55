"""`graftmt demo` on the command line: what it prints, as a table and as JSON, and how it stops."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from graftmt.demo.phrase_corpus import BASE_LANGUAGES, NEW_LANGUAGES, write_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cldr")
    write_corpus(folder, (*BASE_LANGUAGES, *NEW_LANGUAGES), train_lines=3000, valid_lines=10, test_lines=10)
    return folder


@pytest.mark.slow
def test_the_story_its_table_and_the_same_as_json(graftmt, tmp_path: Path, corpus: Path) -> None:
    folder = tmp_path / "demo"
    command = ("demo", "-f", str(folder), "--corpus", str(corpus), "--lines", "3", "--steps", "2", "--beam", "1")
    shown = graftmt(*command)
    assert shown.code == 0
    for number in range(2, 9):
        assert f"\n{number}. " in f"\n{shown.stderr}"
    for words in ("el → uk", "composition", "pivot through English", "unchanged, bit for bit", "graftmt translate"):
        assert words in shown.stdout
    quiet = graftmt(*command, "--quiet", "--json")
    assert (quiet.code, quiet.stderr) == (0, "")
    report = json.loads(quiet.stdout)
    assert report == json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert all(sample["direction"] in shown.stdout for sample in report["samples"])


@pytest.mark.slow
def test_interrupted_it_says_that_it_goes_on(start_graftmt, tmp_path: Path, corpus: Path) -> None:
    folder = tmp_path / "demo"
    command = ("demo", "-f", str(folder), "--corpus", str(corpus), "--lines", "1", "--beam", "1")
    with start_graftmt(*command, "--steps", "100000") as process:
        for line in process.stderr:
            if b"100,000 steps" in line:
                break
        process.send_signal(signal.SIGINT)
        remaining = process.stderr.read().decode()
    assert process.returncode == 130
    assert "Rerun the command to resume" in remaining
    assert list((folder / "runs" / "el-source" / "checkpoints").glob("stage1-step*"))
    assert not (folder / "report.json").exists()
