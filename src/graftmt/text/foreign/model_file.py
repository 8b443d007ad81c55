"""SentencePiece models that anyone may have made: what must hold before the library may use one. Layer 1.

The library follows a model's table of character rules without looking where it leads: a damaged table reads beyond its end.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

LARGEST_MODEL = 2**26
"""Bytes: fourteen times those of NLLB-200's, which has 256,000 pieces."""

_NORMALIZERS, _CHARACTER_RULES = (3, 5), 2  # numbers of fields: normalizer_spec, denormalizer_spec; precompiled_charsmap
_LENGTH_DELIMITED = 2


def check_model(content: bytes) -> None:
    """A ValueError where this is no model, or where its table of character rules is damaged."""
    for number, value in message_fields(content):
        if number in _NORMALIZERS:
            for inner, rules in message_fields(value):
                if inner == _CHARACTER_RULES and rules:
                    check_character_rules(rules)


def check_character_rules(content: bytes) -> None:
    """Whether every step through the table stays inside it.

    The table is a double array: each unit has an offset, from which the next unit is found for any of the 256 bytes. A unit
    may also lead to a value, which is a place among the replacements; these end with a zero byte each.
    """
    size = int.from_bytes(content[:4], "little")
    replacements = content[4 + size :]
    if size % 1024 or not 0 < size <= len(content) - 4 or not replacements.endswith(b"\0"):
        raise ValueError("its character rules have sizes that do not agree")
    units = np.frombuffer(content, dtype="<u4", count=size // 4, offset=4).astype(np.int64)
    is_value = units >> 31 == 1
    offsets = (units >> 10) << ((units & (1 << 9)) >> 6)
    targets = (np.arange(len(units)) ^ offsets)[~is_value]  # a byte changes the last eight bits alone
    if (targets >> 8 >= len(units) >> 8).any():
        raise ValueError("its character rules lead beyond their table")
    leaf = ~is_value & (units >> 8 & 1 == 1)
    values = units[(np.arange(len(units)) ^ offsets)[leaf]] & (2**31 - 1)
    if (values >= len(replacements)).any():
        raise ValueError("its character rules lead beyond their replacements")


def message_fields(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbers and contents of a message's fields, without those that are numbers themselves."""
    return ((number, value) for number, value in _all_fields(content) if isinstance(value, bytes))


def message_numbers(content: bytes) -> Iterator[tuple[int, int]]:
    """Those that are numbers."""
    return ((number, value) for number, value in _all_fields(content) if isinstance(value, int))


def _all_fields(content: bytes) -> Iterator[tuple[int, bytes | int]]:
    place = 0
    while place < len(content):
        key, place = _number(content, place)
        wire = key & 7
        if wire == _LENGTH_DELIMITED:
            length, place = _number(content, place)
            if length > len(content) - place:
                raise ValueError("it ends too early")
            yield key >> 3, content[place : place + length]
            place += length
        elif wire == 0:
            value, place = _number(content, place)
            yield key >> 3, value
        elif wire in (1, 5):
            place += 8 if wire == 1 else 4
        else:
            raise ValueError("it is no SentencePiece model")


def _number(content: bytes, place: int) -> tuple[int, int]:
    """A number of variable length, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(content):
            raise ValueError("it ends too early")
        value |= (content[place] & 127) << shift
        place += 1
        if content[place - 1] < 128:
            return value, place
    raise ValueError("it is no SentencePiece model")
