"""`graftmt experiment check`: every number of a page against the reports that its comments name."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.declared import AsJson, Quiet
from graftmt.cli.output import json_text, tell


def check(
    pages: Annotated[list[Path], typer.Argument(metavar="PAGE…", help="Markdown pages with comments on their numbers")],
    *,
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Compute claimed scores from the translations with sacreBLEU")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Check the numbers of Markdown pages against reports. A comment after a
    paragraph says what its numbers are:

      <!-- from docs/results/NAME: chrf 12 el-en = 67.3 -->

    Each claim must agree with the results, and each decimal number must be
    claimed. If something is wrong, the exit code is 1.

    Examples:
      graftmt experiment check docs/results/reading.md
      graftmt experiment check README.md docs/packs.md --recompute

    More: docs/experiment-reports.md
    """
    from graftmt.experiments.reporting.page_numbers import Checker

    outcome = Checker(recompute=recompute).check(pages)
    if as_json:
        print(json_text(asdict(outcome)))
    else:
        tell(*outcome.problems)
        stated = f", {outcome.stated} of them of what no result has" if outcome.stated else ""
        exempt = f"; {outcome.not_checked} are in sections that are not checked" if outcome.not_checked else ""
        tell(
            f"{len(outcome.problems)} problems in {outcome.claims} claims{stated}, for {outcome.numbers} decimal numbers"
            f"{exempt}."
        )
    raise typer.Exit(1 if outcome.problems else 0)
