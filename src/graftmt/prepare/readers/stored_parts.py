"""Bytes as stored on disk, plain, compressed or in parts; damage and bombs become errors that name the file. Layer 4."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from graftmt.data.line_files import ZstdFile
from graftmt.errors import ConfigError, DataError

COMPRESSIONS = (".gz", ".xz", ".zst")
DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    LookupError,
    RuntimeError,  # zipfile: encrypted members; NotImplementedError: a compression it does not know
    OverflowError,
    MemoryError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
)
"""What the standard library raises at files that are not what their names say."""

_FREE = 4 << 20
"""Bytes that any file may unfold to, whatever its ratio: a small file of equal lines is no bomb."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far a compressed file or an archive may unfold; beyond, it is taken for a bomb."""

    ratio: float = 200.0
    """Uncompressed size over compressed size. Text has 3 to 10, gzip can reach 1,000."""
    size: int = 200_000_000_000
    """Uncompressed bytes of one file or archive."""

    def __post_init__(self) -> None:
        if self.ratio < 1 or self.size < 1:
            raise ConfigError(f"the limits on unpacking are ratio {self.ratio} and size {self.size}; both must be at least 1.")

    def allowed(self, compressed: int) -> int:
        return min(self.size, max(_FREE, int(self.ratio * compressed)))

    def check(self, uncompressed: int, compressed: int, where: str) -> None:
        if uncompressed > self.allowed(compressed):
            raise too_large(where, self, compressed)


def too_large(where: str, limits: Limits, compressed: int) -> DataError:
    return DataError(
        f"{where}: {compressed:,} bytes unfold to more than {limits.allowed(compressed):,}, as in a decompression bomb, so it "
        f"is refused (limits: {limits.ratio:g} times its size, {limits.size:,} bytes). If you trust the file, raise them with "
        "--max-ratio and --max-size."
    )


def damaged(where: str, error: BaseException, done: int = 0) -> DataError:
    """The one sentence about a file that cannot be read to its end."""
    if isinstance(error, FileNotFoundError):
        return DataError(f"there is no file {where}; check the path.")
    if isinstance(error, PermissionError | IsADirectoryError):
        return DataError(f"{where} cannot be read: {error.strerror}.")
    reason = str(error).strip().removesuffix(".") or type(error).__name__
    return DataError(
        f"{where}: cannot be read past byte {done:,} of its content ({reason}); the file may be truncated or damaged: "
        "download it again, and compare its size or checksum with the publisher's."
    )


def readable_name(path: Path) -> str:
    """A path for messages and reports, also where its bytes are not valid text."""
    return os.fsencode(path).decode("utf-8", "replace")


def open_parts(parts: Sequence[Path]) -> BinaryIO:
    """The bytes of a file, or of several that were one before it was cut into parts."""
    if len(parts) == 1:
        return parts[0].open("rb")
    return cast(BinaryIO, io.BufferedReader(_Parts(parts), 1 << 18))


def decompressed(file: BinaryIO, name: str, compressed: int, limits: Limits, where: str) -> BinaryIO:
    """The content of `file`, by the ending of `name`, within the limits; errors name `where`."""
    ending = Path(name).suffix.lower()
    if ending == ".gz":
        content: Any = gzip.GzipFile(fileobj=file)
    elif ending == ".xz":
        content = lzma.LZMAFile(file)  # noqa: SIM115
    elif ending == ".zst":
        try:
            import zstandard
        except ImportError:
            raise DataError(f"{where} is compressed with zstd: pip install 'graftmt[prepare]' to read it.") from None
        content = ZstdFile(file, zstandard)
    else:
        return checked(file, where)
    return cast(BinaryIO, io.BufferedReader(_Checked(content, where, file, limits, compressed), 1 << 18))


def checked(file: BinaryIO, where: str) -> BinaryIO:
    """The same bytes; what goes wrong on the way is an error that names the file."""
    return cast(BinaryIO, io.BufferedReader(_Checked(file, where), 1 << 18))


class _Checked(io.RawIOBase):
    """Passes bytes on, counts them, and turns damage and bombs into errors for people."""

    def __init__(
        self, file: Any, where: str, below: BinaryIO | None = None, limits: Limits | None = None, compressed: int = 0
    ) -> None:
        self.file, self.where, self.below, self.limits, self.compressed = file, where, below, limits, compressed
        self.allowed = limits.allowed(compressed) if limits else None
        self.done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count = self.file.readinto(buffer) or 0
        except DAMAGE as error:
            raise damaged(self.where, error, self.done) from None
        self.done += count
        if self.allowed is not None and self.limits is not None and self.done > self.allowed:
            raise too_large(self.where, self.limits, self.compressed)
        return int(count)

    def close(self) -> None:
        self.file.close()
        if self.below is not None:  # gzip and lzma leave the file below them open
            self.below.close()
        super().close()


class _Parts(io.RawIOBase):
    """Files read as one, in their order."""

    def __init__(self, parts: Sequence[Path]) -> None:
        self.left = list(parts)
        self.file: BinaryIO | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self.file is None:
                if not self.left:
                    return 0
                self.file = self.left.pop(0).open("rb")
            block = self.file.read(len(buffer))
            if block:
                buffer[: len(block)] = block
                return len(block)
            self.file.close()
            self.file = None

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
        super().close()
