"""`graftmt packs list` and `packs index`: what a place offers, and the index that says so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graftmt.cli.declared import AsJson, finite
from graftmt.cli.output import json_text, plain, tell

if TYPE_CHECKING:
    from graftmt.sharing.index import Listing
    from graftmt.sharing.offers import Offer

app = typer.Typer(
    help="List the bases and packs of a place, or index a folder to share.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command("list")
def list_packs(
    source: Annotated[str, typer.Argument(help="hf:OWNER/NAME[@REVISION], a web folder or a folder")],
    language: Annotated[str | None, typer.Option("--language", "-l", help="Only those with this language")] = None,
    side: Annotated[Literal["source", "target"] | None, typer.Option("--side", help="Only packs for this side")] = None,
    base: Annotated[
        str | None, typer.Option("--base", "-b", help="Only packs for this base: folder, or digits of its fingerprint")
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option("--licence", "--license", help="Only with this licence; cc-by finds cc-by-4.0 too"),
    ] = None,
    min_chrf: Annotated[
        float | None, typer.Option("--min-chrf", callback=finite, help="Only packs with at least this mean chrF")
    ] = None,
    revision: Annotated[str | None, typer.Option("--revision", help="Hub: branch, tag or commit")] = None,
    as_json: AsJson = False,
) -> None:
    """List the bases and packs of a place, best scores first. Each maker
    measured on different text, so compare scores with care.

    Examples:
      graftmt packs list https://example.org/packs --language el -b BASE
      graftmt packs list hf:OWNER/greek-packs --json

    More: docs/sharing.md
    """
    from graftmt.sharing.stores import open_store

    listing = open_store(source, revision).listing()
    wanted = fingerprint_of(base) if base is not None else None
    found = [
        offer
        for offer in listing.offers
        if (language is None or language in offer.languages)
        and (side is None or offer.side == side)
        and (wanted is None or (offer.base or offer.fingerprint).startswith(wanted))
        and (licence is None or licence.lower() in (offer.licence or "").lower())
        and (min_chrf is None or (offer.chrf is not None and offer.chrf >= min_chrf))
    ]
    found.sort(key=lambda offer: (offer.kind, offer.chrf is None, -(offer.chrf or 0.0), offer.name))
    if as_json:
        offers = [{**offer.entry(), "bytes": offer.size, "chrf": offer.chrf} for offer in found]
        print(json_text({"revision": listing.revision, "offers": offers}, indent=2))
    else:
        show(source, listing, found)


def fingerprint_of(base: str) -> str:
    """Of a base folder; anything else is taken for the beginning of a fingerprint."""
    from graftmt.base import read_base_document

    if len(base) >= 8 and all(digit in "0123456789abcdef" for digit in base):
        return base
    return str(read_base_document(Path(base))["fingerprint"])


def show(source: str, listing: Listing, offers: list[Offer]) -> None:
    """A table, a row an offer."""
    from rich.console import Console
    from rich.table import Table

    if not offers:
        tell(f"{source}: none of {len(listing.offers)} fits; revision {listing.revision[:16]}")
        return
    table = Table(title=plain(f"{source}, revision {listing.revision[:16]}"), title_justify="left")
    for column in ("name", "is", "languages", "for the base", "recipe", "licence", "MB", "chrF"):
        right, is_copied = column in ("MB", "chrF"), column == "name"
        table.add_column(column, justify="right" if right else "left", overflow="fold", no_wrap=is_copied)
    for offer in offers:
        kind = offer.kind if offer.side is None else f"{offer.side} {offer.kind}"
        chrf = "" if offer.chrf is None else f"{offer.chrf:.1f} ({len(offer.scores)})"
        cells = (offer.name, kind, ", ".join(offer.languages), (offer.base or "")[:12], offer.recipe or "", offer.licence or "")
        table.add_row(*map(plain, (*cells, f"{offer.size / 1e6:,.1f}", chrf)))
    Console().print(table)


@app.command("index")
def index(
    folder: Annotated[Path, typer.Argument(help="Folder with bases and packs, up to four levels deep")],
    as_json: AsJson = False,
) -> None:
    """Check every base and pack in a folder and write graftmt-index.json. Then
    any web server can serve the folder. Run it again after every change;
    `graftmt push` into a folder does it by itself.

    Example:
      graftmt packs index public/packs

    More: docs/sharing.md
    """
    from graftmt.sharing.index import INDEX, index_document
    from graftmt.sharing.stores.folder import write_index

    listing = write_index(folder)
    if as_json:
        print(json_text(index_document(listing)))
        return
    size = sum(offer.size for offer in listing.offers) / 1e6
    tell(f"{folder / INDEX}: {len(listing.offers)} bases and packs, {size:,.1f} MB, revision {listing.revision[:16]}")
