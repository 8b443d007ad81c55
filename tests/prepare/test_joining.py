"""Joined corpora: every line of every source is accounted for, once, and can be traced to where it was."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from graftmt.cli.app import app
from graftmt.data.corpus import Corpus
from graftmt.errors import ConfigError, DataError, LanguageError
from graftmt.prepare.joining import Part, join, open_part, open_parts
from graftmt.prepare.source import Line, Source


def part(
    name: str, lines: list[Line], languages: tuple[str, ...] = ("ca", "en"), weight: float = 1.0, **more: list[Line]
) -> Part:
    splits = {"train": lines, **more}
    return Part(
        name=name,
        weight=weight,
        splits={split: Source(name, languages, lambda text=text: iter(text)) for split, text in splits.items()},  # type: ignore[misc]
    )


def read(folder: Path, split: str, name: str) -> list[str]:
    return (folder / f"{split}.{name}.txt").read_text(encoding="utf-8").splitlines()


def test_lines_are_there_once_and_say_where_they_came_from(tmp_path: Path) -> None:
    one = part("one", [("casa", "house"), ("gos", "dog"), ("casa", "house")])
    two = part("two", [("dog", "gos"), ("cat", "gat"), ("house", "casa  ")], ("en", "ca"))
    made = join([one, two], tmp_path / "all")
    assert read(tmp_path / "all", "train", "ca") == ["casa", "gos", "gat"]
    assert read(tmp_path / "all", "train", "en") == ["house", "dog", "cat"]
    assert read(tmp_path / "all", "train", "source") == ["one:1", "one:2", "two:2"]
    assert made["sources"][1] == {
        "name": "two",
        "weight": 1.0,
        "read": {"train": 3},
        "duplicates": {"train": 2},
        "written": {"train": 1},
    }
    document = json.loads((tmp_path / "all" / "corpus.json").read_text(encoding="utf-8"))
    assert document["sources"] == made["sources"] and document["languages"] == {"train": ["ca", "en"]}
    assert Corpus.open(tmp_path / "all", "train").languages == ("ca", "en")
    join([one], tmp_path / "all")  # what it wrote, it may replace


def test_languages_that_a_source_lacks_are_empty(tmp_path: Path) -> None:
    join([part("a", [("casa", "house")]), part("b", [("maison", "house")], ("fr", "en"))], tmp_path / "all")
    assert [read(tmp_path / "all", "train", code) for code in ("ca", "en", "fr")] == [
        ["casa", ""],
        ["house", "house"],
        ["", "maison"],
    ]


def test_what_one_holds_out_nobody_trains_on(tmp_path: Path) -> None:
    one = part("one", [("casa", "house"), ("gos", "dog")])
    two = part("two", [("gat", "cat")], valid=[("gos", "dog")], test=[("ull", "eye")])
    made = join([one, two], tmp_path / "all")
    assert read(tmp_path / "all", "train", "ca") == ["casa", "gat"]
    assert read(tmp_path / "all", "valid", "source") == ["two:1"]
    assert made["sources"][0]["held_out"] == {"train": 1}


def test_weights_repeat_or_sample_training_lines(tmp_path: Path) -> None:
    lines: list[Line] = [(f"línia {number}", f"line {number}") for number in range(400)]
    join([part("three", lines[:3], weight=3, valid=[("v", "w")])], tmp_path / "a")
    assert Counter(read(tmp_path / "a", "train", "ca")) == {f"línia {number}": 3 for number in range(3)}
    assert read(tmp_path / "a", "valid", "ca") == ["v"]
    join([part("quarter", lines, weight=0.25)], tmp_path / "b")
    quarter = read(tmp_path / "b", "train", "ca")
    assert 60 < len(quarter) < 140 and len(set(quarter)) == len(quarter)
    join([part("other name", lines, weight=0.25)], tmp_path / "c")
    assert read(tmp_path / "c", "train", "ca") == quarter  # the text decides


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), min_size=1, max_size=12), min_size=1, max_size=4
    )
)
def test_every_line_is_written_or_a_duplicate(tmp_path_factory: pytest.TempPathFactory, texts: list[list[Line]]) -> None:
    folder = tmp_path_factory.mktemp("join") / "all"
    made = join([part(f"p{number}", lines) for number, lines in enumerate(texts)], folder)
    everything = [line for lines in texts for line in lines]
    written = list(zip(read(folder, "train", "ca"), read(folder, "train", "en"), strict=True))
    assert written == list(dict.fromkeys(everything))
    for found, lines in zip(made["sources"], texts, strict=True):
        total = found.get("written", {}).get("train", 0) + found.get("duplicates", {}).get("train", 0)
        assert found["read"]["train"] == len(lines) == total
    for origin, line in zip(read(folder, "train", "source"), written, strict=True):
        name, number = origin.split(":")
        assert texts[int(name[1:])][int(number) - 1] == line


def test_files_and_folders_in_one_command(tmp_path: Path) -> None:
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "train.en.txt").write_text("The house\nThe dog\n", encoding="utf-8")
    (tmp_path / "books" / "train.ca.txt").write_text("La casa\nEl gos\n", encoding="utf-8")
    (tmp_path / "table.tsv").write_text("en\tca\nThe cat\tEl gat\nThe dog\tEl gos\n", encoding="utf-8")
    (tmp_path / "memory.tmx").write_text(
        '<?xml version="1.0"?><tmx version="1.4"><header/><body><tu><tuv xml:lang="en"><seg>The eye</seg></tuv>'
        '<tuv xml:lang="ca"><seg>L’ull</seg></tuv></tu></body></tmx>',
        encoding="utf-8",
    )
    sources = [str(tmp_path / "books"), f"{tmp_path / 'table.tsv'}@2", str(tmp_path / "memory.tmx")]
    result = CliRunner().invoke(
        app, ["prepare", "join", *sources, "-o", str(tmp_path / "all"), "-l", "en,ca"], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    assert read(tmp_path / "all", "train", "ca") == ["La casa", "El gos", "El gat", "El gat", "L’ull"]
    assert "2 lines read, weight 2, 1 duplicates left out, 2 written" in " ".join(result.stdout.split())


def test_the_sides_of_line_aligned_files_are_one_source(tmp_path: Path) -> None:
    for name, text in {"a.en": "The eye\n", "a.ca": "L’ull\n", "b.ca": "El gos\n", "b.en": "The dog\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    sides = [str(tmp_path / name) for name in ("a.en", "a.ca", "b.ca@2", "b.en@2")]
    result = CliRunner().invoke(app, ["prepare", "join", *sides, "-o", str(tmp_path / "all")], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert read(tmp_path / "all", "train", "ca") == ["L’ull", "El gos", "El gos"]
    assert read(tmp_path / "all", "train", "en") == ["The eye", "The dog", "The dog"]
    with pytest.raises(DataError, match="name the other one next to it"):
        open_parts([sides[0], sides[2]])


def test_what_cannot_be_joined_says_why(tmp_path: Path) -> None:
    (tmp_path / "table.tsv").write_text("en\tca\nThe cat\tEl gat\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="--languages en,ca"):
        open_part(str(tmp_path / "table.tsv"))
    with pytest.raises(ConfigError, match="weight is 0"):
        open_part(f"{tmp_path / 'table.tsv'}@0")
    with pytest.raises(DataError, match="no corpus folder and no file"):
        open_part(str(tmp_path / "nothing"), ["en", "ca"])
    (tmp_path / "books").mkdir()
    for code in ("en", "ca"):
        (tmp_path / "books" / f"train.{code}.txt").write_text("x\n", encoding="utf-8")
    with pytest.raises(LanguageError, match="expected two or more of en, fr"):
        open_part(str(tmp_path / "books"), ["en", "fr"])
    with pytest.raises(DataError, match="holds what is to be read"):
        join([open_part(str(tmp_path / "books"))], tmp_path / "books")
