"""`graftmt compare`: a table, JSON, and one paragraph where there is nothing to compare."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def evaluated(graftmt: Callable[..., Any], toy_base: Path, toy_corpus: Path, tmp_path: Path) -> Callable[..., Path]:
    """`evaluated("greedy", "--beam", "1")`: the folder of an evaluation of two directions."""

    def run(name: str, *options: str) -> Path:
        common = ("-b", str(toy_base), "-c", str(toy_corpus), "-d", "en-xa,xb-en", "-q", "--no-off-target")
        assert graftmt("evaluate", *common, "-o", str(tmp_path / name), *options).code == 0
        return tmp_path / name

    return run


def test_two_evaluations_are_compared_as_a_table_and_as_json(graftmt, evaluated) -> None:
    folders = str(evaluated("greedy", "--beam", "1")), str(evaluated("beam", "--beam", "3") / "report.json")
    shown = graftmt("compare", *folders, "-n", "50", "-q")
    assert (shown.code, shown.stderr) == (0, "")
    for words in ("en-xa", "xb-en", "→EN (1)", "all (2)", "bs:50|seed:12345", "significant"):
        assert words in shown.stdout
    found = json.loads(graftmt("compare", *folders, "-n", "50", "--seed", "7", "--json", "-q").stdout)
    assert (found["resamples"], found["seed"], found["level"]) == (50, 7, 0.05)
    assert set(found["directions"]) == {"en-xa", "xb-en"}
    assert set(found["averages"]) == {"to_pivot", "from_pivot", "all"}
    for entry in found["directions"].values():
        assert entry["lines"] == 20
        assert set(entry["chrf"]) == {
            *("first", "second", "difference", "interval", "p", "significant"),
            "sacrebleu_p",
        }


def test_what_cannot_be_compared_is_one_paragraph_and_exit_code_1(graftmt, evaluated, tmp_path: Path) -> None:
    first, second = str(evaluated("all")), str(evaluated("few", "-n", "5"))
    result = graftmt("compare", first, second)
    assert (result.code, result.stdout) == (1, "")
    assert "20 lines against 5" in result.stderr and "Traceback" not in result.stderr
    assert "there is no file" in graftmt("compare", first, str(tmp_path)).stderr
    assert graftmt("compare", first, second, "--seed", "0").code == 2
