"""`graftmt compare`: whether two evaluations differ by more than chance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.declared import AsJson, Quiet, Tokenize
from graftmt.cli.output import json_text


def compare(
    first: Annotated[Path, typer.Argument(help="Folder of `graftmt evaluate -o`, or its report.json")],
    second: Annotated[Path, typer.Argument(help="Another one with the same lines; differences are second - first")],
    resamples: Annotated[
        int, typer.Option("--resamples", "-n", min=1, max=100_000, help="How often the lines are drawn again")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=1, help="Seed of the draws (default: sacreBLEU's)")] = 12345,
    tokenize: Tokenize = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Test whether two evaluations differ by more than chance, by paired
    bootstrap, for BLEU and chrF. The test lines are drawn again many times,
    and both systems are scored on each draw. A star marks a difference whose
    95 % interval does not contain 0. For averages, a draw takes the same
    lines in every direction. Of 100 directions that do not differ, about 5
    get a star; the table says how many keep it after Holm's correction.

    Examples:
      graftmt compare runs/base-scores runs/packs-scores
      graftmt compare runs/direct runs/pivot -n 10000 --json

    More: docs/evaluation.md
    """
    from rich.console import Console

    from graftmt.assessment.comparison import Report, compare_reports
    from graftmt.evaluation import Resampling
    from graftmt.progress import progress

    reports = Report.open(first), Report.open(second)
    with progress("comparing directions", len(reports[0].directions)) as report:
        comparison = compare_reports(
            *reports,
            resampling=Resampling(resamples=resamples, seed=seed),
            tokenize=tokenize,
            on_direction=lambda number: report.update(number, "directions"),
        )
    if as_json:
        print(json_text(comparison.to_dict()))
    else:
        Console().print(comparison.table().rich())
