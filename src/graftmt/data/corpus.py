"""Line-aligned multi-parallel corpora: one file per language, line i of each the same segment, empty = missing. Layer 3."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from graftmt.documents import read_json
from graftmt.errors import DataError, GraftError, LanguageError, nearest
from graftmt.files import check_regular, kind_of_path, open_regular
from graftmt.mistaken import instead_of_corpus
from graftmt.text.aliases import match_names, resolved_names
from graftmt.text.languages import check_language_names

ENDINGS = (".txt", "", ".txt.xz", ".xz", ".txt.gz", ".gz", ".txt.zst", ".zst")
"""What may follow `train.en`."""

NO_LANGUAGES = frozenset(("source", "json", "md", "tsv", "txt", "gz", "xz", "zst"))
"""What may stand in a language's place: docs-l10n and others keep a file that says where each line is from."""

LONGEST_LINE = 50_000
"""Characters. A longer line is a broken file rather than a sentence, and would cost memory for nothing."""

LONGEST_BYTES = 4 * LONGEST_LINE + 4
"""Of a line that is read into memory; no character has more than four."""

UNREADABLE = (OSError, EOFError, lzma.LZMAError, zlib.error)
"""What reading a file may raise, compressed ones included."""


BEGINNINGS = {
    ".gz": ("gzip", (b"\x1f\x8b",)),
    ".xz": ("xz", (b"\xfd7zXZ\0", b"]\0\0")),
    ".zst": ("zstd", (b"\x28\xb5\x2f\xfd", *(bytes([number]) + b"\x2a\x4d\x18" for number in range(0x50, 0x60)))),
}
"""Ending → the compression, and what its files begin with."""


def open_binary(path: Path) -> BinaryIO:
    """The uncompressed bytes of a plain, .gz, .xz or .zst file."""
    check_regular(path)
    _check_beginning(path)
    if path.suffix == ".gz":
        return cast(BinaryIO, io.BufferedReader(gzip.GzipFile(path, "rb")))  # lines of a buffer are read in C
    if path.suffix == ".xz":
        return cast(BinaryIO, io.BufferedReader(lzma.LZMAFile(path, "rb")))
    if path.suffix == ".zst":
        try:
            import zstandard
        except ImportError:
            raise DataError(f"{path} is compressed with zstd: pip install 'graftmt[prepare]' to read it.") from None
        return cast(BinaryIO, io.BufferedReader(ZstdFile(open_regular(path), zstandard)))
    return open_regular(path)


def _check_beginning(path: Path) -> None:
    """Of a file that is compressed by its name: plain text called .gz is told apart from a truncated download."""
    if path.suffix not in BEGINNINGS or not path.is_file():
        return
    compression, beginnings = BEGINNINGS[path.suffix]
    with open_regular(path) as handle:
        start = handle.read(max(map(len, beginnings)))
    if not any(start.startswith(one) or one.startswith(start) for one in beginnings):
        raise DataError(
            f"{path} is not compressed with {compression}, whatever its name says; if it is plain text, take {path.suffix} off "
            "its name, otherwise get the file again."
        )


def compressed(data: bytes, path: Path) -> bytes:
    """What a plain, .gz, .xz or .zst file has for these bytes: one such piece after another is a valid file."""
    if path.suffix == ".gz":
        return gzip.compress(data, mtime=0)  # without the time: the same text gives the same file
    if path.suffix == ".xz":
        return lzma.compress(data)
    if path.suffix == ".zst":
        try:
            import zstandard
        except ImportError:
            raise DataError(f"{path}: pip install 'graftmt[prepare]' to write what is compressed with zstd.") from None
        frame: bytes = zstandard.ZstdCompressor().compress(data)
        return frame
    return data


class ZstdFile(io.RawIOBase):
    """The uncompressed bytes of a zstd file; zstandard's own reader takes a truncated file for a whole one."""

    def __init__(self, file: BinaryIO, zstandard: Any) -> None:
        self.file, self.zstandard = file, zstandard
        self.frame: Any = None
        self.ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.ready:
            block = self.file.read(1 << 17)
            if not block:
                if self.frame is not None:
                    raise EOFError("Compressed file ended before the end of a frame")
                return 0
            self.ready = memoryview(b"".join(self._decompress(block)))
        count = min(len(buffer), len(self.ready))
        buffer[:count], self.ready = self.ready[:count], self.ready[count:]
        return count

    def _decompress(self, block: bytes) -> Iterator[bytes]:
        """A file is one frame after another; `frame` is the one that is not finished yet."""
        while block:
            if self.frame is None:
                self.frame = self.zstandard.ZstdDecompressor().decompressobj()
            try:
                yield self.frame.decompress(block)
            except self.zstandard.ZstdError as error:
                raise OSError(str(error)) from None
            block = self.frame.unused_data
            if self.frame.eof:
                self.frame = None

    def close(self) -> None:
        self.file.close()
        super().close()


def decode_line(raw: bytes, number: int, where: str) -> str:
    """Line `number` of `where` as text without its end; what is not text is an error that says so."""
    if b"\0" in raw:
        raise DataError(f"{where}, line {number}: a NUL byte; text was expected. Is this a binary file?")
    try:
        line = raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}, line {number}: not valid UTF-8 (byte {raw[error.start]:#04x} at column {error.start + 1}); "
            "convert it to UTF-8, for instance with iconv, or drop the line (in a corpus: in every language's file)."
        ) from None
    # Some editors write a byte order mark at the beginning.
    return line.removeprefix("\ufeff") if number == 1 else line


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a text file, without their ends; an error names the file and the line that cannot be read."""
    number = 0
    try:
        with open_binary(path) as handle:
            for number, raw in enumerate(iter(lambda: handle.readline(LONGEST_BYTES), b""), 1):
                if len(raw) == LONGEST_BYTES and b"\0" not in raw:
                    raise DataError(f"{path}, line {number}: more than {LONGEST_BYTES:,} bytes; is this a file of lines?")
                line = decode_line(raw, number, str(path))
                if len(line) > LONGEST_LINE:
                    raise DataError(
                        f"{path}, line {number}: {len(line):,} characters; at most {LONGEST_LINE:,} make sense as one segment. "
                        "Split it, or leave the line empty in this language's file."
                    )
                yield line
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; check the path.") from None
    except UNREADABLE as error:
        raise DataError(f"{path}: cannot be read past line {number} ({error}); the file may be truncated.") from None


@dataclass(frozen=True)
class Corpus:
    """One split of a corpus: a file per language, all with the same number of lines."""

    folder: Path
    split: str
    files: dict[str, Path]

    @classmethod
    def open(cls, folder: str | Path, split: str, languages: Sequence[str] | None = None) -> Corpus:
        """The split's files in `folder`, named `train.en`, `train.en.txt`, with .gz, .xz or .zst; all languages or these."""
        folder = Path(folder)
        if not folder.is_dir():
            mistaken = instead_of_corpus(folder)
            said = f": {mistaken}" if mistaken else f"; expected files such as {split}.en.txt in it."
            raise DataError(f"there is no corpus folder {folder}{said}")
        found = find_files(folder, split)
        if not found:
            present = sorted({path.name.split(".")[0] for path in folder.iterdir() if path.is_file()})
            way_out = f" `graftmt prepare split {folder} -o NEW` holds lines of train out." if "train" in present else ""
            raise DataError(
                f"{folder} has no files of the split {split!r}, such as {split}.en.txt or {split}.en.txt.xz; "
                f"splits seen there: {', '.join(present) or 'none'}.{way_out}"
            )
        if languages is None:
            return cls(folder, split, found)
        for language in languages:
            if language not in found:
                raise LanguageError(
                    f"{folder} has no {split} text for language {language!r}{nearest(language, found) or '.'} "
                    f"Languages there: {', '.join(found)}."
                )
        return cls(folder, split, {language: found[language] for language in languages})

    def known_as(self, codes: Sequence[str]) -> Corpus:
        """The same files under these codes where their names mean the same languages: train.en for `eng_Latn`."""
        names = match_names(self.files, codes)
        resolved_names(names)
        return replace(self, files={names.get(name, name): path for name, path in self.files.items()})

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(self.files)

    def lines(self, language: str) -> Iterator[str]:
        return read_lines(self.files[language])

    def texts(self, languages: Iterable[str], limit: int | None = None) -> dict[str, list[str]]:
        """The first `limit` lines of these languages in memory; unequal lengths are an error."""
        texts = {}
        for language in languages:
            lines: list[str] = []
            for line in self.lines(language):
                if limit is not None and len(lines) == limit:
                    break
                lines.append(line)
            texts[language] = lines
        check_equal_lengths({language: len(lines) for language, lines in texts.items()}, self)
        return texts


def find_files(folder: Path, split: str) -> dict[str, Path]:
    """language → file, in the order of the languages' names. What is no file, or the second one, is an error, not left out."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        parts = path.name.split(".")
        if len(parts) < 2 or parts[0] != split or path.name[len(f"{split}.{parts[1]}") :] not in ENDINGS:
            continue
        language = parts[1]
        if language in NO_LANGUAGES:
            continue
        check_language_names([language], str(path))
        if language in found:
            raise DataError(
                f"{folder} has two files for {language} in {split}: {found[language].name} and {path.name}; keep one."
            )
        if not path.is_file():
            raise DataError(
                f"{path} is {kind_of_path(path)}; a text file was expected. Move it away, or put the text in its place."
            )
        found[language] = path
    return dict(sorted(found.items()))


def check_equal_lengths(counts: dict[str, int], corpus: Corpus) -> None:
    """A line-aligned corpus has as many lines in each language, and at least one."""
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{corpus.files[language].name}: {count:,}" for language, count in counts.items())
        raise DataError(
            f"the files of {corpus.split!r} in {corpus.folder} have different numbers of lines ({listed}); line i of each must "
            "be the same segment, with an empty line where a translation is missing."
        )
    if not counts or not max(counts.values()):
        raise DataError(
            f"the {corpus.split!r} split in {corpus.folder} is empty: no lines in {', '.join(counts) or 'any file'}."
        )


def segmented(files: Iterable[tuple[str, Path]]) -> dict[str, list[str]]:
    """For the corpus.json of a corpus made from these files, by language: those that `prepare segment` has segmented.

    `graftmt evaluate` goes by it, so whatever makes a corpus of another one hands it on. Empty where there are none.
    """
    listed: dict[Path, list[str]] = {}
    found = set()
    for language, file in files:
        description = file.parent / "corpus.json"
        if description not in listed:
            marked = None
            with suppress(GraftError):  # somebody else's file of that name has not our mark
                marked = read_json(description, "the corpus").get("segmented") if description.is_file() else None
            listed[description] = marked if isinstance(marked, list) else []
        if language in listed[description]:
            found.add(language)
    return {"segmented": sorted(found)} if found else {}
