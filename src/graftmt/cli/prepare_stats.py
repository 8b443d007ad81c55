"""`graftmt prepare stats`: what a corpus holds, and how training would draw from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.declared import AsJson, Quiet, finite
from graftmt.cli.output import hand_over, json_text

Temperature = Annotated[
    float,
    typer.Option("--temperature", "-t", callback=finite, help="Sampling temperature: 1 follows the data, higher is more even"),
]
Fixed = Annotated[list[str] | None, typer.Option("--fixed", help="Probability of a direction: en-el=0.05; repeatable")]
Sampled = Annotated[
    list[str] | None,
    typer.Option("--directions", "-d", help="Directions to sample: a view, or en-fr,fr-en,… (default: both views)"),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Folder for statistics.md, statistics.json and plots")]


def stats(
    corpus: Annotated[Path, typer.Argument(help="Corpus folder")],
    temperature: Temperature = 5.0,
    fixed: Fixed = None,
    directions: Sampled = None,
    output: Output = None,
    text: Annotated[bool, typer.Option("--text", help="Count words and characters too")] = False,
    name: Annotated[str, typer.Option("--split", help="Split to count")] = "train",
    pivot: Annotated[str, typer.Option("--pivot", help="Language of the X-EN column")] = "en",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Count lines per language and pair, and show how training would sample
    directions at a temperature.

    Examples:
      graftmt prepare stats corpora/mine -o statistics
      graftmt prepare stats corpora/mine --temperature 5 --fixed en-el=0.05

    More: docs/corpora.md
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
    hand_over(*written)
