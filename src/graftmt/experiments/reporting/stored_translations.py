"""Translations as a report keeps them: for each test set and direction one file, JSON Lines in xz. Layer 7.

The first row says what the columns are. Each next one is a line of the test set: source, reference, and a translation for each
job. `xz -dc FILE | head` shows them.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graftmt.documents import parse_json
from graftmt.errors import DataError
from graftmt.files import atomic_file, read_limited

ENDING = ".jsonl.xz"
FORMAT = 1
LARGEST_FILE, LARGEST_CONTENT = 256 * 2**20, 2**30
"""Bytes. The translations of a hundred packs in one direction are a few percent of it."""
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 4, "lp": 0, "pb": 0}]
"""For text. Stronger presets make it no smaller, and take seven times the memory."""
MEMORY = 128 * 2**20
"""Bytes for decompression; the strongest preset needs half."""


@dataclass(frozen=True, kw_only=True)
class TestLines:
    """The lines of a test set that have text on both sides."""

    __test__ = False  # pytest takes what is called Test… for tests

    numbers: tuple[int, ...]
    """Where they stand in the test set, from 0."""
    of: int
    """All lines of the test set."""
    sources: tuple[str, ...]
    references: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class StoredTranslations:
    """One file: a test set in one direction."""

    set_name: str
    source: str
    target: str
    lines: TestLines
    translations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Name of a job → its translations of these lines."""

    def write(self, folder: Path) -> Path:
        """The same content gives the same bytes."""
        path = stored_file(folder, self.set_name, f"{self.source}-{self.target}")
        present = set(self.lines.numbers)
        jobs = sorted(self.translations)
        header = {
            "format": FORMAT,
            "set": self.set_name,
            "source": self.source,
            "target": self.target,
            "jobs": jobs,
            "lines": self.lines.of,
            "without_text": [number + 1 for number in range(self.lines.of) if number not in present],
        }
        columns = (self.lines.sources, self.lines.references, *(self.translations[job] for job in jobs))
        rows = [header, *(list(row) for row in zip(*columns, strict=True))]
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        with atomic_file(path) as temporary:
            temporary.write_bytes(lzma.compress(content, filters=FILTERS))
        return path

    @classmethod
    def read(cls, path: Path) -> StoredTranslations:
        """What is wrong with the file is an error that names it."""
        try:
            return cls._parsed(_decompressed(path))
        except (OSError, ValueError, KeyError, TypeError, lzma.LZMAError, EOFError) as error:
            words = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise DataError(
                f"the translations {path} are damaged ({words}). Get the file again, or delete it to do without them."
            ) from None

    @classmethod
    def _parsed(cls, content: bytes) -> StoredTranslations:
        first, *rows = content.removesuffix(b"\n").split(b"\n")
        header = parse_json(first)
        if not isinstance(header, dict):
            raise ValueError("its first row names no columns")
        if header["format"] != FORMAT:
            raise ValueError(f"its format is {header['format']!r}, and this version of graftmt reads {FORMAT}")
        jobs, of, missing = header["jobs"], header["lines"], header["without_text"]
        if (
            not isinstance(jobs, list)
            or not _texts([header["set"], header["source"], header["target"], *jobs])
            or len({*jobs}) != len(jobs)
        ):
            raise ValueError("its columns have no names, or one twice")
        if not isinstance(of, int) or not 0 <= of <= len(rows) + len(missing):
            raise ValueError(f"it says that the test set has {of!r} lines, and has {len(rows):,}")
        absent = {number - 1 for number in missing}
        numbers = tuple(number for number in range(of) if number not in absent)
        columns = [_row(raw, number, 2 + len(jobs)) for number, raw in enumerate(rows, 2)]
        if len(columns) != len(numbers):
            raise ValueError(f"{len(columns):,} lines where its first row announces {len(numbers):,}")
        turned = list(zip(*columns, strict=True)) or [()] * (2 + len(jobs))
        return cls(
            set_name=header["set"],
            source=header["source"],
            target=header["target"],
            lines=TestLines(numbers=numbers, of=of, sources=turned[0], references=turned[1]),
            translations=dict(zip(jobs, turned[2:], strict=True)),
        )


def stored_file(folder: Path, set_name: str, direction: str) -> Path:
    if set(f"{set_name}{direction}") & set("/\\\0") or set_name.startswith("."):
        raise DataError(
            f"{set_name!r} in {direction!r} is no name of a test set and a direction; the result that has it is damaged."
        )
    return folder / f"{set_name}.{direction}{ENDING}"


def stored_files(folder: Path) -> list[Path]:
    """Those that a report has."""
    return sorted(path for path in folder.glob(f"*{ENDING}") if not path.name.startswith("."))


def _decompressed(path: Path) -> bytes:
    reader = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=MEMORY)
    content = reader.decompress(read_limited(path, LARGEST_FILE), max_length=LARGEST_CONTENT)
    if not reader.eof:
        raise ValueError("it ends too early" if reader.needs_input else f"it has more than {LARGEST_CONTENT:,} bytes")
    if reader.unused_data:
        raise ValueError("something follows its end")
    return content


def _row(raw: bytes, number: int, columns: int) -> list[str]:
    row = parse_json(raw)
    if not isinstance(row, list) or len(row) != columns or not _texts(row):
        raise ValueError(f"row {number:,} is no list of {columns:,} texts")
    return row


def _texts(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)
