"""The bases and packs in a folder on this machine, each read and checked as whoever pulls it will. Layer 5."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from graftmt.base import Base, read_base_document
from graftmt.documents import LARGEST_DOCUMENT
from graftmt.errors import GraftError
from graftmt.files import LARGEST_TEXT
from graftmt.packs import is_pack, load_pack, read_pack_document
from graftmt.packs.archive import ARCHIVE, open_pack
from graftmt.places import BASE, PACK, PACK_FILES
from graftmt.sharing.checksums import checksum_of
from graftmt.sharing.connections import SharingError
from graftmt.sharing.offers import DOCUMENTS, MOST_PARTS, Offer, OfferedFile, ThingKind, facts_of
from graftmt.text.stored import StoredText

MOST_THINGS = 2_000


def kind_of_thing(path: Path) -> ThingKind:
    """Whether there is a base or a pack; anything else is an error."""
    if BASE.is_one(path):
        return "base"
    if path.exists() and (PACK.is_one(path) or is_pack(path)):
        return "pack"
    raise GraftError(f"{path} is neither a base nor a pack; give the folder of one, or a {ARCHIVE} file.")


def read_thing(kind: ThingKind, path: Path) -> dict[str, Any]:
    """Its document, once all of it was read and has its fingerprint."""
    if kind == "pack":
        load_pack(path)
        return read_pack_document(path)
    document = read_base_document(path)
    Base.load(path, dtype=document.get("dtype", "fp32"))
    return document


def check_document(kind: ThingKind, content: bytes, where: str) -> dict[str, Any]:
    """base.json or pack.json from anywhere, with all checks that it needs no other file for."""
    with tempfile.TemporaryDirectory(prefix="graftmt-") as place:
        folder = Path(place)
        (folder / DOCUMENTS[kind][0]).write_bytes(content)
        try:
            return read_pack_document(folder) if kind == "pack" else read_base_document(folder)
        except GraftError as error:
            raise SharingError(f"{where}: {str(error).replace(str(folder), where)}") from None


def file_names(kind: ThingKind, document: Mapping[str, Any]) -> tuple[str, ...]:
    """What a base or a pack consists of, with the files of its text."""
    codes = document["codes"] if kind == "pack" else document["languages"]
    return (*DOCUMENTS[kind], *StoredText.of(document, codes).names)


def unpack(archive: Path, folder: Path) -> None:
    """The files of a pack from one archive into a new folder."""
    folder.mkdir()
    with open_pack(archive) as files:
        document = check_document("pack", files.read(PACK_FILES[0], LARGEST_DOCUMENT), str(archive))
        for name in file_names("pack", document):
            member = files.open(name)
            with (folder / name).open("wb") as target:
                shutil.copyfileobj(member.stream, target)


def offer_of(path: Path, name: str) -> Offer:
    """A base or a pack on the disk as an offer with this name; damaged ones are an error."""
    kind = kind_of_thing(path)
    document = read_thing(kind, path)
    archive = path.is_file()
    stored = {name + ARCHIVE: path} if archive else {f"{name}/{one}": path / one for one in file_names(kind, document)}
    card = path / DOCUMENTS[kind][2]
    if not archive and card.is_file() and card.stat().st_size > LARGEST_TEXT:
        raise SharingError(
            f"{card} has {card.stat().st_size:,} bytes, where a card has some thousands; restore it, or remove it."
        )
    # The card is for people, and may have been lost.
    present = {shown: file for shown, file in stored.items() if file.is_file()}
    files = tuple(
        OfferedFile(path=shown, size=file.stat().st_size, checksum=checksum_of(file)) for shown, file in present.items()
    )
    try:
        return Offer(name=name, files=files, **facts_of(kind, document))
    except ValueError as error:
        raise SharingError(f"{path} cannot be shared under the name {name!r}: {error}.") from None


def find_things(folder: Path) -> Iterator[tuple[str, Path]]:
    """Names and paths of all bases and packs below a folder, in order; links to folders are not followed."""
    found = 0
    for place, folders, files in os.walk(folder):
        here = Path(place)
        depth = len(here.relative_to(folder).parts)
        folders[:] = sorted(one for one in folders if not one.startswith(".")) if depth < MOST_PARTS - 1 else []
        for path in [here] * (here != folder) + [here / one for one in sorted(files) if one.endswith(ARCHIVE)]:
            if path.is_file() or BASE.is_one(path) or PACK.is_one(path):
                found += 1
                if found > MOST_THINGS:
                    raise SharingError(
                        f"{folder} has more than {MOST_THINGS:,} bases and packs; make an index of a part of it."
                    )
                yield str(PurePosixPath(path.relative_to(folder))).removesuffix(ARCHIVE), path
        if here != folder and (BASE.is_one(here) or PACK.is_one(here)):
            folders[:] = []
