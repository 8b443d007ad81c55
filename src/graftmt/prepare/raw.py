"""A corpus folder's text as it is stored, whatever bytes it has, for cleaning. Layer 4."""

from __future__ import annotations

import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from lzma import LZMAError
from pathlib import Path

from graftmt.data.corpus import Corpus, check_equal_lengths
from graftmt.data.line_files import open_binary
from graftmt.errors import DataError
from graftmt.prepare.source import Line, Source


def raw_source(corpus: Corpus) -> Source:
    """A split as it is stored, for cleaning: bytes that are not UTF-8 become U+FFFD, and NUL and very long lines pass.

    Other readers call these errors; here rules find, count and drop them.
    """

    def read() -> Iterator[Line]:
        readers = [_raw_lines(path) for path in corpus.files.values()]
        lengths = [0] * len(readers)
        while None not in (texts := [next(reader, None) for reader in readers]):
            lengths = [length + 1 for length in lengths]
            yield tuple(text for text in texts if text is not None)
        for place, (text, reader) in enumerate(zip(texts, readers, strict=True)):
            lengths[place] += (text is not None) + sum(1 for _ in reader)
        check_equal_lengths(dict(zip(corpus.languages, lengths, strict=True)), corpus)

    return Source(f"{corpus.folder}, {corpus.split}", corpus.languages, read)


def _raw_lines(path: Path) -> Iterator[str]:
    number = 0
    try:
        with open_binary(path) as handle:
            for number, raw in enumerate(handle, 1):
                if number == 1 and raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                    raise DataError(f"{path} is in UTF-16; convert it first: iconv -f UTF-16 -t UTF-8 FILE > NEW-FILE")
                yield raw.decode("utf-8", errors="replace").rstrip("\r\n")
    except (OSError, EOFError, LZMAError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read past line {number} ({error}); the file may be truncated.") from None
