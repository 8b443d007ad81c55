"""A folder on this machine, such as one that a web server gives out, with its index. Layer 5."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from graftmt.documents import write_json
from graftmt.errors import GraftError
from graftmt.files import atomic_file, atomic_folder, read_limited
from graftmt.folders import exclusive
from graftmt.packs.archive import ARCHIVE, write_archive
from graftmt.places import BASE, PACK, check_file, check_outside_models, check_place
from graftmt.progress import Progress
from graftmt.sharing.connections import Refused, SharingError
from graftmt.sharing.index import INDEX, LARGEST_INDEX, Listing, index_document, make_listing, parse_index
from graftmt.sharing.offers import Offer, OfferedFile, check_path
from graftmt.sharing.scanning import find_things, offer_of
from graftmt.sharing.stores.store_protocol import Publication
from graftmt.sharing.stores.web import check_revision
from graftmt.sharing.transfer import copied


class FolderStore:
    """A folder, by its path. Without an index, what is in it is looked at each time."""

    form = "a folder on this machine"

    def __init__(self, folder: Path, revision: str | None = None) -> None:
        self.folder, self.address, self.revision = folder, str(folder), revision

    @staticmethod
    def knows(address: str) -> bool:
        return "://" not in address

    @classmethod
    def open(cls, address: str, revision: str | None) -> FolderStore:
        return cls(Path(address), revision)

    def listing(self, only: str | None = None) -> Listing:
        if not self.folder.is_dir():
            raise GraftError(f"there is no folder {self.folder}; check the path.")
        index = self.folder / INDEX
        if index.is_file():
            try:
                found = parse_index(read_limited(index, LARGEST_INDEX), str(index))
            except (OSError, ValueError) as error:
                raise SharingError(f"{index} cannot be read: {error}.") from None
        else:
            found = make_listing([offer_of(path, name) for name, path in find_things(self.folder) if only in (None, name)])
        return check_revision(found, self.revision, self.address)

    @contextmanager
    def fetched(self, file: OfferedFile, bar: Progress) -> Iterator[Path]:
        """A copy, so that what is moved away is not the store's own."""
        path = self.folder / file.path
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise Refused(f"{path} leads out of {self.folder}; not read.")
        with copied(path) as copy:
            if copy.stat().st_size != file.size or not file.checksum.fits(copy):
                raise Refused(f"{path} is not what the index says: it was changed since. Make it again: graftmt packs index.")
            bar.update(file.size)
            yield copy

    def destination(self, publication: Publication) -> str:
        return str(self._place(publication))

    def _place(self, publication: Publication) -> Path:
        name = publication.offer_name or publication.offer.name
        try:
            check_path(name.removesuffix(ARCHIVE))
        except ValueError as error:
            raise GraftError(f"the name cannot be used: {error}.") from None
        place = self.folder / name
        check_outside_models(place)
        if name.endswith(ARCHIVE):
            check_file(place)
        else:
            check_place(place, {"base": BASE, "pack": PACK}[publication.offer.kind])
        return place

    def put(self, publication: Publication) -> str:
        """Copies it into the folder and writes the index anew."""
        place = self._place(publication)
        with exclusive(self.folder, "the folder"):
            if place.suffix == ARCHIVE:
                with atomic_file(place) as temporary:
                    write_archive(temporary, {name: path.read_bytes() for name, path in publication.files.items()})
            else:
                with atomic_folder(place) as temporary:
                    for name, path in publication.files.items():
                        shutil.copyfile(path, temporary / name)
            return write_index(self.folder).revision


def write_index(folder: Path) -> Listing:
    """Reads and checks every base and pack below a folder, and writes its graftmt-index.json."""
    if not folder.is_dir():
        raise GraftError(f"there is no folder {folder}; check the path.")
    check_outside_models(folder, itself=True)
    check_file(folder / INDEX)
    offers: list[Offer] = [offer_of(path, name) for name, path in find_things(folder)]
    names = sorted(offer.name.lower() for offer in offers)
    if twice := [name for name, following in pairwise(names) if name == following]:
        raise SharingError(f"{folder} has {twice[0]!r} twice, as a folder and as a {ARCHIVE} file; rename one.")
    listing = make_listing(offers)
    write_json(folder / INDEX, index_document(listing))
    return listing
