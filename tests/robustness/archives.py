"""Hostile .graftpack files: zip archives that lie about sizes, names and kinds of their members, or unfold to gigabytes."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from functools import cache
from random import Random

BOMB = 1 << 29
"""Bytes that a small member unfolds to."""
TIME = (1980, 1, 1, 0, 0, 0)
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def read_members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_archive(members: list[tuple[str | zipfile.ZipInfo, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members:
            info = name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo(name, TIME)
            info.compress_type = method
            archive.writestr(info, content)
    return buffer.getvalue()


def mutate_archive(chance: Random, data: bytes, evil: str) -> tuple[str, bytes]:
    """An archive that nobody should trust, and what is wrong with it; `evil` is a path that nothing may be written to."""
    members = list(read_members(data).items())
    index = chance.randrange(len(members))
    name, content = members[index]
    kind = chance.choice(KINDS)
    if kind == "twice":
        other = chance.choice((content, b"", content[: len(content) // 2], b"{}"))
        return f"{name} twice", _quietly([*members, (name, other)] if chance.random() < 0.5 else [(name, other), *members])
    if kind == "link":
        info = zipfile.ZipInfo(name, TIME)
        info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        return f"{name} is a link", _quietly([*members[:index], (info, evil.encode()), *members[index + 1 :]])
    if kind == "device":
        info = zipfile.ZipInfo(name, TIME)
        info.create_system, info.external_attr = 3, (chance.choice((stat.S_IFIFO, stat.S_IFCHR, stat.S_IFDIR)) | 0o777) << 16
        return f"{name} is a device", _quietly([*members[:index], (info, content), *members[index + 1 :]])
    if kind == "name":
        new = chance.choice((evil, "../../evil", f"./{name}", f"x/{name}", name.upper(), f"{name}/", f"{name}\x00x", "é", ""))
        return f"{name} named {new!r}", _quietly([*members[:index], (new, content), *members[index + 1 :]])
    if kind == "more":
        extra = chance.choice(([(evil, b"x")], [("../../evil", b"x")], [(f"x{number}", b"") for number in range(20_000)]))
        return f"{len(extra)} members more", _quietly([*members, *extra])
    if kind == "method":
        method = chance.choice(METHODS)
        return f"compressed by method {method}", write_archive(members, method)  # type: ignore[arg-type]
    if kind == "bomb":
        return f"{name} unfolds to {BOMB:,} bytes", _with_bomb(members, name)
    if kind == "missing":
        return f"without {name}", _quietly([*members[:index], *members[index + 1 :]])
    if kind == "nested":
        return "an archive in an archive", _quietly([("pack.graftpack", data)])
    return _patched(chance, data, name, kind)


KINDS = (
    "twice",
    "link",
    "device",
    "name",
    "more",
    "method",
    "bomb",
    "missing",
    "nested",
    "flag",
    "sizes",
    "sizes",
    "crc",
    "unknown-method",
    "prefix",
    "offset",
    "count",
)


def _patched(chance: Random, data: bytes, name: str, kind: str) -> tuple[str, bytes]:
    """The archive with a field of a header overwritten, where the zip format says it is."""
    changed = bytearray(data)
    central = data.index(b"PK\x01\x02")
    entry = data.index(name.encode(), central) - 46
    local = struct.unpack_from("<I", data, entry + 42)[0]
    end = data.rindex(b"PK\x05\x06")
    huge = chance.choice((0, 1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF))
    if kind == "flag":
        flags = chance.choice((1, 1 << 3, 1 << 5, 1 << 6, 1 << 11, 0xFFFF))
        struct.pack_into("<H", changed, entry + 8, flags)
        struct.pack_into("<H", changed, local + 6, flags)
    elif kind == "sizes":
        for place in chance.choice(([entry + 20], [entry + 24], [entry + 20, entry + 24], [local + 18, local + 22])):
            struct.pack_into("<I", changed, place, huge)
    elif kind == "crc":
        struct.pack_into("<I", changed, entry + 16, chance.getrandbits(32))
    elif kind == "unknown-method":
        struct.pack_into("<H", changed, entry + 10, chance.choice((1, 6, 9, 93, 99, 0xFFFF)))
    elif kind == "prefix":
        return "bytes before the archive", chance.randbytes(chance.choice((1, 100, 70_000))) + data
    elif kind == "offset":
        struct.pack_into("<I", changed, chance.choice((entry + 42, end + 16)), huge)
    else:
        struct.pack_into("<H", changed, chance.choice((end + 8, end + 10, end + 4, end + 20)), chance.choice((0, 1, 0xFFFF)))
    return f"{name}: {kind} of the zip", bytes(changed)


def prepare() -> None:
    """Makes what takes seconds once, before processes part."""
    _bomb()
    _zero_checksum()


@cache
def _bomb() -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = bytes(1 << 24)
    return b"".join([*(compressor.compress(block) for _ in range(BOMB >> 24)), compressor.flush()])


def _with_bomb(members: list[tuple[str, bytes]], name: str) -> bytes:
    """The member's bytes, then gigabytes of zeros in a megabyte. Sizes and checksum are as they should be."""
    folded, checksum = _bomb(), _zero_checksum()
    stored = write_archive([(one, b"" if one == name else content) for one, content in members])  # type: ignore[list-item]
    central = stored.index(b"PK\x01\x02")
    entry = stored.index(name.encode(), central) - 46
    local = struct.unpack_from("<I", stored, entry + 42)[0]
    changed = bytearray(stored)
    for place, method in ((entry + 10, entry + 16), (local + 8, local + 14)):
        struct.pack_into("<H", changed, place, zipfile.ZIP_DEFLATED)
        struct.pack_into("<III", changed, method, checksum, len(folded), BOMB)
    start = local + 30 + len(name.encode())
    later = [place for place in _entries(stored, central) if struct.unpack_from("<I", stored, place + 42)[0] > local]
    for place in later:
        struct.pack_into("<I", changed, place + 42, struct.unpack_from("<I", stored, place + 42)[0] + len(folded))
    end = stored.rindex(b"PK\x05\x06")
    struct.pack_into("<I", changed, end + 16, central + len(folded))
    return bytes(changed[:start]) + folded + bytes(changed[start:])


def _entries(data: bytes, central: int) -> list[int]:
    places, place = [], central
    while data[place : place + 4] == b"PK\x01\x02":
        places.append(place)
        place += 46 + sum(struct.unpack_from("<HHH", data, place + 28))
    return places


@cache
def _zero_checksum() -> int:
    checksum, block = 0, bytes(1 << 24)
    for _ in range(BOMB >> 24):
        checksum = zlib.crc32(block, checksum)
    return checksum


def _quietly(members: list[tuple[str | zipfile.ZipInfo, bytes]]) -> bytes:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of names that are there twice
        return write_archive(members)
