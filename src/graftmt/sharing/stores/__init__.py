"""Where bases and packs can be had, or put: each kind of place one file. Each says which addresses are its own."""

from __future__ import annotations

from graftmt.errors import ConfigError
from graftmt.sharing.stores.folder import FolderStore
from graftmt.sharing.stores.hub import HubStore
from graftmt.sharing.stores.store_protocol import Publication, Store, StoreKind, WritableStore
from graftmt.sharing.stores.web import WebStore

STORES: tuple[StoreKind, ...] = (HubStore, WebStore, FolderStore)
"""The first that knows an address has it."""

__all__ = ["STORES", "Publication", "Store", "WritableStore", "open_store", "open_writable"]


def open_store(address: str, revision: str | None = None) -> Store:
    """The store at an address; nothing is read yet."""
    kind = next((kind for kind in STORES if kind.knows(address)), None)
    if kind is None:
        known = ", ".join(kind.form for kind in STORES)
        raise ConfigError(f"{address!r} is no place that bases and packs can come from; expected one of: {known}.")
    return kind.open(address, revision)


def open_writable(address: str, revision: str | None = None) -> WritableStore:
    """The store at an address, to put something there."""
    store = open_store(address, revision)
    if not isinstance(store, WritableStore):
        known = " or ".join(kind.form for kind in STORES if hasattr(kind, "put"))
        raise ConfigError(
            f"nothing can be put at {address}: a web server does not take files. Push to {known}; for a web folder, push to "
            "the folder on your disk and upload that."
        )
    return store
