"""Lines of text from stored files, one file or several in step; errors name file and line. Layer 4."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import count

from graftmt.data.line_files import LONGEST_LINE, decode_line
from graftmt.errors import DataError
from graftmt.prepare.readers.archives import StoredFile
from graftmt.prepare.source import Line

LONGEST_RECORD = 16 << 20
"""Bytes of a table's row or a JSON record; a longer one is a broken file."""
_MARKS_OF_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_lines(file: StoredFile) -> Generator[str, None, None]:
    """Segments, a line each."""
    where = str(file)
    for number, line in read_records(file, 4 * LONGEST_LINE):
        if len(line) > LONGEST_LINE:
            raise too_long(where, f"line {number}", len(line))
        yield line


def read_records(file: StoredFile, longest: int = LONGEST_RECORD) -> Iterator[tuple[int, str]]:
    """Numbered lines of at most `longest` bytes, without their ends; memory holds one at a time."""
    where = str(file)
    with file.open() as handle:
        for number in count(1):
            raw = handle.readline(longest + 1)
            if not raw:
                return
            if len(raw) > longest:
                raise too_long(where, f"line {number}", len(raw))
            if number == 1 and raw.startswith(_MARKS_OF_UTF16):
                raise DataError(f"{where} is in UTF-16; convert it first: iconv -f UTF-16 -t UTF-8 FILE > NEW-FILE")
            yield number, decode_line(raw, number, where)


def read_in_step(files: Sequence[StoredFile]) -> Iterator[Line]:
    """Line i of each file together; files of different lengths are an error that says how long each is."""
    with ExitStack() as stack:
        readers = [stack.enter_context(closing(read_lines(file))) for file in files]
        whole = 0
        while None not in (texts := [next(reader, None) for reader in readers]):
            whole += 1
            yield tuple(text for text in texts if text is not None)
        if any(text is not None for text in texts):
            more = [(text is not None) + sum(1 for _ in reader) for text, reader in zip(texts, readers, strict=True)]
            listed = ", ".join(f"{file}: {whole + count:,}" for file, count in zip(files, more, strict=True))
            raise DataError(
                f"files that should be line-aligned have different numbers of lines ({listed}); line {whole + 1:,} is the "
                "first without a counterpart, but earlier ones may be shifted. Download them again, or align them first."
            )


def check_text(text: str, where: str, place: str) -> str:
    """Text that did not come as lines of UTF-8: no half characters, and no longer than a segment may be."""
    if len(text) > LONGEST_LINE:
        raise too_long(where, place, len(text))
    if "\0" in text:
        raise DataError(f"{where}, {place}: a NUL character; text was expected. Drop the record, or repair it at its source.")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"{where}, {place}: half a surrogate pair (U+{ord(text[error.start]):04X} at character {error.start + 1}), "
                "which is no text in UTF-8; drop the record, or repair it at its source."
            ) from None
    return text


def too_long(where: str, place: str, length: int) -> DataError:
    return DataError(
        f"{where}, {place}: {length:,} characters or more; at most {LONGEST_LINE:,} make sense as one segment. "
        "Is this the right format? If it is, split the text or drop it (in line-aligned files: in every language)."
    )
