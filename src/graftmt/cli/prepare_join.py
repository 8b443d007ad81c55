"""`graftmt prepare join`: several corpora and files as one corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.declared import AsJson, Quiet
from graftmt.cli.output import json_text, tell
from graftmt.options import items


def join(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Corpus folders, or files in any known format; pairs.en pairs.ca are one source; PATH@3 takes lines three "
            "times, PATH@0.25 a quarter",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Corpus folder to write; replaces an earlier corpus")],
    languages: Annotated[
        str, typer.Option("--languages", "-l", help="Languages to take (default: all of the corpus folders)")
    ] = "",
    keep_duplicates: Annotated[bool, typer.Option("--keep-duplicates", help="Keep lines that an earlier line repeats")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Join corpora into one. A line that is in several is kept once. A line that
    one corpus holds out is not in the training text. SPLIT.source.txt says
    where each line came from, and corpus.json counts the lines of each source.

    Examples:
      graftmt prepare join books messy.tsv memory.tmx -o all --languages en,ca
      graftmt prepare join corpora/mine@3 corpora/web@0.5 -o corpora/all

    More: docs/corpora.md
    """
    from graftmt.prepare.joining import join as join_parts
    from graftmt.prepare.joining import open_parts

    chosen = items(languages)
    from graftmt.prepare.source import counted

    made = join_parts(open_parts(sources, chosen), output, keep_duplicates=keep_duplicates, progress=counted)
    if as_json:
        print(json_text({"output": str(output), **made}, indent=2))
        return
    for found in made["sources"]:
        read, written = (sum(found.get(what, {}).values()) for what in ("read", "written"))
        left = {"duplicates": "duplicates", "held_out": "lines that are held out"}
        dropped = "".join(f", {sum(found[key].values()):,} {words} left out" for key, words in left.items() if key in found)
        weight = f", weight {found['weight']:g}" if found["weight"] != 1 else ""
        tell(f"{found['name']}: {read:,} lines read{weight}{dropped}, {written:,} written")
    for split, lines in made["lines"].items():
        tell(f"{output}/{split}.*.txt: {lines:,} lines; {split}.source.txt says where each came from")
