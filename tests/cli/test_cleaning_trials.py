"""What a new user met with Catalan: each mistake as a script, with the result that it should have had."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graftmt.cli.app import app
from graftmt.demo.phrase_corpus import build_corpus

pytestmark = pytest.mark.slow
pytest.importorskip("babel")
pytest.importorskip("py3langid")


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def write(folder: Path, lines: list[tuple[str, str]]) -> Path:
    folder.mkdir()
    for place, code in enumerate(("en", "ca")):
        (folder / f"train.{code}.txt").write_text("".join(f"{line[place]}\n" for line in lines), encoding="utf-8")
    return folder


def phrases(language: str, lines: int = 3_000) -> list[tuple[str, str]]:
    made = build_corpus(("en", language), train_lines=lines, valid_lines=0, test_lines=0)["train"]
    return list(zip(made["en"], made[language], strict=True))


def test_three_thousand_perfect_short_phrases_stay(tmp_path: Path) -> None:
    corpus = write(tmp_path / "perfect", phrases("ca"))
    result = run("prepare", "clean", corpus, "-o", tmp_path / "clean", "--json")
    lines = json.loads(result.stdout)["splits"]["train"]["lines"]
    assert lines["read"] == 3_000 and lines["kept"] >= 0.97 * 3_000
    assert "warning" not in result.stderr


def test_wrong_lines_among_them_go(tmp_path: Path) -> None:
    chance = random.Random(1)
    good = phrases("ca")
    right = {text for _, text in good}
    codes = ("de", "fr", "pl", "ru", "ja", "el", "hu", "tr", "ko", "ar")
    foreign = [text for code in codes for _, text in phrases(code, 30) if text not in right]
    wrong = [(chance.choice(good)[0], text) for text in foreign]
    corpus = write(tmp_path / "mixed", chance.sample([*good, *wrong], len(good) + len(wrong)))
    run("prepare", "clean", corpus, "-o", tmp_path / "clean", "--json")
    kept = set((tmp_path / "clean" / "train.ca.txt").read_text(encoding="utf-8").splitlines())
    assert sum(text in kept for text in foreign) <= 0.05 * len(foreign)
    assert sum(text in kept for text in right) >= 0.97 * len(right)


def test_a_file_that_is_not_catalan_is_a_loud_warning(tmp_path: Path) -> None:
    corpus = write(tmp_path / "spanish", phrases("es", 1_000))
    result = run("prepare", "clean", corpus, "--preview", "--force")
    assert "warning: train: the rule language_id dropped" in result.stderr
    assert "nothing was written" in result.stdout


def test_sources_of_all_kinds_become_one_clean_corpus(tmp_path: Path) -> None:
    lines = phrases("ca", 600)
    first = write(tmp_path / "first", lines[:300])
    table = "".join(f"{english}\t{catalan}\n" for english, catalan in lines[200:])
    (tmp_path / "messy.tsv").write_text("en\tca\n" + table, encoding="utf-8")
    run("prepare", "join", first, tmp_path / "messy.tsv", "-o", tmp_path / "all", "-l", "en,ca")
    assert len((tmp_path / "all" / "train.ca.txt").read_text(encoding="utf-8").splitlines()) == 600
    run("prepare", "clean", tmp_path / "all", "-o", tmp_path / "clean", "--json")
    assert len((tmp_path / "clean" / "train.ca.txt").read_text(encoding="utf-8").splitlines()) >= 582
