"""`graftmt prepare align`: bilingual corpora into one multi-parallel corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graftmt.cli.declared import AsJson, Quiet, takes
from graftmt.cli.output import json_text
from graftmt.prepare.duckdb_work import AlignOptions

if TYPE_CHECKING:
    from graftmt.prepare.through_english import Alignment


@takes(AlignOptions)
def align(
    options: AlignOptions,
    corpora: Annotated[list[str], typer.Argument(help="LANG=FOLDER, LANG=PREFIX, LANG=FILE,FILE, or FOLDER")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The multi-parallel corpus")],
    split: Annotated[str, typer.Option("--split", metavar="NAME", help="Split of folders to read")] = "train",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Join bilingual corpora through English into one multi-parallel corpus.
    Each English line is there once. fr=FOLDER has train.en.txt and
    train.fr.txt, fr=PREFIX means PREFIX.en and PREFIX.fr; a FOLDER alone is
    each of its languages with English. Rerun the command to resume.

    Examples:
      graftmt prepare align fr=corpora/en-fr de=corpora/en-de -o corpora/all
      graftmt prepare align fr=news.en,news.fr de=web -o all --memory 4GB

    More: docs/corpora.md
    """
    from graftmt.prepare.bilingual import find_corpora
    from graftmt.prepare.through_english import align as align_corpora

    found = find_corpora(corpora, pivot=options.pivot, split=split)
    alignment = align_corpora(found, output, options)
    if as_json:
        facts = {"output": str(output), **alignment.facts(), "resumed": list(alignment.resumed), "seconds": alignment.seconds}
        print(json_text(facts, indent=2))
    else:
        show(alignment, output, options)


def show(alignment: Alignment, output: Path, options: AlignOptions) -> None:
    """What was read of each corpus, and kept."""
    from rich.console import Console

    from graftmt.evaluation.tables import Column, Table

    heads = ("pairs read", "without text on a side", f"{options.pivot} line repeated", "lines kept")
    rows = [
        (language, *(f"{count:,}" for count in (read.pairs, read.incomplete, read.repeated, read.lines)))
        for language, read in alignment.corpora.items()
    ]
    few = f", {alignment.left_out:,} in fewer than {options.min_languages} languages left out" if alignment.left_out else ""
    table = Table(
        title=str(output),
        columns=(Column(name="language"), *(Column(name=head, alignment="right") for head in heads)),
        rows=tuple(rows),
        notes=(f"{alignment.lines:,} different {options.pivot} lines{few}",),
    )
    Console().print(table.rich())
