"""`push`: a base or a pack to a Hub repository or into a folder that is given out, read and checked first. Layer 5."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graftmt.base_card import model_card
from graftmt.packs.card import pack_card
from graftmt.progress import say
from graftmt.sharing.offers import DOCUMENTS, Offer
from graftmt.sharing.scanning import file_names, kind_of_thing, offer_of, read_thing, unpack
from graftmt.sharing.stores import Publication, open_writable
from graftmt.sharing.transfer import scratch_folder


@dataclass(frozen=True, kw_only=True)
class PushOptions:
    """What is put where."""

    thing: Path
    """A base's folder, or a pack: a folder or a .graftpack file."""
    destination: str
    """hf:OWNER/NAME[@BRANCH], or a folder."""
    name: str | None = None
    """Its name there. Default: on the Hub the repository itself, in a folder its own."""
    licence: str | None = None
    """The licence that is stated, such as cc-by-4.0."""
    revision: str | None = None
    """A branch of the repository."""
    message: str | None = None
    private: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class PushResult:
    """What was put where."""

    offer: Offer
    destination: str
    revision: str | None
    """None where it was only tried."""

    def to_dict(self) -> dict[str, Any]:
        facts = {key: value for key, value in self.offer.entry().items() if key != "files"}
        return {"to": self.destination, "revision": self.revision, "bytes": self.offer.size, **facts}


def push(options: PushOptions) -> PushResult:
    """A damaged base or pack is refused; what is put there has its fingerprint."""
    store = open_writable(options.destination, options.revision)
    kind = kind_of_thing(options.thing)
    with ExitStack() as stack:
        folder = options.thing
        if folder.is_file():
            folder = stack.enter_context(scratch_folder()) / options.thing.stem
            unpack(options.thing, folder)
        document = read_thing(kind, folder)
        offer = offer_of(folder, store_name(options.thing))
        files = {name: folder / name for name in file_names(kind, document) if (folder / name).is_file()}
        if options.licence is not None and offer.licence != options.licence:
            document["card"] = {**document["card"], "licence": options.licence}
            offer = replace(offer, licence=options.licence)
            scratch = stack.enter_context(scratch_folder())
            name, _, card = DOCUMENTS[kind]
            files |= {name: scratch / name, card: scratch / card}
            files[name].write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
            files[card].write_text(CARDS[kind](document), encoding="utf-8")
        publication = Publication(
            offer_name=options.name,
            files=files,
            offer=offer,
            message=options.message,
            private=options.private,
        )
        destination = store.destination(publication)
        if offer.licence is None:
            say(f"{options.thing} states no licence, without which nobody may use it; state one, as in --licence cc-by-4.0.")
        if options.dry_run:
            return PushResult(offer, destination, None)
        say(f"{offer.kind} {options.thing} ({offer.size / 1e6:,.1f} MB) to {destination}")
        return PushResult(offer, destination, store.put(publication))


CARDS: dict[str, Callable[[Any], str]] = {"base": model_card, "pack": pack_card}


def store_name(thing: Path) -> str:
    """The default name of a base or a pack on the disk."""
    return thing.resolve().name.removesuffix(".graftpack")
