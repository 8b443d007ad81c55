"""`graftmt prepare join`: several corpora and files as one corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.common import AsJson, Quiet, json_text, tell
from graftmt.options import items


def join(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Corpus folders, and files or folders in any format that graftmt reads (TSV, TMX, PO, Moses, …). PATH@3 takes "
            "each training line three times, PATH@0.25 a quarter of the lines.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The corpus folder to write; one that is there is replaced.")],
    languages: Annotated[
        str, typer.Option("--languages", "-l", help="Languages to take, with commas; all those of corpus folders by default.")
    ] = "",
    keep_duplicates: Annotated[
        bool, typer.Option("--keep-duplicates", help="Keep lines that are in an earlier source, or earlier in the same one.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Join corpora: lines that are in several are there once, and none that one of them holds out is trained on.

    SPLIT.source.txt in the folder says where each line came from (SOURCE:LINE), and corpus.json what became of each source's
    lines.

    Example: graftmt prepare join corpora/books messy.tsv memory.tmx -o corpora/all --languages en,ca

    Example: graftmt prepare join corpora/mine@3 corpora/web@0.5 -o corpora/all
    """
    from graftmt.prepare.joining import join as join_parts
    from graftmt.prepare.joining import open_part

    chosen = items(languages)
    from graftmt.prepare.source import counted

    made = join_parts(
        [open_part(source, chosen) for source in sources], output, keep_duplicates=keep_duplicates, progress=counted
    )
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
