"""`graftmt prepare align`: bilingual corpora into one multi-parallel corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.common import AsJson, Quiet, json_text


def align(
    corpora: Annotated[
        list[str],
        typer.Argument(
            help="fr=FOLDER with train.en.txt and train.fr.txt, fr=PREFIX of PREFIX.en and PREFIX.fr, fr=EN_FILE,FR_FILE; "
            "or a FOLDER alone: each language in it with English."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the multi-parallel corpus.")],
    pivot: Annotated[str, typer.Option("--pivot", help="The language through which to align.")] = "en",
    split: Annotated[str, typer.Option("--split", help="The split to read of folders.")] = "train",
    min_languages: Annotated[
        int, typer.Option("--min-languages", help="Leave out lines in fewer languages, English included.")
    ] = 2,
    memory: Annotated[str, typer.Option("--memory", help="What sorting and joining may hold, such as 800MB or 4GB.")] = "1GB",
    threads: Annotated[
        int, typer.Option("--threads", min=0, help="0: as many as there are cores, and as the memory is enough for.")
    ] = 0,
    temporary: Annotated[
        Path | None,
        typer.Option("--temp", help="Folder for temporary files, about half the text; default: beside the output."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Join bilingual corpora through their English side into one multi-parallel corpus; each English line is there once.

    The result does not depend on the order of the corpora. A run that was killed goes on when it is started again.

    Example: graftmt prepare align fr=paracrawl/en-fr de=paracrawl/en-de -o corpora/paracrawl --memory 4GB
    """
    from graftmt.prepare.bilingual import find_corpora
    from graftmt.prepare.duckdb_work import AlignOptions
    from graftmt.prepare.through_english import align as align_corpora

    options = AlignOptions(
        pivot=pivot,
        min_languages=min_languages,
        memory=memory,
        threads=threads,
        temporary=temporary,
    )
    alignment = align_corpora(find_corpora(corpora, pivot=pivot, split=split), output, options)
    if as_json:
        facts = {"output": str(output), **alignment.facts(), "resumed": list(alignment.resumed), "seconds": alignment.seconds}
        print(json_text(facts, indent=2))
        return
    from rich.console import Console

    from graftmt.evaluation.tables import Column, Table

    heads = ("pairs read", "without text on a side", f"{pivot} line repeated", "lines kept")
    rows = [
        (language, *(f"{count:,}" for count in (read.pairs, read.incomplete, read.repeated, read.lines)))
        for language, read in alignment.corpora.items()
    ]
    few = f", {alignment.left_out:,} in fewer than {min_languages} languages left out" if alignment.left_out else ""
    table = Table(
        title=str(output),
        columns=(Column(name="language"), *(Column(name=head, alignment="right") for head in heads)),
        rows=tuple(rows),
        notes=(f"{alignment.lines:,} different {pivot} lines{few}",),
    )
    Console().print(table.rich())
