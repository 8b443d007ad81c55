"""Tar files read with care: bounded headers, and members as files of their own. Layer 4."""

from __future__ import annotations

import io
import tarfile
from typing import Any, BinaryIO

_LARGEST_HEADER = 1 << 20  # of a tar member: long names, attributes


class TarHeader(tarfile.TarInfo):
    """tarfile takes a damaged or missing header for the end of the archive; here only the end is the end."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Any:
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"{error} at byte {tarfile_.offset:,} of the archive") from None

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str | None, errors: str) -> Any:
        header = super().frombuf(buf, encoding, errors)  # type: ignore[arg-type]
        if header.size < 0 or (not header.isfile() and header.size > _LARGEST_HEADER):
            raise tarfile.ReadError(f"a header of {header.size:,} bytes")
        return header


class Ending:
    """A stream that may be read past its end a few times, not for as long as a member's made-up size has tarfile try."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.empty_reads = file, 0

    def read(self, size: int) -> bytes:
        block = self.file.read(size)
        self.empty_reads += not block
        if self.empty_reads > 4:
            raise EOFError("a member is larger than the archive")
        return block


class Slice(io.RawIOBase):
    """A stretch of a stream, which is closed with it; a stream that ends early is an error."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self.file, self.start, self.left = file, start, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while self.start:
            skipped = len(self.file.read(min(self.start, 1 << 20)))
            if not skipped:
                raise EOFError("the archive ends before this member")
            self.start -= skipped
        block = self.file.read(min(len(buffer), self.left))
        if self.left and not block:
            raise EOFError("the archive ends inside this member")
        self.left -= len(block)
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        self.file.close()
        super().close()
