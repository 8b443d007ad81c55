"""Files of lines, plain or compressed: what cannot be read as text is an error that names the file and the line. Layer 3."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from graftmt.errors import DataError
from graftmt.files import check_regular, open_regular

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
