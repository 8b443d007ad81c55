"""The index of a folder of bases and packs, graftmt-index.json: what is there, with sizes and checksums. Layer 5."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from graftmt.documents import check_fields, parse_document
from graftmt.errors import CheckpointError, GraftError, first_few, nearest
from graftmt.sharing.offers import Offer, OfferEntry

INDEX = "graftmt-index.json"
FORMAT = 1
LARGEST_INDEX = 4 * 2**20
"""Bytes; one pack has some 1,500 of them."""


class IndexDocument(TypedDict):
    """graftmt-index.json, apart from its format."""

    kind: Literal["index"]
    revision: str
    offers: list[OfferEntry]


@dataclass(frozen=True)
class Listing:
    """What a store offers at one revision."""

    offers: tuple[Offer, ...]
    revision: str
    """Of an index: the sha256 of what it offers. Of a Hub repository: the commit."""

    def offer(self, name: str | None, where: str) -> Offer:
        """The one of this name, or the only one."""
        names = [offer.name for offer in self.offers]
        if not names:
            raise GraftError(f"{where} has no base and no pack.")
        if name is None and len(names) == 1:
            return self.offers[0]
        found = [offer for offer in self.offers if offer.name == name]
        if found:
            return found[0]
        listed = first_few(names, 8)
        if name is None:
            raise GraftError(f"{where} has {len(names)} bases and packs: {listed}. Say which one, by its name.")
        raise GraftError(f"{where} has no {name!r}{nearest(name, names) or ';'} it has {listed}.")


def revision_of(offers: Sequence[Offer]) -> str:
    entries = [offer.entry() for offer in sorted(offers, key=lambda offer: offer.name)]
    return hashlib.sha256(json.dumps(entries, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def make_listing(offers: Sequence[Offer]) -> Listing:
    ordered = tuple(sorted(offers, key=lambda offer: offer.name))
    return Listing(ordered, revision_of(ordered))


def index_document(listing: Listing) -> dict[str, Any]:
    """What is written as graftmt-index.json."""
    return {
        "kind": "index",
        "format": FORMAT,
        "revision": listing.revision,
        "offers": [offer.entry() for offer in listing.offers],
    }


def parse_index(content: bytes, where: str) -> Listing:
    """An index from anywhere, checked."""
    try:
        document = parse_document(content)
        if document.get("kind") != "index":
            raise ValueError("it is no index of bases and packs")
        if type(document.get("format")) is not int or document["format"] < 1:
            raise ValueError("it has no format")
        if document["format"] > FORMAT:
            raise CheckpointError(
                f"{where} has format {document['format']}; this version of graftmt reads up to {FORMAT}. Upgrade graftmt."
            )
        check_fields(document, IndexDocument)
        offers = [Offer.parse(entry) for entry in document["offers"]]
        names = [offer.name.lower() for offer in offers]
        if len(set(names)) < len(names):
            raise ValueError(f"the name {next(name for name in names if names.count(name) > 1)!r} is there twice")
        if revision_of(offers) != document["revision"]:
            raise ValueError("its revision is not the hash of what it offers")
    except ValueError as error:
        raise CheckpointError(
            f"{where} cannot be used ({error}). Whoever runs that folder can make it again: graftmt packs index FOLDER."
        ) from None
    return make_listing(offers)
