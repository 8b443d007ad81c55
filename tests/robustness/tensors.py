"""Damage to safetensors files: headers that lie about shapes, types and places, and values that are no numbers."""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from random import Random
from typing import Any

SHAPES = (
    [0, 2**63],
    [2**63, 0],
    [0, 2**62, 2**62],
    [-1],
    [2**40],
    [2**31, 2**31, 2**31],
    [],
    [0],
    [1, 1],
    ["8"],
    None,
    8,
    [1.5],
    [10**5000 % 10**40],
)
DTYPES = ("F64", "F32", "F16", "BF16", "I8", "U8", "BOOL", "I64", "F8_E4M3", "F4", "X", "", None, 1, ["F32"])
LENGTHS = (0, 1, 7, 2**20, 2**31, 2**40, 2**62, 2**63, 2**64 - 1)


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def join(header: dict[str, Any] | str, values: bytes, length: int | None = None) -> bytes:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text) if length is None else length) + text + values


def mutate_tensors(chance: Random, data: bytes) -> tuple[str, bytes]:
    """A file with a header, or values, that cannot be right; and what was done."""
    while True:
        what, damaged = _damaged(chance, data)
        with suppress(ValueError, RecursionError, struct.error):
            if split(damaged) == split(data):
                continue  # a square matrix was transposed in name
        return what, damaged


def _damaged(chance: Random, data: bytes) -> tuple[str, bytes]:
    header, values = split(data)
    names = [name for name in header if name != "__metadata__"]
    name = chance.choice(names)
    entry = header[name]
    kind = chance.choice(
        ("shape", "shape", "dtype", "offsets", "offsets", "length", "names", "values", "values", "header", "extra")
    )
    if kind == "shape":
        entry["shape"] = chance.choice(
            (*SHAPES, entry["shape"][::-1], [*entry["shape"], 1], [2 * size for size in entry["shape"]])
        )
        return f"{name}: shape {str(entry['shape'])[:60]}", join(header, values)
    if kind == "dtype":
        entry["dtype"] = chance.choice(DTYPES)
        return f"{name}: dtype {entry['dtype']!r}", join(header, values)
    if kind == "offsets":
        return _offsets(chance, header, values, name)
    if kind == "length":
        length = chance.choice((*LENGTHS, len(data), len(data) - 8))
        return f"header length {length}", join(header, values, length)
    if kind == "names":
        return _names(chance, header, values, name)
    if kind == "values":
        return _values(chance, header, values, name)
    if kind == "extra":
        size = chance.choice((4, 1 << 20))
        header["extra"] = {"dtype": "U8", "shape": [size], "data_offsets": [len(values), len(values) + size]}
        return f"one more tensor of {size} bytes", join(header, values + bytes(size))
    text = chance.choice(
        (
            "",
            "{}",
            "[]",
            "null",
            "[" * 100_000,
            '{"a":' * 50_000,
            json.dumps(header)[:-5],
            json.dumps(header) + "x",
            "\x00",
            '{"__metadata__": {"a": 1}}',
        )
    )
    return f"header {text[:30]!r}", join(text, values)


def _offsets(chance: Random, header: dict[str, Any], values: bytes, name: str) -> tuple[str, bytes]:
    start, end = header[name]["data_offsets"]
    other = chance.choice([entry for key, entry in header.items() if key != "__metadata__"])
    header[name]["data_offsets"] = chance.choice(
        (
            other["data_offsets"],
            [end, start],
            [start, end + 4],
            [start - 4, end],
            [start + 4, end + 4],
            [0, len(values)],
            [0, 2**63],
            [2**63, 2**64 - 1],
            [-4, 0],
            [start],
            None,
            ["0", "4"],
        )
    )
    return f"{name}: offsets {header[name]['data_offsets']}", join(header, values)


def _names(chance: Random, header: dict[str, Any], values: bytes, name: str) -> tuple[str, bytes]:
    if chance.random() < 0.5:
        others = [
            key
            for key, entry in header.items()
            if key not in (name, "__metadata__") and entry["shape"] == header[name]["shape"]
        ]
        other = chance.choice(others or [name + "x"])
        header[name], header[other] = header.get(other, header[name]), header[name]
        return f"{name} and {other} exchanged", join(header, values)
    new = chance.choice(("", "../x", "\x1b[31m", "x" * 100_000, "\ud800", "embedding", name.upper()))
    header[new] = header.pop(name)
    return f"{name} renamed {new[:20]!r}", join(header, values)


def _values(chance: Random, header: dict[str, Any], values: bytes, name: str) -> tuple[str, bytes]:
    start, end = header[name]["data_offsets"]
    place = start + 4 * chance.randrange(max(1, (end - start) // 4))
    number = chance.choice((float("nan"), float("inf"), -float("inf"), 3.4e38, 1e-45, 0.0, 1.0))
    changed = values[:place] + struct.pack("<f", number) + values[place + 4 :]
    if changed == values:
        changed = values[:place] + struct.pack("<f", 2.0) + values[place + 4 :]
    return f"{name}: a value {number}", join(header, changed)
