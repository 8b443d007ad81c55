"""What a store can do, whatever kind it is. Layer 5."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from graftmt.progress import Progress
from graftmt.sharing.index import Listing
from graftmt.sharing.offers import Offer, OfferedFile


class Store(Protocol):
    """A place with bases and packs."""

    address: str

    def listing(self, only: str | None = None) -> Listing:
        """What it offers; only one, where that spares work and there is one of this name."""

    def fetched(self, file: OfferedFile, bar: Progress) -> AbstractContextManager[Path]:
        """A file here on the disk for as long as a block runs, its size and checksum proven. It may be moved away."""


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A base or a pack that is put somewhere, checked."""

    offer_name: str | None
    """The name there; the store's own choice where it is None."""
    files: Mapping[str, Path]
    """Its files by name: the store copies them."""
    offer: Offer
    message: str | None = None
    private: bool = False


@runtime_checkable
class WritableStore(Store, Protocol):
    """One that something can be put into."""

    def destination(self, publication: Publication) -> str:
        """Where it would go, for a person; an error where it cannot go there."""

    def put(self, publication: Publication) -> str:
        """Puts it there, all of it or nothing; returns the new revision."""


class StoreKind(Protocol):
    """A class of stores, as the registry has it."""

    form: str
    """How an address of one looks."""

    @staticmethod
    def knows(address: str) -> bool:
        """Whether an address is of this kind."""

    @classmethod
    def open(cls, address: str, revision: str | None) -> Store:
        """The store there."""
