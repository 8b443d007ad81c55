"""`graftmt import`: a model of Hugging Face or fairseq becomes a base."""

from __future__ import annotations

from collections.abc import Sequence

from graftmt.cli.declared import AsJson, Quiet, takes
from graftmt.cli.output import json_text, tell
from graftmt.errors import first_few
from graftmt.interop.importing.import_options import ImportOptions


@takes(ImportOptions)
def import_model(options: ImportOptions, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Make a base of a model that others have trained.
    M2M-100, NLLB-200, SMaLL-100, OPUS-MT, mBART-50, FSMT and fairseq
    checkpoints become bases that give the same translations; then
    `graftmt add` gives them new languages. The files of the model are
    only read, and nothing in them is run.

    Examples:
      graftmt import facebook/nllb-200-distilled-600M -o nllb
      graftmt import models/opus-mt-en-de -o en-de --from en --to de
      graftmt import models/opus-mt-gmw-fr -o gmw-fr --from en,de,nl --to fr
      graftmt import checkpoint_best.pt -o base --dtype bf16

    Without a network, bring the folder of the model and give its path.

    More: docs/importing.md
    """
    from graftmt.interop.importing.base_import import import_base

    result = import_base(options)
    if as_json:
        print(json_text(result.to_dict()))
        return
    base, origin = result.base, result.base.card["origin"]
    reads, writes = base.source_languages, base.target_languages
    other = next((one for one in writes if one != reads[0]), writes[0])
    both = next((one for one in reads if one in writes), None)
    add = f"graftmt add LANG -b {result.folder} --train pairs.tsv"
    ways = (
        [f"{add} --with {both}"]
        if both
        else [f"{add} --side source --with {writes[0]}", f"{add} --side target --with {reads[0]}"]
    )
    tell(
        f"{origin['name']} ({result.family.title}): {result.parameters:,} parameters in {result.dtype}",
        f"fingerprint {base.fingerprint[:16]}…",
        f"reads {counted(reads)}, writes {counted(writes)}",
        *([result.note] if result.note else []),
        f"licence: {origin.get('licence') or 'not named by its own card; give it with --licence'}",
        f"The base: {result.folder}",
        f"Try it: graftmt translate -b {result.folder} -s {reads[0]} -t {other}",
        f"Add a language: {'; or '.join(ways)}",
    )


def counted(languages: Sequence[str]) -> str:
    """1 language (en); 200 languages (ace_Arab, …)"""
    return f"{len(languages)} language{'s' * (len(languages) != 1)} ({first_few(languages, 5)})"
