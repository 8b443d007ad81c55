"""Random damage to a file's bytes, as disks, transfers and careless programs do it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Mutation = Callable[[Random, bytes], bytes]


def flip_bits(chance: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 8, 64))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def change_byte(chance: Random, data: bytes) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]


def random_run(chance: Random, data: bytes) -> bytes:
    start, length = _stretch(chance, data)
    return data[:start] + chance.randbytes(length) + data[start + length :]


def zero_run(chance: Random, data: bytes) -> bytes:
    start, length = _stretch(chance, data)
    return data[:start] + bytes(length) + data[start + length :]


def truncate(chance: Random, data: bytes) -> bytes:
    return data[: chance.choice((0, 1, 7, 8, len(data) // 2, len(data) - 1, chance.randrange(len(data))))]


def extend(chance: Random, data: bytes) -> bytes:
    return data + chance.choice((b"\0", b"\n", bytes(4096), chance.randbytes(chance.randint(1, 600)), data))


def swap_blocks(chance: Random, data: bytes) -> bytes:
    length = max(1, min(len(data) // 3, chance.choice((1, 2, 8, 64, 512))))
    first = chance.randrange(max(1, len(data) - 2 * length))
    second = chance.randrange(first + length, max(first + length + 1, len(data) - length + 1))
    one, other = data[first : first + length], data[second : second + length]
    return data[:first] + other + data[first + length : second] + one + data[second + length :]


def duplicate_block(chance: Random, data: bytes) -> bytes:
    start, length = _stretch(chance, data)
    return data[: start + length] + data[start:]


def delete_block(chance: Random, data: bytes) -> bytes:
    start, length = _stretch(chance, data)
    return data[:start] + data[start + length :]


def insert_block(chance: Random, data: bytes) -> bytes:
    place = chance.randrange(len(data) + 1)
    return data[:place] + chance.randbytes(chance.choice((1, 2, 3, 4, 8, 100))) + data[place:]


def change_digit(chance: Random, data: bytes) -> bytes:
    """Where a text file holds numbers, those are what damage hides in best."""
    places = [place for place, value in enumerate(data[:200_000]) if 48 <= value <= 57]
    if not places:
        return change_byte(chance, data)
    place = chance.choice(places)
    return data[:place] + str(chance.randrange(10)).encode() + data[place + 1 :]


MUTATIONS: tuple[Mutation, ...] = (
    *(flip_bits, flip_bits, change_byte, change_byte, random_run, zero_run, truncate, extend),
    *(swap_blocks, duplicate_block, delete_block, insert_block, change_digit),
)


def mutate(chance: Random, data: bytes) -> tuple[str, bytes]:
    """Damaged bytes, which differ from the sound ones, and what was done."""
    if not data:
        return "extend", chance.randbytes(chance.randint(1, 100))
    while True:
        mutation = chance.choice(MUTATIONS)
        changed = mutation(chance, data)
        if changed != data:
            return mutation.__name__, changed


def _stretch(chance: Random, data: bytes) -> tuple[int, int]:
    length = min(len(data), chance.choice((1, 2, 4, 8, 16, 64, 512)))
    return chance.randrange(len(data) - length + 1), length
