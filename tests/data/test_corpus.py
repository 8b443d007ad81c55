"""Corpora as people have them: with gaps, with other files next to them, named wrongly."""

from __future__ import annotations

import gzip
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from graftmt.data import Corpus, read_lines
from graftmt.errors import DataError, LanguageError

LINES = ["first line", "", "Ελληνικά, 中文 and a tab\there", "with U+2028 \u2028 and U+0085 \u0085 inside", "last"]


def to_bytes(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def test_a_missing_file_folder_or_split_says_what_was_expected(tmp_path: Path, corpus: Corpus) -> None:
    with pytest.raises(DataError, match="there is no file"):
        list(read_lines(tmp_path / "nothing.txt"))
    with pytest.raises(DataError, match=r"no corpus folder .*train\.en\.txt"):
        Corpus.open(tmp_path / "nowhere", "train")
    with pytest.raises(DataError, match=r"'valid'.*: train.*graftmt prepare split"):
        Corpus.open(corpus.folder, "valid")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="splits seen there: none"):
        Corpus.open(empty, "train")


def test_a_language_that_is_not_there_gets_the_nearest_one_that_is(tmp_path: Path) -> None:
    for language in ("en", "pt_br"):
        (tmp_path / f"train.{language}.txt").write_bytes(to_bytes(LINES))
    with pytest.raises(LanguageError, match=r"'pt_pt'.*'pt_br'\?.*en, pt_br"):
        Corpus.open(tmp_path, "train", ["en", "pt_pt"])
    with pytest.raises(LanguageError, match=r"'xyz'\. Languages there"):
        Corpus.open(tmp_path, "train", ["xyz"])


def test_chosen_languages_keep_the_order_asked_for(corpus: Corpus) -> None:
    assert Corpus.open(corpus.folder, "train", ["ru", "de"]).languages == ("ru", "de")
    assert Corpus.open(corpus.folder, "train").languages == ("de", "en", "fr", "ru")


def test_files_that_are_no_language_are_left_alone(tmp_path: Path) -> None:
    for name in (
        "train.en.txt",
        "train.source.tsv",
        "train.json",
        "train.txt",
        "README.md",
        "valid.fr.txt",
        "train.de.txt.bak",
    ):
        (tmp_path / name).write_bytes(to_bytes(LINES))
    assert Corpus.open(tmp_path, "train").languages == ("en",)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)  # a socket's name may not be long
        listener.bind(path.name)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (Path.mkdir, "folder"),
        (os.mkfifo, "pipe"),
        (make_socket, "socket"),
        (lambda path: path.symlink_to("/dev/null"), "device"),
        (lambda path: path.symlink_to("nowhere"), "not there"),
    ],
)
@pytest.mark.parametrize("name", ["train.fr.txt", "train.fr", "train.fr.txt.gz"])
def test_what_is_no_file_is_named_and_not_left_out(tmp_path: Path, make: Callable[[Path], None], kind: str, name: str) -> None:
    (tmp_path / "train.en.txt").write_bytes(to_bytes(LINES))
    make(tmp_path / name)
    with pytest.raises(DataError, match=rf"{name} is .*{kind}"):
        Corpus.open(tmp_path, "train")


def test_two_files_for_a_language_are_both_named(tmp_path: Path) -> None:
    for name in ("train.en.txt", "train.fr.txt", "train.fr.txt.gz"):
        (tmp_path / name).write_bytes(gzip.compress(to_bytes(LINES)) if name.endswith("gz") else to_bytes(LINES))
    with pytest.raises(DataError, match=r"train\.fr\.txt and train\.fr\.txt\.gz"):
        Corpus.open(tmp_path, "train")


@pytest.mark.parametrize("language", ["en~", "a b", "\x1b[31m", "-x", "é", "x" * 41, ""])
def test_a_file_whose_name_cannot_name_a_language_is_an_error(tmp_path: Path, language: str) -> None:
    (tmp_path / "train.en.txt").write_bytes(to_bytes(LINES))
    (tmp_path / f"train.{language}.txt").write_bytes(to_bytes(LINES))
    with pytest.raises(LanguageError, match="cannot name a language"):
        Corpus.open(tmp_path, "train")


def test_an_empty_line_is_a_missing_translation_and_keeps_its_place(write_corpus: Callable[..., Corpus]) -> None:
    corpus = write_corpus({"en": ["one", "two", "three"], "fr": ["un", "", "trois"]})
    assert corpus.texts(["fr", "en"]) == {"fr": ["un", "", "trois"], "en": ["one", "two", "three"]}
    assert corpus.texts(["en"], limit=2) == {"en": ["one", "two"]}


def test_unequal_lengths_name_the_files_and_their_lines(write_corpus: Callable[..., Corpus]) -> None:
    corpus = write_corpus({"en": ["one", "two", "three"], "fr": ["un", "deux"]})
    with pytest.raises(DataError, match=r"train\.en\.txt: 3, train\.fr\.txt: 2"):
        corpus.texts(corpus.languages)


def test_an_empty_corpus_is_an_error(write_corpus: Callable[..., Corpus]) -> None:
    with pytest.raises(DataError, match="is empty: no lines in en, fr"):
        corpus = write_corpus({"en": [], "fr": []})
        corpus.texts(corpus.languages)
