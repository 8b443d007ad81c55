"""`graftmt prepare fetch`: download a corpus by its name, and read it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.declared import AsJson, Quiet
from graftmt.cli.prepare_files import parse_codes, parse_limits, write_splits
from graftmt.cli.prepare_read import RATIO, SIZE, Languages, MaxRatio, MaxSize, Output
from graftmt.errors import ConfigError


def fetch(
    name: Annotated[str, typer.Argument(help="Name of the corpus at OPUS or mtdata, such as Books")],
    pair: Annotated[str, typer.Argument(help="Language pair: en-fr (OPUS), deu-eng (mtdata)")],
    output: Output,
    provider: Annotated[str, typer.Option("--from", help="opus (with opustools) or mtdata")] = "opus",
    downloads: Annotated[
        Path,
        typer.Option("--downloads", help="Folder of downloads, with NAME-PAIR-RELEASE in it (mtdata: NAME-PAIR)"),
    ] = Path("downloads"),
    release: Annotated[str | None, typer.Option("--release", help="OPUS's release, such as v1 (default: the latest)")] = None,
    languages: Languages = None,
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Download a corpus by its name and read it. The download stays in
    downloads/Books-en-fr-latest (or NAME-PAIR-RELEASE), and is read from
    there without a network next time. Needs: pip install 'graftmt[names]'

    Examples:
      graftmt prepare fetch Books en-fr -o corpus/books
      graftmt prepare fetch Statmt-europarl-10-deu-eng deu-eng --from mtdata
        -o corpus/europarl -l de=deu,en=eng

    More: docs/corpora.md
    """
    from graftmt.prepare.readers.named import Named, read_named

    first, hyphen, second = pair.partition("-")
    if not hyphen or not first or not second:
        raise ConfigError(f"the pair is {pair!r}; expected two languages, such as en-fr.")
    named = Named(provider, name, (first, second), release)
    splits = read_named(named, downloads, parse_codes(languages), limits=parse_limits(max_ratio, max_size))
    write_splits(f"{provider}:{name}", splits, [downloads / named.folder], output, as_json)
