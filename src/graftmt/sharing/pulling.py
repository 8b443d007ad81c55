"""`pull`: a base or a pack from a store, checked, as a folder or one file here: whole or not at all. Layer 5."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graftmt.base import read_base_document
from graftmt.errors import CheckpointError, GraftError
from graftmt.files import atomic_file, atomic_folder
from graftmt.packs.archive import ARCHIVE, write_archive
from graftmt.places import BASE, PACK, check_file, check_place
from graftmt.progress import Progress, progress, say
from graftmt.sharing.connections import Refused
from graftmt.sharing.offers import Offer, facts_of
from graftmt.sharing.pull_options import PullOptions
from graftmt.sharing.scanning import read_thing, unpack
from graftmt.sharing.stores import Store, open_store
from graftmt.sharing.transfer import check_space, scratch_folder

PROVEN = ("kind", "fingerprint", "languages", "base", "side", "recipe")
"""What an offer says and the files must say too."""


@dataclass(frozen=True)
class PullResult:
    """What was pulled."""

    path: Path
    offer: Offer
    address: str
    revision: str
    there: bool
    """Whether it was there already, and nothing was downloaded."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "path": str(self.path),
            "from": self.address,
            "revision": self.revision,
            "already_there": self.there,
            "bytes": self.offer.size,
            **{key: value for key, value in self.offer.entry().items() if key != "files"},
        }


def pull(options: PullOptions) -> PullResult:
    """Everything that can be refused before the download is: size, base, fingerprint, place."""
    store = open_store(options.source, options.revision)
    listing = store.listing(options.name)
    offer = listing.offer(options.name, options.source)
    output = options.output or Path(offer.name.rsplit("/", 1)[-1])
    _check_wanted(offer, options)
    there = _check_output(offer, output, replace=options.replace)
    result = PullResult(output, offer, store.address, listing.revision, there)
    if there:
        return result
    check_space(2 * offer.size, output.absolute())
    if options.source.startswith("http://"):
        say("the address begins with http://: anyone on the way can change what comes. --fingerprint guards against that.")
    say(f"{offer.kind} {offer.name} from {store.address}, revision {listing.revision[:12]}: {offer.size / 1e6:,.1f} MB")
    with progress(offer.name, offer.size) as bar:
        _assemble(store, offer, output, bar)
    return result


def _check_wanted(offer: Offer, options: PullOptions) -> None:
    if offer.size > options.limit:
        raise GraftError(
            f"{offer.name} has {offer.size:,} bytes, more than the limit of {options.limit:,}; --max-size raises it."
        )
    wanted = options.fingerprint
    if wanted is not None and (len(wanted) < 8 or not offer.fingerprint.startswith(wanted)):
        raise Refused(
            f"{offer.name} has the fingerprint {offer.fingerprint[:16]}…, not {wanted[:64]!r} (at least 8 digits of it); "
            "nothing was downloaded."
        )
    if options.base is not None:
        mark = read_base_document(options.base)["fingerprint"]
        if offer.kind == "base":
            raise GraftError(f"{offer.name} is a base itself; --base is for packs.")
        if offer.base != mark:
            raise CheckpointError(
                f"{offer.name} is a pack for the base {str(offer.base)[:16]}…, and {options.base} is {mark[:16]}…; it was not "
                "downloaded. `graftmt packs list` with --base shows those that fit."
            )


def _check_output(offer: Offer, output: Path, *, replace: bool) -> bool:
    """Whether it is there already. Something else that is there stays, unless it may be replaced by its like."""
    if output.suffix == ARCHIVE:
        if offer.kind == "base":
            raise GraftError(f"{offer.name} is a base: it becomes a folder, not a {ARCHIVE} file.")
        check_file(output)
        occupied = output.exists()
    else:
        check_place(output, {"base": BASE, "pack": PACK}[offer.kind])
        occupied = output.is_dir() and any(output.iterdir())
    if not occupied:
        return False
    try:
        if read_thing(offer.kind, output)["fingerprint"] == offer.fingerprint:
            return True
        what = f"another {offer.kind}"
    except GraftError:
        what = f"something that cannot be read as a {offer.kind}"
    if not replace:
        raise GraftError(f"{output} is there already: {what}. Name another place (-o), or give --replace.")
    return False


def _assemble(store: Store, offer: Offer, output: Path, bar: Progress) -> None:
    """Fetches all files, proves that they are what was offered, and only then gives them their name."""
    with scratch_folder() as scratch:
        place = scratch / "files"
        place.mkdir()
        done = 0
        for file in offer.files:
            with store.fetched(file, From(bar, done, file.name)) as found:
                shutil.move(found, place / file.name)
            done += file.size
        archive = place / offer.files[0].name if offer.is_archive else None
        if archive is not None:
            place = scratch / "unpacked"
            with _named(offer, scratch):
                unpack(archive, place)
        _prove(offer, place)
        if output.suffix != ARCHIVE:
            with atomic_folder(output) as folder:
                for path in place.iterdir():
                    shutil.move(path, folder / path.name)
            return
        with atomic_file(output) as temporary:
            if archive is not None:
                shutil.copyfile(archive, temporary)
            else:
                write_archive(temporary, {path.name: path.read_bytes() for path in sorted(place.iterdir())})


def _prove(offer: Offer, folder: Path) -> None:
    """Reads all of it as whoever uses it will, and compares it with what was offered."""
    with _named(offer, folder):
        document = read_thing(offer.kind, folder)
    for key, value in facts_of(offer.kind, document).items():
        if key in PROVEN and getattr(offer, key) != value:
            raise Refused(
                f"{offer.name} was offered with {key} {getattr(offer, key)!s:.80}, and has {value!s:.80}; nothing was kept."
            )


@contextmanager
def _named(offer: Offer, folder: Path) -> Iterator[None]:
    """Errors about files on the way name what was to be pulled."""
    try:
        yield
    except GraftError as error:
        raise Refused(f"{offer.name} cannot be used, and was not kept: {str(error).replace(str(folder), offer.name)}") from None


class From:
    """Progress of one file as part of the whole."""

    def __init__(self, bar: Progress, start: int, name: str) -> None:
        self.bar, self.start, self.name = bar, start, name

    def update(self, done: int, note: str = "") -> None:
        self.bar.update(self.start + done, note or self.name)

    def message(self, text: str) -> None:
        self.bar.message(text)
