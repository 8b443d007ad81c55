"""`graftmt prepare split`: valid and test out of a corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graftmt.data import Corpus


def test_a_corpus_is_split(graftmt, toy_corpus: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    result = graftmt("prepare", "split", str(toy_corpus), "-o", str(output), "--valid", "5", "--test", "4", "--seed", "3")
    assert result.code == 0, result.stderr
    assert f"{output}/valid.*.txt: 5 lines in en, xa, xb, xc" in result.stdout
    assert "9 lines held out" in result.stdout
    for name, lines in (("valid", 5), ("test", 4)):
        corpus = Corpus.open(output, name)
        assert all(len(list(filter(None, texts))) == lines for texts in corpus.texts(corpus.languages).values())


def test_each_direction_can_have_its_own_pairs(graftmt, toy_corpus: Path, tmp_path: Path) -> None:
    options = ["--valid", "7", "--test", "0", "--per-direction", "--no-train", "--languages", "en,xa,xb", "--json"]
    result = graftmt("prepare", "split", str(toy_corpus), "-o", str(tmp_path / "out"), *options)
    facts = json.loads(result.stdout)
    assert facts["lines"] == {"valid": 21}
    assert facts["languages"] == ["en", "xa", "xb"]


def test_what_is_written_is_kept_clear_of_other_splits(graftmt, toy_corpus: Path, tmp_path: Path) -> None:
    options = ["--valid", "0", "--test", "0", "--clear-of", str(toy_corpus), "--json"]
    facts = json.loads(graftmt("prepare", "split", str(toy_corpus), "-o", str(tmp_path / "out"), *options).stdout)
    held_out = {line for name in ("valid", "test") for line in Corpus.open(toy_corpus, name).lines("en")}
    kept = [line for line in Corpus.open(toy_corpus, "train").lines("en") if line not in held_out]
    assert facts["lines"] == {"train": len(kept)}
    assert list(Corpus.open(tmp_path / "out", "train").lines("en")) == kept


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--valid", "1000"], "too few that differ"),
        (["--languages", "en,xz"], "no train text for language 'xz'"),
        (["--split", "dev"], "has no files of the split 'dev'"),
        (["--directions", "en-xa"], "add --per-direction"),
    ],
)
def test_what_cannot_be_split_is_an_error(graftmt, toy_corpus: Path, tmp_path: Path, options: list[str], words: str) -> None:
    result = graftmt("prepare", "split", str(toy_corpus), "-o", str(tmp_path / "out"), *options)
    assert result.code == 1
    assert words in result.stderr
    assert not (tmp_path / "out").exists()
