"""A web folder with an index: any server that gives out files. Layer 5."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from graftmt.progress import Progress
from graftmt.sharing.connections import PATIENCE, Patience, SharingError, StatusError, check_url
from graftmt.sharing.index import INDEX, LARGEST_INDEX, Listing, parse_index
from graftmt.sharing.offers import OfferedFile
from graftmt.sharing.transfer import fetch_document, fetched


class WebStore:
    """https://example.org/packs, where graftmt-index.json is."""

    form = "https://HOST/FOLDER (with a graftmt-index.json)"

    def __init__(self, address: str, revision: str | None = None, patience: Patience = PATIENCE) -> None:
        check_url(address)
        self.address, self.revision, self.patience = address, revision, patience
        scheme, host, path, query, _ = urlsplit(address)
        folder = path.removesuffix(INDEX).rstrip("/")
        self._parts = scheme, host, folder, query

    def url(self, path: str) -> str:
        """The address of a file below the folder."""
        scheme, host, folder, query = self._parts
        return urlunsplit((scheme, host, f"{folder}/{quote(path)}", query, ""))

    @staticmethod
    def knows(address: str) -> bool:
        return "://" in address

    @classmethod
    def open(cls, address: str, revision: str | None) -> WebStore:
        return cls(address, revision)

    def listing(self, only: str | None = None) -> Listing:
        url = self.url(INDEX)
        try:
            content = fetch_document(url, LARGEST_INDEX, patience=self.patience)
        except StatusError as error:
            if error.status != 404:
                raise
            raise SharingError(
                f"{self.address} has no {INDEX}. Give the address of a folder with one; `graftmt packs index FOLDER` makes it."
            ) from None
        return check_revision(parse_index(content, url), self.revision, self.address)

    def fetched(self, file: OfferedFile, bar: Progress) -> AbstractContextManager[Path]:
        return fetched(self.url(file.path), file.size, file.checksum, bar=bar, patience=self.patience)


def check_revision(listing: Listing, revision: str | None, address: str) -> Listing:
    """The listing, if it is of the revision that was asked for; the beginning of one will do."""
    if revision is not None and (len(revision) < 8 or not listing.revision.startswith(revision)):
        raise SharingError(
            f"{address} is at revision {listing.revision[:16]}, not {revision[:80]!r} (at least 8 digits of it). It keeps no "
            "older ones: look at what it has now with `graftmt packs list`, or ask its owner."
        )
    return listing
