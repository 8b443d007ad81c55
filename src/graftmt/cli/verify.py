"""`graftmt verify`: the proof that a base is unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.declared import AsJson, BaseFolder, Beam, Device, Packs
from graftmt.cli.output import json_text, tell


def verify(
    base: BaseFolder,
    packs: Packs = None,
    corpus: Annotated[
        Path | None, typer.Option("--corpus", "-c", help="Corpus with lines to translate (default: made up)")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Split of the corpus")] = "test",
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=10_000, help="Lines per direction")] = 20,
    beam: Beam = 5,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Prove that packs leave the base unchanged. The command translates with
    the base alone, installs and uses the packs, and translates again. It
    compares fingerprints, texts, scores and every byte in memory, and exits
    with 1 if anything differs.

    Examples:
      graftmt verify -b runs/demo/base -p runs/demo/packs/el-source
      graftmt verify -b BASE -p el-source,uk-target -c corpus

    More: docs/packs.md
    """
    from graftmt.adding.verification import verify as prove
    from graftmt.data import Corpus
    from graftmt.devices import choose_device
    from graftmt.packs.named_packs import parse_packs

    texts = None
    if corpus is not None:
        found = Corpus.open(corpus, split)
        texts = found.texts(found.languages, lines)
    result = prove(base, parse_packs(packs), texts=texts, lines=lines, beam=beam, device=choose_device(device))
    if as_json:
        print(json_text(result.to_dict()))
    else:
        for what, fine in (
            (f"stored tensors have the fingerprint {result.fingerprint[:16]}…", result.stored_unchanged),
            ("tensors in memory are the same after the packs were used", result.resident_unchanged),
            (f"{result.lines} translations in {', '.join(result.directions)} are bit-identical", result.outputs_identical),
        ):
            tell(f"{'yes' if fine else 'NO '}  {what}")
        if result.made_up and corpus is not None:
            tell(f"made up, for lack of {split} text in {corpus}: the lines in {', '.join(result.made_up)}")
        tell(f"packs: {', '.join(result.packs) or 'none'}; used in between: {', '.join(result.pack_directions) or 'nothing'}")
        print("The base is unchanged, bit for bit." if result.base_unchanged else "The base has CHANGED.")
    if not result.base_unchanged:
        raise typer.Exit(1)
