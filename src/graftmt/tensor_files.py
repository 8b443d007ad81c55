"""Tensors in safetensors files: written whole, hashed without copies, and read with checks before memory is taken. Layer 1.

What a file's header says must agree with itself and with the file's size, and be what the reader expects, before a tensor
is read. Then each tensor is copied into memory of its own: nothing that later happens to the file changes it.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from graftmt.documents import LARGEST_DOCUMENT, check_fields, parse_document
from graftmt.errors import CheckpointError, first_few
from graftmt.files import open_regular

KINDS = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
"""The names that safetensors gives to kinds of numbers."""
WEIGHTS = (torch.float32, torch.bfloat16, torch.float16)
"""Those that a base or a pack is stored in."""

COPY = "Restore it from a copy."

_LONGEST_SIDE = 2**40  # of a shape; one with a zero in it may say anything for the others
_MOST_SIDES = 8
_READ = 2**20  # bytes at a time
_WINDOW = 2**22  # numbers that are checked, hashed and converted at a time


class Digest(Protocol):
    """A hash in the making, such as hashlib.sha256()."""

    def update(self, data: Any, /) -> None: ...


@dataclass(frozen=True)
class Stored:
    """What the header says of one tensor; `start` and `end` are counted from the end of the header."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    end: int


class TensorFile:
    """An open safetensors file of `size` bytes whose header is sound. No tensor has been read yet.

    `name` is what errors call it. The stream is read once, from its beginning to its end.
    """

    def __init__(self, stream: IO[bytes], size: int, name: str, found: os.stat_result | None = None) -> None:
        """`found`: what the system says of the file, where it is one of its own."""
        self.name, self.found = name, found
        self._stream = stream
        self.tensors = self._read_header(size)

    def check(self, expected: Mapping[str, tuple[int, ...]], says: str) -> None:
        """An error unless it has exactly these tensors, in these shapes, stored as weights; `says` names who expects them."""
        for words, names in (
            ("lacks", expected.keys() - self.tensors.keys()),
            ("has unexpected", self.tensors.keys() - expected.keys()),
        ):
            if names:
                listed = first_few(sorted(name[:80] for name in names), 5)
                raise CheckpointError(f"{self.name} {words} tensors, for {says}: {listed}. {COPY}")
        for name, shape in expected.items():
            found = self.tensors[name]
            if found.shape != shape:
                raise CheckpointError(f"{self.name}: tensor {name} has shape {found.shape}; {says} gives {shape}. {COPY}")
            if found.dtype not in WEIGHTS:
                raise CheckpointError(f"{self.name}: tensor {name} is of {found.dtype}; expected one of {WEIGHTS}. {COPY}")

    def look(self) -> os.stat_result:
        """What the system says of the file now."""
        return os.fstat(self._stream.fileno())

    def read(self) -> Iterator[tuple[str, Tensor]]:
        """Each tensor, in memory of its own, in the order of their names; what comes too early in the file waits."""
        waiting: dict[str, Tensor] = {}
        order = iter(sorted(self.tensors))
        turn = next(order, None)
        for name in self._file_order():
            waiting[name] = self._read_tensor(self.tensors[name])
            while turn is not None and turn in waiting:
                yield turn, waiting.pop(turn)
                turn = next(order, None)

    def weights(
        self, digest: Digest | None = None, dtype: torch.dtype | None = None, *, known: bool = False
    ) -> Iterator[tuple[str, Tensor]]:
        """The same, as `dtype`. Numbers that are not finite are an error, and `digest` hears exactly the bytes that were read.

        Where the file has the tensors in the order of their names, as those do that graftmt writes, they are converted while
        they are read, without room for both. `known`: these very bytes were looked at before.
        """
        names = sorted(self.tensors)
        if names == self._file_order():
            for name in names:
                yield name, self._read_weight(name, digest, dtype, known)
            return
        for name, tensor in self.read():
            if not known:
                self._check_finite(name, tensor)
            if digest is not None:
                hash_tensor(digest, name, tensor)
            yield name, tensor if dtype is None else tensor.to(dtype)

    def _file_order(self) -> list[str]:
        return sorted(self.tensors, key=lambda name: (self.tensors[name].start, self.tensors[name].end))

    def _read_weight(self, name: str, digest: Digest | None, dtype: torch.dtype | None, known: bool) -> Tensor:
        """One tensor, in windows where it is converted."""
        stored = self.tensors[name]
        if digest is not None:
            digest.update(_heading(name, stored.dtype, stored.shape))
        tensor = _memory(stored.shape, dtype or stored.dtype)
        whole = tensor.view(-1)
        window = None if tensor.dtype == stored.dtype else _memory((min(_WINDOW, len(whole)),), stored.dtype)
        for start in range(0, len(whole), _WINDOW):
            place = whole[start : start + _WINDOW]
            part = place if window is None else window[: len(place)]
            self._fill(bytes_of(part))
            if not known:
                self._check_finite(name, part)
            if digest is not None:
                digest.update(bytes_of(part))
            if window is not None:
                place.copy_(part)
        return tensor

    def _check_finite(self, name: str, tensor: Tensor) -> None:
        if not is_finite(tensor):
            raise CheckpointError(f"{self.name}: tensor {name} has numbers that are not finite (NaN or Inf). {COPY}")

    def _read_header(self, size: int) -> dict[str, Stored]:
        length = int.from_bytes(self._read_bytes(8), "little") if size >= 8 else size
        if not 2 <= length <= min(size - 8, LARGEST_DOCUMENT):
            self._damaged(f"a file of {size:,} bytes cannot have a header of {length:,}")
        try:
            entries = parse_document(self._read_bytes(length))
            entries.pop("__metadata__", None)
            tensors = {name: _stored(name, entry) for name, entry in entries.items()}
        except ValueError as error:
            self._damaged(str(error))
        end = 0
        for name in sorted(tensors, key=lambda name: (tensors[name].start, tensors[name].end)):
            if tensors[name].start != end:
                self._damaged(f"{name[:80]} begins at byte {tensors[name].start:,}, not {end:,}")
            end = tensors[name].end
        if end != size - 8 - length:
            self._damaged(f"its header speaks of {end:,} bytes, and it has {size - 8 - length:,}")
        return tensors

    def _read_bytes(self, count: int) -> bytes:
        content = bytearray(count)
        self._fill(memoryview(content))
        return bytes(content)

    def _read_tensor(self, stored: Stored) -> Tensor:
        tensor = _memory(stored.shape, stored.dtype)
        self._fill(bytes_of(tensor))
        return tensor

    def _fill(self, memory: memoryview) -> None:
        start = 0
        while start < len(memory):
            try:
                count = self._stream.readinto(memory[start : start + _READ])  # type: ignore[attr-defined]
            except OSError as error:
                raise CheckpointError(f"{self.name} cannot be read: {error.strerror or error}.") from None
            if not count:
                self._damaged("it ends early")
            start += count

    def _damaged(self, reason: str) -> NoReturn:
        raise CheckpointError(f"{self.name} is truncated or damaged ({reason}). {COPY}")


def _memory(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Room for a tensor. A large one has pages of its own, which go back to the system; malloc would keep holes."""
    size = math.prod(shape) * dtype.itemsize
    if size < _READ:
        return torch.empty(shape, dtype=dtype)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return torch.frombuffer(pages, dtype=dtype).view(shape)


def _stored(name: str, entry: Any) -> Stored:
    """One entry of a header, or a ValueError."""
    if not name.isprintable():  # it is shown in errors
        raise ValueError(f"{name[:80]!r} cannot be the name of a tensor")
    if not isinstance(entry, dict) or not isinstance(entry.get("dtype"), str) or entry["dtype"] not in KINDS:
        raise ValueError(f"the entry of {name[:80]!r} is not one of a tensor")
    for key in ("shape", "data_offsets"):
        check_fields(entry.get(key), list[int], f"{name[:80]}.{key}")
    dtype, shape, offsets = KINDS[entry["dtype"]], tuple(entry["shape"]), entry["data_offsets"]
    if len(shape) > _MOST_SIDES or not all(0 <= side <= _LONGEST_SIDE for side in shape) or len(offsets) != 2:
        raise ValueError(f"{name[:80]!r} cannot have the shape {shape[:_MOST_SIDES]}")
    start, end = offsets
    if start < 0 or end - start != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{name[:80]!r} of shape {shape} does not have {end - start:,} bytes")
    return Stored(dtype, shape, start, end)


@contextmanager
def open_tensors(path: Path, what: str) -> Iterator[TensorFile]:
    """A safetensors file with a sound header, or an error that says it is missing or damaged; `what` names its owner."""
    try:
        handle = open_regular(path)
    except FileNotFoundError:
        raise CheckpointError(f"{what}: there is no file {path}; the folder is incomplete.") from None
    except OSError as error:
        raise CheckpointError(f"{what}: {path} cannot be read: {error.strerror}.") from None
    with handle:
        found = os.fstat(handle.fileno())
        yield TensorFile(handle, found.st_size, f"{what}: {path}", found)


def read_tensors(path: Path, what: str) -> dict[str, Tensor]:
    """All tensors of a file, whatever they are."""
    with open_tensors(path, what) as file:
        return dict(file.read())


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """A safetensors file. What the disk refuses is an OSError here as everywhere, not safetensors' own error."""
    try:
        save_file(dict(tensors), path, metadata)
    except SafetensorError as error:
        raise OSError(str(error)) from error
    path.chmod(0o644)  # as other files: a base is served by users other than the one who made it


def hash_tensors(digest: Digest, tensors: Mapping[str, Tensor]) -> None:
    """Adds every tensor's name, dtype, shape and bytes to a hash, in the order of their names."""
    for name in sorted(tensors):
        hash_tensor(digest, name, tensors[name])


def hash_tensor(digest: Digest, name: str, tensor: Tensor) -> None:
    digest.update(_heading(name, tensor.dtype, tensor.shape))
    digest.update(bytes_of(tensor.detach().cpu().contiguous()))


def _heading(name: str, dtype: torch.dtype, shape: Sequence[int]) -> bytes:
    """What a hash hears before the bytes of a tensor."""
    return f"{name} {dtype} {tuple(shape)}".encode()


def bytes_of(tensor: Tensor) -> memoryview:
    """The memory of a contiguous tensor in host memory; nothing is copied."""
    return tensor.reshape(-1).view(torch.uint8).numpy().data


def is_finite(tensor: Tensor) -> bool:
    """Whether a tensor of floating-point numbers has neither NaN nor Inf: its extremes tell, in one pass without a copy."""
    return not tensor.numel() or all(math.isfinite(extreme) for extreme in map(float, torch.aminmax(tensor.detach())))
