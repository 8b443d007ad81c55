"""Files of lines as people have them: compressed, cut short, in the wrong encoding."""

from __future__ import annotations

import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from graftmt.data import Corpus, read_lines
from graftmt.data.line_files import LONGEST_LINE
from graftmt.errors import DataError

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
