"""`graftmt export`: a base with packs as a model of another program."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.declared import AsJson, BaseFolder, Packs, Quiet
from graftmt.cli.output import json_text, tell
from graftmt.options import items


def export(
    base: BaseFolder,
    source: Annotated[str, typer.Option("--source", "-s", help="Languages of the input: el or el,uk")],
    target: Annotated[str, typer.Option("--target", "-t", help="Languages of the output: uk or fr,de")],
    to: Annotated[str, typer.Option("--to", help="ctranslate2 or hugging-face")],
    output: Annotated[Path, typer.Option("--output", "-o", help="New folder for the exported model")],
    packs: Packs = None,
    quantization: Annotated[
        str | None,
        typer.Option(
            "--quantization",
            help="float32 (default), float16, bfloat16; CTranslate2 also int8, int8_float32",
        ),
    ] = None,
    source_pack: Annotated[
        str | None, typer.Option("--source-pack", metavar="NAME", help="Which pack reads, if several could")
    ] = None,
    target_pack: Annotated[
        str | None, typer.Option("--target-pack", metavar="NAME", help="Which pack writes, if several could")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an export of another model")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write a base with its packs as a model for CTranslate2 or Hugging Face.
    Nothing in the folder needs graftmt: README.md shows how to load it, and a
    small Python file translates. Several languages make several directions;
    those with the same packs share one CTranslate2 folder. If a format cannot
    hold a component, the error says what to use instead, and nothing is
    written. An export of the same model is replaced, of another one only with
    --force.

    Examples:
      graftmt export -b BASE -p el-source,uk-target -s el -t uk
        --to ctranslate2 --quantization int8 -o el-uk
      graftmt export -b BASE -s en -t fr,de --to ctranslate2 -o from-english

    More: docs/deploying.md
    """
    from graftmt.data import Direction
    from graftmt.interop.export.exporting import export as write
    from graftmt.packs.named_packs import parse_packs
    from graftmt.translator import Translator

    translator = Translator(base, parse_packs(packs))
    pairs = [(one, other) for one in items(source) for other in items(target)]
    several = len(pairs) > 1
    directions = [Direction(one, other) for one, other in pairs if not (several and one == other)]
    chosen = {"source_pack": source_pack, "target_pack": target_pack}
    written = write(translator, directions, output, to=to, quantization=quantization, **chosen, force=force)
    if as_json:
        facts = [{**asdict(one), "folder": str(one.folder)} for one in written]
        print(json_text({"to": to, "exported": facts}))
    elif not quiet:
        for one in written:
            tell(f"{one.folder}: {', '.join(one.directions)}, {one.bytes / 2**20:,.1f} MB; see {one.folder}/README.md")
