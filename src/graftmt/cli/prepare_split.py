"""`graftmt prepare split`: valid and test taken out of a corpus."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.declared import AsJson, Quiet
from graftmt.cli.output import json_text, tell
from graftmt.options import items


def split(
    corpus: Annotated[Path, typer.Argument(help="Corpus folder")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for train, valid and test")],
    valid: Annotated[int, typer.Option("--valid", min=0, help="Lines for validation, with text in every language")] = 2000,
    test: Annotated[int, typer.Option("--test", min=0, help="Lines for testing, with text in every language")] = 2000,
    per_direction: Annotated[
        bool,
        typer.Option(
            "--per-direction",
            help="Instead: hold out N pairs for each direction",
        ),
    ] = False,
    directions: Annotated[
        str | None,
        typer.Option("--directions", help="Directions of --per-direction: a view, or en-fr,fr-de (default: all)"),
    ] = None,
    languages: Annotated[str | None, typer.Option("--languages", "-l", help="Only these languages")] = None,
    clear_of: Annotated[
        list[Path] | None,
        typer.Option("--clear-of", help="Also remove near-duplicates of this corpus's valid and test"),
    ] = None,
    train: Annotated[bool, typer.Option("--train/--no-train", help="Write the training text too (default: yes)")] = True,
    seed: Annotated[int, typer.Option("--seed", help="Another seed holds out other lines")] = 1,
    name: Annotated[str, typer.Option("--split", help="Split to take the lines from")] = "train",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Hold out lines for validation and testing. Training lines with the same
    letters as a held-out line, in any language, are left out.

    Example:
      graftmt prepare split corpora/ted -o corpora/mine --valid 2000

    More: docs/corpora.md
    """
    from graftmt.data import Corpus
    from graftmt.prepare.splits import SplitOptions, held_out_splits, split_corpus

    options = SplitOptions(valid=valid, test=test, per_direction=per_direction, directions=directions, train=train, seed=seed)
    chosen = items(languages) if languages else None
    others = [found for folder in clear_of or [] for found in held_out_splits(folder)]
    made = split_corpus(Corpus.open(corpus, name, chosen), output, options, clear_of=others)
    if as_json:
        print(json_text({"output": str(output), **asdict(made)}, indent=2))
        return
    for written, lines in made.lines.items():
        tell(f"{output}/{written}.*.txt: {lines:,} lines in {', '.join(made.languages)}")
    if train:
        tell(
            f"not for training: {made.left_out['held_out']:,} lines held out, "
            f"{made.left_out['near_duplicates']:,} near-duplicates of them"
        )
