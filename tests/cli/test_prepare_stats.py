"""`graftmt prepare stats`: counts and sampling probabilities of a corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def test_a_corpus_is_counted(graftmt, toy_corpus: Path) -> None:
    shown = graftmt("prepare", "stats", str(toy_corpus))
    assert shown.code == 0, shown.stderr
    for words in ("X-EN lines", "X-* lines", "target prob. (english-centric, T=5)", "900"):
        assert words in shown.stdout
    facts = json.loads(graftmt("prepare", "stats", str(toy_corpus), "--text", "--json").stdout)
    assert facts["lines"] == 300
    assert facts["languages"]["xa"].keys() == {"lines", "pairs", "pivot_pairs", "words", "characters"}
    assert [sample["view"] for sample in facts["sampling"]] == ["english-centric", "multi-parallel"]
    assert facts["sampling"][1]["targets"] == pytest.approx(dict.fromkeys(("en", "xa", "xb", "xc"), 0.25))


def test_directions_can_have_fixed_probabilities(graftmt, toy_corpus: Path, tmp_path: Path) -> None:
    options = ["--directions", "multi-parallel", "--fixed", "en-xa=0.5", "--temperature", "2", "-o", str(tmp_path), "--json"]
    facts = json.loads(graftmt("prepare", "stats", str(toy_corpus), *options).stdout)
    drawn = facts["sampling"][0]["directions"]
    assert drawn.pop("en-xa") == pytest.approx(0.5)
    assert list(drawn.values()) == pytest.approx([0.5 / 11] * 11)
    assert {"statistics.md", "statistics.json"} <= {path.name for path in tmp_path.iterdir()}
    assert all(Path(path).is_file() for path in facts["files"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--fixed", "en-xa"], "write for instance en-el=0.05"),
        (["--fixed", "xa-xb=0.1"], "expected 0 or more, and a direction of those with lines"),  # not English-centric
        (["--temperature", "0"], "sampling temperature is 0"),
        (["--split", "dev"], "has no files of the split 'dev'"),
    ],
)
def test_what_cannot_be_counted_is_an_error(graftmt, toy_corpus: Path, options: list[str], words: str) -> None:
    result = graftmt("prepare", "stats", str(toy_corpus), *options)
    assert result.code == 1
    assert words in result.stderr
