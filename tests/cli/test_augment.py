"""`graftmt augment`: the options reach the work, the table and the JSON say what was made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def augment(graftmt: Callable[..., Any], graft_base: Callable[..., Path], graft_corpus: Path, tmp_path: Path) -> Any:
    """`augment("--spec", "20-bt")`: for Greek, into tmp_path/out."""
    fixed = ["-b", str(graft_base()), "--train", str(graft_corpus), "-o", str(tmp_path / "out"), "--device", "cpu"]
    return lambda *options: graftmt("augment", "el", *fixed, *options)


def test_json_says_what_was_made(augment: Any, tmp_path: Path) -> None:
    result = augment("--spec", "20 lines per lang (BT)", "--beam", "2", "--languages", "fr", "--json", "-q")
    assert (result.code, result.stderr) == (0, "")
    made = json.loads(result.stdout)
    assert made["folder"] == str(tmp_path / "out")
    assert (made["spec"], made["title"]) == ("20-bt", "20 lines per lang (BT)")
    assert made["languages"]["fr"]["chosen"] == made["translated_now"] == 20
    document = json.loads((tmp_path / "out" / "corpus.json").read_text(encoding="utf-8"))
    assert document["augmentation"]["beam"] == 2
    assert {path.name for path in (tmp_path / "out").glob("train.*")} == {"train.el.txt", "train.en.txt", "train.fr.txt"}


@pytest.mark.slow
def test_people_get_a_table_progress_and_what_to_do_next(augment: Any, tmp_path: Path) -> None:
    result = augment("--spec", "20-bt", "--chunk", "7")
    assert result.code == 0
    assert "lines/s" in result.stderr and "40/40" in result.stderr
    assert f"--train {tmp_path / 'out'} --with all" in result.stdout
    assert "el-en 300" in result.stdout
    again = augment("--spec", "20-bt", "--chunk", "7")
    assert "It was there already" in again.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--spec", "many"], "augmentation 'many' is not known"),
        (["--spec", "20", "--languages", "de"], "'de' is not one of the base's languages"),
        (["--spec", "20-bt", "--beam", "0"], "beam"),
        (["--spec", "20-bt", "--workers", "2"], "add --engine ray"),
        (["--spec", "20-bt", "--teacher", "nowhere"], "there is no base folder nowhere"),
    ],
)
def test_errors_are_one_paragraph(augment: Any, tmp_path: Path, options: list[str], message: str) -> None:
    result = augment(*options)
    assert result.code == 1
    assert result.stderr.count("\n") == 1 and message in result.stderr
    assert not (tmp_path / "out").exists()


def test_help_has_examples(graftmt: Callable[..., Any]) -> None:
    help_text = " ".join(graftmt("augment", "--help").stdout.split())
    assert "Example" in help_text and "--spec 1k-bt" in help_text
