"""Corpora as people have them: compressed, with gaps, cut short, in the wrong encoding."""

from __future__ import annotations

import gzip
import lzma
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from graftmt.data import Corpus, read_lines
from graftmt.data.corpus import LONGEST_LINE
from graftmt.errors import DataError, LanguageError

LINES = ["first line", "", "Ελληνικά, 中文 and a tab\there", "with U+2028 \u2028 and U+0085 \u0085 inside", "last"]
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,  # as the command zstd does
}


def to_bytes(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.mark.parametrize("text_ending", ["", ".txt"])
@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_files_plain_and_compressed_give_the_same_lines(tmp_path: Path, text_ending: str, ending: str) -> None:
    (tmp_path / f"train.en{text_ending}{ending}").write_bytes(COMPRESSIONS[ending](to_bytes(LINES)))
    corpus = Corpus.open(tmp_path, "train")
    assert corpus.languages == ("en",)
    assert list(corpus.lines("en")) == LINES


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_a_compressed_file_may_have_several_parts(tmp_path: Path, ending: str) -> None:
    compress = COMPRESSIONS[ending]
    path = tmp_path / f"train.en{ending}"
    path.write_bytes(compress(to_bytes(LINES[:2])) + compress(to_bytes(LINES[2:])))
    assert list(read_lines(path)) == LINES


@given(lines=st.lists(st.text(st.characters(exclude_characters="\0\r\n\ufeff", exclude_categories=["Cs"])), max_size=20))
def test_any_text_comes_back_line_by_line(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("lines") / "train.en.txt"
    path.write_bytes(to_bytes(lines))
    assert list(read_lines(path)) == lines


def test_windows_line_ends_and_byte_order_marks_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "train.en.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(LINES).encode())
    assert list(read_lines(path)) == LINES


def test_the_last_line_needs_no_line_end(tmp_path: Path) -> None:
    path = tmp_path / "train.en.txt"
    path.write_bytes(to_bytes(LINES).removesuffix(b"\n"))
    assert list(read_lines(path)) == LINES


def test_invalid_utf8_names_file_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "train.en.txt"
    path.write_bytes(b"fine\nbroken \xff here\n")
    lines = read_lines(path)
    assert next(lines) == "fine"
    with pytest.raises(DataError, match=r"train\.en\.txt, line 2: .*0xff at column 8"):
        next(lines)


def test_a_nul_byte_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "train.en.txt"
    path.write_bytes(b"fine\nbin\0ary\n")
    with pytest.raises(DataError, match=r"line 2: a NUL byte"):
        list(read_lines(path))


def test_a_line_too_long_to_be_a_segment_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "train.en.txt"
    path.write_text("x" * LONGEST_LINE + "\n" + "x" * 100_000 + "\n", encoding="utf-8")
    lines = read_lines(path)
    assert len(next(lines)) == LONGEST_LINE
    with pytest.raises(DataError, match="line 2: 100,000 characters"):
        next(lines)


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_a_truncated_file_is_an_error_and_not_a_shorter_corpus(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"train.en.txt{ending}"
    whole = COMPRESSIONS[ending](to_bytes([os.urandom(20).hex() for _ in range(10_000)]))
    for cut in (len(whole) - 1, len(whole) // 2, 5):
        path.write_bytes(whole[:cut])
        with pytest.raises(DataError, match=f"{path.name}: .* line .* truncated"):
            list(read_lines(path))


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_damaged_and_mislabelled_files_are_errors(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"train.en.txt{ending}"
    whole = COMPRESSIONS[ending](to_bytes([os.urandom(20).hex() for _ in range(10_000)]))
    contents = [to_bytes(LINES)]
    for start in (15, len(whole) // 2):
        contents.append(whole[:start] + b"\xff" * 100 + whole[start + 100 :])
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(DataError, match=path.name):
            list(read_lines(path))


@pytest.mark.parametrize(("ending", "compression"), [(".gz", "gzip"), (".xz", "xz"), (".zst", "zstd")])
def test_plain_text_with_the_name_of_a_compressed_file_is_called_so(tmp_path: Path, ending: str, compression: str) -> None:
    path = tmp_path / f"train.en.txt{ending}"
    path.write_bytes(to_bytes(LINES))
    with pytest.raises(DataError, match=f"{path.name} .*{compression}.*{ending}"):
        list(read_lines(path))
    path.write_bytes(b"")
    assert ending != ".gz" or list(read_lines(path)) == [], "nothing is not something else"


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
        (tmp_path / name).write_bytes(COMPRESSIONS[".gz" if name.endswith("gz") else ""](to_bytes(LINES)))
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
