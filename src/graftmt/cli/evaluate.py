"""`graftmt evaluate`: BLEU, chrF and off-target rates of many directions."""

from __future__ import annotations

from dataclasses import replace

from graftmt.assessment.evaluate_options import EvaluateOptions
from graftmt.cli.declared import AsJson, Quiet, open_translator, takes
from graftmt.cli.output import json_text, plain
from graftmt.progress import say


@takes(EvaluateOptions)
def evaluate(options: EvaluateOptions, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Score a base and packs on many directions: BLEU and chrF with
    sacreBLEU's signatures, and how many translations are in the wrong
    language. With packs, a set such as multi-parallel means all that base
    and packs together translate. With -o, rerun the command to resume;
    `graftmt compare` tests whether two such folders differ.

    Examples:
      graftmt evaluate -b runs/demo/base -c runs/demo/corpus -o scores
      graftmt evaluate -b BASE -c CORPUS -p el,uk -d el-uk --through en
      graftmt evaluate -b BASE -c flores -d from-en --tokenize spm:flores.model

    More: docs/evaluation.md
    """
    from rich.console import Console

    from graftmt.api import assess_with
    from graftmt.assessment.score_report import document, off_target_notes, table, write_report
    from graftmt.devices import choose_device

    options = replace(options, device=choose_device(options.device))
    assessment = assess_with(options, open_translator(options))
    report = document(assessment)
    if options.output is not None:
        write_report(options.output, assessment, report)
        chosen = assessment.options.directions
        if kept := len(chosen) - assessment.translated:
            say(f"{kept} of {len(chosen)} directions had been translated before; they are in {options.output}.")
    if as_json:
        print(json_text(report))
        return
    console = Console()
    console.print(table(assessment).rich())
    for note in off_target_notes(assessment):
        console.print(plain(note), soft_wrap=True)
