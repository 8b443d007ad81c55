"""The files of a stored pack, in a folder or in one zip archive, read with limits: either may come from anyone. Layer 3."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from graftmt.errors import CheckpointError, GraftError
from graftmt.files import open_regular
from graftmt.mistaken import instead_of_pack

ARCHIVE = ".graftpack"
"""A path that ends so is one file, a zip archive; any other is a folder."""

AGAIN = "Get it again from a copy."
DOCUMENT, TENSORS, CARD = "pack.json", "pack.safetensors", "README.md"

LARGEST_READ = 2**20
"""Bytes that are asked of an archive at once; its own directory is a read, and has a few hundred."""
MOST_UNFOLDED = 10
"""How many times the archive's own size its tensors may have. Those of trained packs hardly shrink."""
ALWAYS_UNFOLDED = 2**24
"""Bytes that a member may have in any case."""


class Member(NamedTuple):
    """One file of a pack, not read yet."""

    stream: IO[bytes]
    size: int


@dataclass(frozen=True)
class PackFiles:
    """The files of one pack."""

    path: Path
    archive: zipfile.ZipFile | None
    size: int
    """Bytes of the archive."""
    opened: ExitStack

    def open(self, name: str) -> Member:
        """Opens a file, once it is clear that it is one and has an honest size."""
        if self.archive is not None:
            return self._unfold(self.archive, name)
        try:
            handle = self.opened.enter_context(open_regular(self.path / name))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise CheckpointError(f"{self.path / name} cannot be read: {error.strerror or error}.") from None
        return Member(handle, os.fstat(handle.fileno()).st_size)

    def read(self, name: str, limit: int) -> bytes:
        """All of a file of at most `limit` bytes."""
        stream, size = self.open(name)
        if size > limit:
            raise CheckpointError(f"{self.path}: {name} has {size:,} bytes; expected at most {limit:,}. {AGAIN}")
        content = bytearray()
        while len(content) < size and (part := stream.read(min(LARGEST_READ, size - len(content)))):
            content += part
        if len(content) < size:
            raise CheckpointError(f"{self.path}: {name} is truncated; {size:,} bytes were expected. {AGAIN}")
        return bytes(content)

    def _unfold(self, archive: zipfile.ZipFile, name: str) -> Member:
        """A file of the archive. It gives no more bytes than the archive's directory says: zipfile sees to that."""
        found = [info for info in archive.infolist() if info.filename == name]
        if not found:
            raise CheckpointError(f"{self.path} is not a whole pack: it lacks {name}. {AGAIN}")
        info = found[0]
        stored = info.compress_type == zipfile.ZIP_STORED
        if len(found) > 1:
            problem = f"it has {len(found)} files {name}"
        elif not (stored or info.compress_type == zipfile.ZIP_DEFLATED) or info.flag_bits & 0x1:
            problem = f"{name} is encrypted, or compressed in another way than is usual"
        elif info.compress_size > self.size or (stored and info.file_size != info.compress_size):
            problem = f"{name} does not have the size that the archive says"
        elif info.file_size > max(ALWAYS_UNFOLDED, MOST_UNFOLDED * self.size):
            problem = f"{name} would unfold to {info.file_size:,} bytes, and the archive has {self.size:,}"
        else:
            try:
                return Member(self.opened.enter_context(archive.open(info)), info.file_size)
            except ValueError as error:  # such as a place before the beginning of the file
                problem = str(error)
        raise CheckpointError(f"{self.path} cannot be used: {problem}. {AGAIN}")


@contextmanager
def open_pack(path: Path) -> Iterator[PackFiles]:
    """The files of a pack; whatever proves to be wrong with folder or archive inside the block is an error for a person."""
    with ExitStack() as opened:
        try:
            if path.is_dir():
                yield PackFiles(path, None, 0, opened)
                return
            handle = opened.enter_context(_SmallReads(open_regular(path).detach()))
            archive = opened.enter_context(zipfile.ZipFile(handle))
            yield PackFiles(path, archive, os.fstat(handle.fileno()).st_size, opened)
        except FileNotFoundError as error:
            raise _missing(path, Path(error.filename).name) from None
        except zipfile.BadZipFile as error:
            raise CheckpointError(f"{path} is not a pack, or it is truncated ({error}). {AGAIN}") from None
        # What zipfile raises for an archive of a kind that we do not write, or that was damaged.
        except (NotImplementedError, RuntimeError, EOFError, zlib.error, struct.error, UnicodeError) as error:
            raise CheckpointError(f"{path} is damaged ({error}). {AGAIN}") from None
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read: {error.strerror or error}.") from None


def write_archive(path: Path, files: Mapping[str, bytes]) -> None:
    """The same files give the same archive, at any time."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)


def is_pack(path: Path) -> bool:
    """Whether this looks like a pack, without a look at what is in it."""
    return (path / DOCUMENT).is_file() or path.suffix == ARCHIVE or (path.is_file() and zipfile.is_zipfile(path))


class _SmallReads(io.BufferedReader):
    """A file that gives little at once: zipfile reads an archive's directory whole, whatever size it claims to have."""

    def read(self, size: int | None = -1, /) -> bytes:
        content = super().read(LARGEST_READ + 1 if size is None or size < 0 else min(size, LARGEST_READ + 1))
        if len(content) > LARGEST_READ:
            raise zipfile.BadZipFile("its directory is too large")
        return content


def _missing(path: Path, name: str) -> GraftError:
    if not path.exists():
        return GraftError(f"there is no pack {path}; make one with `graftmt add LANG`.")
    if mistaken := instead_of_pack(path):
        return CheckpointError(f"{path} is not a pack: {mistaken}")
    if name == DOCUMENT and not (path / TENSORS).exists():
        inside = path / "pack"
        hint = f"did you mean {inside}?" if (inside / DOCUMENT).is_file() else "give the folder or the file of one."
        return CheckpointError(f"{path} is not a pack, for it has no {DOCUMENT}; {hint}")
    return CheckpointError(f"{path} is not a whole pack: it lacks {name}. {AGAIN}")
