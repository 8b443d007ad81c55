"""Damage to SentencePiece models: protocol buffers whose pieces, scores, kinds and rules are changed one by one."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from random import Random

Field = tuple[int, int, bytes]
"""Number, wire type, and the bytes after the tag: of a message or a text without its length."""
PIECE, TRAINER, NORMALISER = 1, 2, 3
TEXTS = (
    b"",
    b"\xff\xfe",
    b"\0",
    "▁".encode(),
    b"<unk>",
    b"<s>",
    b"</s>",
    b"<U>",
    b"<0x41>",
    b"x" * 100_000,
    b"\x1b[31m",
    "\ud800".encode(errors="surrogatepass"),
    b"a b",
    b"\n",
)


def read_fields(data: bytes) -> Iterator[Field]:
    place = 0
    while place < len(data):
        tag, place = _read_number(data, place)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            start = place
            _, place = _read_number(data, place)
            yield number, kind, data[start:place]
        else:
            length, place = _read_number(data, place) if kind == 2 else ({1: 8, 5: 4}[kind], place)
            yield number, kind, data[place : place + length]
            place += length


def write_fields(fields: list[Field]) -> bytes:
    return b"".join(
        _number(number << 3 | kind) + (_number(len(content)) if kind == 2 else b"") + content
        for number, kind, content in fields
    )


def mutate_subwords(chance: Random, data: bytes) -> tuple[str, bytes]:
    """A model that is still a protocol buffer, but not the same; and what was done."""
    fields = list(read_fields(data))
    pieces = [index for index, field in enumerate(fields) if field[0] == PIECE]
    index = chance.choice(pieces)
    kind = chance.choice(("text", "text", "score", "type", "remove", "twice", "swap", "rules", "drop", "many", "none"))
    if kind in ("text", "score", "type"):
        fields[index] = (PIECE, 2, write_fields(_changed_piece(chance, fields[index][2], kind)))
    elif kind == "remove":
        del fields[index]
    elif kind == "twice":
        fields.insert(chance.randrange(len(fields)), fields[index])
    elif kind == "swap":
        other = chance.choice(pieces)
        fields[index], fields[other] = fields[other], fields[index]
    elif kind == "rules":
        _change_rules(chance, fields)
    elif kind == "drop":
        number = chance.choice((PIECE, TRAINER, NORMALISER))
        fields = [field for field in fields if field[0] != number]
    elif kind == "many":
        fields += [(PIECE, 2, write_fields([(1, 2, f"x{count}".encode()), (2, 5, bytes(4))])) for count in range(50_000)]
    else:
        fields = [(PIECE, 2, b"")] * chance.choice((1, 3))
    return f"subword model: {kind} at piece {index}", write_fields(fields)


def _changed_piece(chance: Random, piece: bytes, kind: str) -> list[Field]:
    fields = {field[0]: field for field in read_fields(piece)}
    if kind == "text":
        fields[1] = (1, 2, chance.choice(TEXTS))
    elif kind == "score":
        fields[2] = (2, 5, struct.pack("<f", chance.choice((float("nan"), float("inf"), -1e38, 0.0, 5.0))))
    else:
        fields[3] = (3, 0, _number(chance.choice((0, 1, 2, 3, 4, 5, 6, 7, 2**40))))
    return [fields[number] for number in sorted(fields)]


def _change_rules(chance: Random, fields: list[Field]) -> None:
    """One field of the trainer's or the normaliser's specification is dropped, or gets other bytes."""
    specifications = [index for index, field in enumerate(fields) if field[0] in (TRAINER, NORMALISER)]
    index = chance.choice(specifications)
    inner = list(read_fields(fields[index][2]))
    place = chance.randrange(len(inner))
    number, kind, content = inner[place]
    if chance.random() < 0.3:
        del inner[place]
    elif kind == 0:
        inner[place] = (number, kind, _number(chance.choice((0, 1, 2, 3, 1000, 2**40))))
    else:
        inner[place] = (
            number,
            kind,
            chance.randbytes(len(content)) if kind == 5 else chance.choice((b"", b"nmt_nfkc", b"\xff" * 40)),
        )
    fields[index] = (fields[index][0], 2, write_fields(inner))


def _read_number(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def _number(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])
