"""`graftmt compare`: is one evaluation better than another, or only luckier?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.common import AsJson, Quiet, Tokenize, json_text


def compare(
    first: Annotated[Path, typer.Argument(help="A folder that `graftmt evaluate -o` has filled, or its report.json.")],
    second: Annotated[Path, typer.Argument(help="Another one, over the same lines; differences are second minus first.")],
    resamples: Annotated[
        int, typer.Option("--resamples", "-n", min=1, max=100_000, help="How often the lines are drawn again.")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=1, help="Of these draws; sacreBLEU's own unless given.")] = 12345,
    tokenize: Tokenize = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Tell real differences between two evaluations from chance: paired bootstrap, for BLEU and chrF.

    The test lines are drawn again a thousand times, and both systems are scored on each draw. 95 % of the differences lie in
    the interval shown. A star marks a difference whose interval does not hold 0. p is two-sided; --json also has the p-value
    of `sacrebleu --paired-bs`, which counts one side alone. For the averages (→EN, ←EN, /EN, X→EN …) a draw takes the same
    lines in every direction.

    Of 100 directions that do not differ, about 5 get a star all the same. The table says how many keep it after Holm's
    correction.

    Example: graftmt compare runs/base-scores runs/packs-scores

    Example: graftmt compare runs/direct runs/pivot -n 10000 --json
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
