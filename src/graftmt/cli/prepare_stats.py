"""`graftmt prepare stats`: what a corpus holds, and how training would draw from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.common import AsJson, Quiet, finite, json_text, tell


def stats(
    corpus: Annotated[Path, typer.Argument(help="Folder of a line-aligned corpus.")],
    temperature: Annotated[
        float,
        typer.Option(
            "--temperature", "-t", callback=finite, help="Of sampling: 1 follows the data, a higher one evens directions out."
        ),
    ] = 5.0,
    fixed: Annotated[
        list[str] | None,
        typer.Option("--fixed", help="A direction's probability, as en-el=0.05; the others share the rest. May be repeated."),
    ] = None,
    directions: Annotated[
        list[str] | None,
        typer.Option("--directions", "-d", help="What is sampled: a view, or en-fr,fr-en,… (default: both views)."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for statistics.md, statistics.json and plots.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Count words and characters too.")] = False,
    name: Annotated[str, typer.Option("--split", help="The split to count.")] = "train",
    pivot: Annotated[str, typer.Option("--pivot", help="The language of the X-EN column.")] = "en",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Count lines per language and pair, and show the sampling probabilities that a temperature gives.

    Example: graftmt prepare stats corpora/paracrawl --temperature 5 --fixed en-el=0.05 -o statistics
    """
    from graftmt.data import Corpus
    from graftmt.prepare.output_folder import corpus_source
    from graftmt.prepare.statistics import (
        count_lines,
        default_views,
        document,
        language_table,
        pair_table,
        parse_fixed,
        sampling,
        write_statistics,
    )

    found = Corpus.open(corpus, name)
    probabilities = parse_fixed(fixed or [], found.languages)
    statistics = count_lines(corpus_source(found), text=text)
    samplings = [
        sampling(statistics, view, temperature=temperature, fixed=probabilities, pivot=pivot)
        for view in directions or default_views(found.languages, pivot)
    ]
    written = write_statistics(output, statistics, samplings, pivot=pivot) if output else []
    if as_json:
        facts = document(statistics, samplings, pivot=pivot)
        print(json_text({**facts, "files": list(map(str, written))}, indent=2))
        return
    from rich.console import Console

    console = Console()
    console.print(language_table(statistics, samplings, pivot=pivot).rich())
    console.print(pair_table(statistics).rich())
    tell(*written)
