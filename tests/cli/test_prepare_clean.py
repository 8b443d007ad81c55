"""`graftmt prepare clean` from a folder to a folder: the report, the table, the splits it leaves alone, and its errors."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from graftmt.augmentation import chunk_workers
from graftmt.cli.prepare_clean import clean
from graftmt.errors import ConfigError, DataError
from graftmt.prepare import cleaning

app = typer.Typer()
app.command()(clean)

ENGLISH = "The quick brown fox jumps over the lazy dog number {}."
FRENCH = "Le rapide renard brun saute par-dessus le chien paresseux numéro {}."


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    english = [ENGLISH.format(number) for number in range(6)]
    french = [FRENCH.format(number) for number in range(6)]
    french[1] = "Keep the windows closed while the engine is running."
    french[2] = english[2]
    for split, lines in (("train", 6), ("valid", 3)):
        (folder / f"{split}.en.txt").write_text("\n".join(english[:lines]) + "\n", encoding="utf-8")
        (folder / f"{split}.fr.txt").write_text("\n".join(french[:lines]) + "\n", encoding="utf-8")
    (folder / "train.source.txt").write_text("where lines are from\n" * 6, encoding="utf-8")
    (folder / "README.md").write_text("hello\n", encoding="utf-8")
    return folder


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_folder_in_and_a_folder_out_with_a_report(corpus: Path, tmp_path: Path) -> None:
    output = tmp_path / "clean"
    shown = run(corpus, "-o", output)
    assert (output / "train.en.txt").read_text(encoding="utf-8").splitlines() == [ENGLISH.format(n) for n in (0, 3, 4, 5)]
    assert (output / "train.fr.txt").read_text(encoding="utf-8").splitlines() == [FRENCH.format(n) for n in (0, 3, 4, 5)]
    assert (output / "valid.fr.txt").read_bytes() == (corpus / "valid.fr.txt").read_bytes()
    report = json.loads((output / "report.json").read_text(encoding="utf-8"))
    assert report["copied"] == ["valid"]
    assert report["splits"]["train"]["dropped"] == {"copies": {"fr": 1}, "language_id": {"fr": 1}, "alone": {"en": 2}}
    assert report["splits"]["train"]["examples"]["language_id"][0]["why"] == "en"
    plain = re.sub(r"\s+", " ", shown)
    assert "train: 4 of 6 lines kept" in plain
    assert "dropped: language_id" in plain
    assert re.search(r"py3langid, among en, fr and \d+ likely languages", plain)


@pytest.mark.slow
def test_json_is_the_report(corpus: Path, tmp_path: Path) -> None:
    output = tmp_path / "clean"
    printed = json.loads(run(corpus, "-o", output, "--split", "train,valid", "--processes", "2", "--json"))
    assert printed == json.loads((output / "report.json").read_text(encoding="utf-8"))
    assert printed["copied"] == []
    assert printed["splits"]["valid"]["lines"] == {"read": 3, "kept": 1, "dropped": {"alone": 2}}


def test_rules_can_be_chosen(corpus: Path, tmp_path: Path) -> None:
    report = json.loads(run(corpus, "-o", tmp_path / "a", "--no-language-id", "--json"))
    assert report["splits"]["train"]["dropped"].keys() == {"copies", "alone"}
    report = json.loads(run(corpus, "-o", tmp_path / "b", "--rules=-copies,-language_id", "--json"))
    assert report["splits"]["train"]["dropped"] == {}
    report = json.loads(run(corpus, "-o", tmp_path / "c", "--rules", "too_long,empty", "--max-length", "55", "--json"))
    assert report["splits"]["train"]["dropped"]["too_long"] == {"fr": 4}


def test_trusted_text_is_read_from_files(corpus: Path, tmp_path: Path) -> None:
    for language, line in (("en", ENGLISH), ("fr", FRENCH)):
        (tmp_path / f"{language}.txt").write_text("\n".join([line.format("")] * 60), encoding="utf-8")
    trusted = ["--trusted", f"en={tmp_path / 'en.txt'}", "--trusted", f"fr={tmp_path / 'fr.txt'}"]
    report = json.loads(run(corpus, "-o", tmp_path / "clean", *trusted, "--rules", "language_id", "--json"))
    assert report["splits"]["train"]["dropped"]["language_id"] == {"fr": 2}
    assert report["splits"]["train"]["language_id"]["fr"] == "n-gram classifier, among en, fr"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["--split", "trian"], DataError, "no split 'trian'; did you mean 'train'"),
        (["--trusted", "kab"], ConfigError, "'kab' is not LANG=FILE"),
        (["--trusted", "kab=nowhere.txt"], DataError, "no file nowhere.txt"),
        (["--rules", "dedup"], ConfigError, "there is no rule 'dedup'"),
        (["--reference", "de"], Exception, "reference language 'de'"),
    ],
)
def test_errors_say_what_is_wrong_and_write_nothing(
    corpus: Path, tmp_path: Path, arguments: list[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run(corpus, "-o", tmp_path / "clean", *arguments)
    assert not (tmp_path / "clean").exists()


def test_the_output_replaces_nothing_but_a_corpus(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds what is to be read"):
        run(corpus, "-o", corpus)
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(DataError, match=r"not a corpus \(thesis\.txt\), and stays as it is"):
        run(corpus, "-o", other)
    run(corpus, "-o", tmp_path / "clean")
    run(corpus, "-o", tmp_path / "clean", "--no-language-id")
    assert len((tmp_path / "clean" / "train.en.txt").read_text(encoding="utf-8").splitlines()) == 5


def test_a_corpus_that_holds_the_input_or_something_else_stays(corpus: Path, tmp_path: Path) -> None:
    both = tmp_path / "both"
    run(corpus, "-o", both)
    shutil.copytree(corpus, both / "raw")
    with pytest.raises(DataError, match="holds what is to be read"):
        run(both / "raw", "-o", both)
    with pytest.raises(DataError, match=r"with other things in it \(raw\)"):
        run(corpus, "-o", both)
    shutil.rmtree(both / "raw")
    (both / "el.txt").write_text("text\n", encoding="utf-8")
    with pytest.raises(DataError, match="holds what is to be read"):
        run(corpus, "-o", both, "--trusted", f"el={both / 'el.txt'}")
    assert {path.name for path in both.iterdir()} >= {"el.txt", "train.en.txt", "report.json"}


def test_a_copied_split_is_copied_or_an_error_that_names_the_line(corpus: Path, tmp_path: Path) -> None:
    lines = (corpus / "valid.fr.txt").read_bytes().splitlines()
    (corpus / "valid.fr.txt").write_bytes(b"\n".join([lines[0], "numéro".encode("latin-1"), lines[2]]) + b"\n")
    with pytest.raises(DataError, match=r"valid\.fr\.txt, line 2: not valid UTF-8"):
        run(corpus, "-o", tmp_path / "clean")
    assert not (tmp_path / "clean").exists()
    run(corpus, "-o", tmp_path / "clean", "--split", "train,valid")


def test_what_is_wrong_with_a_copied_split_is_found_before_anything_is_cleaned(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaned: list[Any] = []
    monkeypatch.setattr(cleaning, "clean_chunk", lambda chunk, *rest: cleaned.append(chunk) or (chunk, cleaning.Counts()))
    (corpus / "valid.fr.txt").write_bytes(b"one\n" + "numéro\n".encode("latin-1") + b"three\n")
    with pytest.raises(DataError, match=r"valid\.fr\.txt, line 2: not valid UTF-8"):
        run(corpus, "-o", tmp_path / "clean")
    for language in ("en", "fr"):
        (corpus / f"valid.{language}.txt").write_bytes(b"")
    with pytest.raises(DataError, match="has no lines for the split 'valid'"):
        run(corpus, "-o", tmp_path / "clean")
    assert cleaned == []


def test_reports_keep_the_splits_in_order(corpus: Path, tmp_path: Path) -> None:
    for language in ("en", "fr"):
        for split in ("dev", "extra", "test"):
            shutil.copy(corpus / f"train.{language}.txt", corpus / f"{split}.{language}.txt")
    shown = run(corpus, "-o", tmp_path / "clean", "--split", "valid,train,extra")
    report = json.loads((tmp_path / "clean" / "report.json").read_text(encoding="utf-8"))
    assert list(report["splits"]) == ["extra", "train", "valid"]
    assert report["copied"] == ["dev", "test"]
    assert re.findall(r"(\w+): \d of \d lines kept", shown) == ["extra", "train", "valid"]
    assert "copied: dev, test\n" in shown
    lines = json.loads((tmp_path / "clean" / "corpus.json").read_text(encoding="utf-8"))["lines"]
    assert lines == {"dev": 6, "extra": 4, "test": 6, "train": 4, "valid": 1}


def test_the_report_comes_with_the_corpus_or_neither(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends at any moment at which a file or folder takes its name."""

    class Killed(BaseException):
        pass

    def run_until(stop: int) -> None:
        writes = 0

        def replace_or_die(old: Any, new: Any, real: Callable[..., None] = os.replace) -> None:
            nonlocal writes
            writes += 1
            if writes == stop:
                raise Killed
            real(old, new)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", replace_or_die)
            run(corpus, "-o", tmp_path / "out" / "clean")

    for stop in range(1, 10):
        try:
            run_until(stop)
            break
        except Killed:
            assert list((tmp_path / "out").iterdir()) == []
    assert stop > 2
    assert (tmp_path / "out" / "clean" / "report.json").is_file()


def test_ray_gets_as_many_workers_as_processes_are_asked_for(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[chunk_workers.ChunkEngine] = []

    def map_here(function: Callable[[Any], Any], chunks: Any, engine: chunk_workers.ChunkEngine) -> Iterator[Any]:
        asked.append(engine)
        return map(function, chunks)

    monkeypatch.setattr(chunk_workers, "map_chunks", map_here)
    run(corpus, "-o", tmp_path / "a", "--engine", "ray", "--processes", "3")
    run(corpus, "-o", tmp_path / "b", "--engine", "ray")
    assert [engine.workers for engine in asked] == [3, None]


def test_a_folder_without_a_corpus_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no corpus folder"):
        run(tmp_path / "none", "-o", tmp_path / "clean")
    (tmp_path / "README.md").write_text("hello\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"no files such as train.en.txt"):
        run(tmp_path, "-o", tmp_path / "clean")


def test_bytes_that_are_no_text_are_dropped_and_counted(corpus: Path, tmp_path: Path) -> None:
    lines = (corpus / "train.fr.txt").read_bytes().splitlines()
    lines[3] = FRENCH.format(3).encode("latin-1")
    (corpus / "train.fr.txt").write_bytes(b"\n".join(lines) + b"\n")
    report = json.loads(run(corpus, "-o", tmp_path / "clean", "--json"))
    assert report["splits"]["train"]["dropped"]["invalid"] == {"fr": 1}


@pytest.mark.slow
def test_ray_gives_what_this_process_gives(corpus: Path, tmp_path: Path) -> None:
    """On a cluster of this machine; it takes some ten seconds to start."""
    pytest.importorskip("ray")
    here, there = tmp_path / "here", tmp_path / "there"
    run(corpus, "-o", here)
    run(corpus, "-o", there, "--engine", "ray")
    names = sorted(path.name for path in here.iterdir())
    assert names == sorted(path.name for path in there.iterdir())
    for name in names:
        assert (here / name).read_bytes() == (there / name).read_bytes()


def test_an_address_is_for_ray(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="add --engine ray"):
        run(corpus, "-o", tmp_path / "out", "--ray-address", "auto")


@pytest.mark.slow
def test_text_out_of_step_is_not_cleaned_unless_forced(tmp_path: Path) -> None:
    from graftmt.demo.phrase_corpus import write_corpus

    folder, output = tmp_path / "corpus", tmp_path / "clean"
    write_corpus(folder, ("en", "el", "fr"), train_lines=900, valid_lines=60, test_lines=60)
    run(folder, "-o", output)
    greek = (folder / "train.el.txt").read_text(encoding="utf-8").splitlines()
    (folder / "train.el.txt").write_text("\n".join([*greek[:300], *greek[301:], "τέλος"]) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"line 30[0-9] on: .*Greek .*English .*--force"):
        run(folder, "-o", tmp_path / "other")
    assert not (tmp_path / "other").exists()
    (folder / "train.source.txt").write_text("".join(f"web:{number}\n" for number in range(1001, 1901)), encoding="utf-8")
    with pytest.raises(DataError, match=r"Line (\d+) there came from web:1\1\."):  # as `prepare join` notes it
        run(folder, "-o", tmp_path / "other")
    run(folder, "-o", tmp_path / "other", "--force")
    assert (tmp_path / "other" / "train.el.txt").is_file()


def test_a_preview_writes_nothing_and_shows_examples(corpus: Path, tmp_path: Path) -> None:
    shown = run(corpus, "--preview")
    assert "train: 4 of 6 lines kept" in shown
    assert "nothing was written" in shown
    assert "copies, fr: The quick brown fox" in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus"]
    run(corpus, "--preview", "-o", tmp_path / "clean")
    assert not (tmp_path / "clean").exists()
    with pytest.raises(ConfigError, match="--output FOLDER, or --preview"):
        run(corpus)


def test_a_rule_that_drops_much_is_a_loud_warning(corpus: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [str(corpus), "-o", str(tmp_path / "clean"), "--json"])
    assert "warning: train: the rule language_id dropped 17% of the texts in fr (1 of 6), such as «Keep the" in result.stderr
    assert "--rules=-language_id" in result.stderr and "--candidates" in result.stderr
    result = CliRunner().invoke(app, [str(corpus), "-o", str(tmp_path / "clean"), "--rules", "whitespace"])
    assert "warning" not in result.stderr


SOME = (
    "The {} houses",
    "A boat with {} sails",
    "He saw {} birds near the river",
    "We bought {} books yesterday",
    "Keep {} windows shut",
)
QUELQUES = (
    "Les {} maisons",
    "Un bateau à {} voiles",
    "Il a vu {} oiseaux près du fleuve",
    "Hier on acheta {} livres",
    "Fermez {} fenêtres",
)


def mixed(folder: Path, lines: int, foreign: int) -> Path:
    """French of which so many lines in ten are in English, and other English than that next to it."""
    folder.mkdir()
    english = [SOME[number % 5].format(number) for number in range(lines)]
    french = [
        (SOME if number // 5 % 10 < foreign else QUELQUES)[(number + 2 * (number // 5 % 10 < foreign)) % 5].format(number)
        for number in range(lines)
    ]
    for language, texts in (("en", english), ("fr", french)):
        (folder / f"train.{language}.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return folder


def test_good_lines_stay_while_foreign_ones_are_fewer(tmp_path: Path) -> None:
    corpus = mixed(tmp_path / "mixed", 500, foreign=4)
    run(corpus, "-o", tmp_path / "clean")
    kept = (tmp_path / "clean" / "train.fr.txt").read_text(encoding="utf-8").splitlines()
    right = sum(line.startswith(tuple(text.partition("{")[0] for text in QUELQUES)) for line in kept)
    assert right >= 0.97 * 300 and len(kept) - right <= 0.05 * 200


@pytest.mark.slow
def test_where_foreign_lines_outnumber_good_ones_cleaning_stops_and_names_the_way_out(tmp_path: Path) -> None:
    corpus = mixed(tmp_path / "mixed", 500, foreign=7)
    with pytest.raises(DataError) as error:
        run(corpus, "-o", tmp_path / "clean")
    for words in ("train", "French", "in English", "--trusted fr=FILE", "--no-language-id", "--force"):
        assert words in str(error.value)
    assert not (tmp_path / "clean").exists()
    forced = json.loads(run(corpus, "-o", tmp_path / "clean", "--force", "--json"))
    assert forced["splits"]["train"]["dropped"]["language_id"]["fr"] >= 350
    run(corpus, "-o", tmp_path / "all", "--no-language-id")
    trusted = tmp_path / "french.txt"
    trusted.write_text(
        "".join(f"{text.format(number)}\n" for number in range(1000, 1200) for text in QUELQUES), encoding="utf-8"
    )
    report = json.loads(run(corpus, "-o", tmp_path / "trusted", "--trusted", f"fr={trusted}", "--json"))
    assert report["splits"]["train"]["lines"]["kept"] >= 0.97 * 150


def test_text_that_is_in_no_language_is_called_that(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for language, stem in (("en", "word"), ("fr", "mot")):
        lines = (" ".join(f"{stem}{number * factor % 9973}" for factor in range(1, 12)) for number in range(1_000))
        (folder / f"train.{language}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with pytest.raises(DataError, match="English seems to be in no language at all"):
        run(folder, "-o", tmp_path / "clean")
