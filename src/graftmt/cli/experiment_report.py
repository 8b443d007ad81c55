"""`graftmt experiment report`: the paper's tables and figures with our results next to its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graftmt.cli.declared import AsJson, numbers
from graftmt.cli.output import hand_over, json_text, plain
from graftmt.errors import ConfigError, nearest

if TYPE_CHECKING:
    from graftmt.evaluation import Metric
    from graftmt.experiments.reporting.content import Report


Translations = Annotated[
    bool, typer.Option("--translations/--no-translations", help="A report outside of RESULTS keeps the translations too")
]


def report(
    profile: Annotated[
        str | None,
        typer.Argument(metavar="PROFILE", help="Profile of the results, if the folder has several"),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="Changes to the profile: show results of these settings"),
    ] = None,
    *,
    results: Annotated[
        Path | None,
        typer.Option("--results", "-r", help="Folder of the results (default: runs/experiments/PROFILE)"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the report (default: RESULTS/report)")
    ] = None,
    tables: Annotated[
        str | None,
        typer.Option("--tables", "-t", help="The paper's tables: 2,3,4 (default: all with a result)"),
    ] = None,
    figures: Annotated[
        str | None,
        typer.Option("--figures", "-f", help="Its figures: 3,4 or none (default: all with a result)"),
    ] = None,
    metric: Annotated[str, typer.Option("--metric", "-m", help="chrf or bleu, for headline, figures and findings")] = "chrf",
    translations: Translations = True,
    agreement: Annotated[bool, typer.Option("--agreement", help="Also print how far our results agree with the paper")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the paper's tables and figures with our results next to its own.
    The folder gets README.md, tables (.md, .tex), figures (.png) and
    results.json; outside of RESULTS also results and translations. If RESULTS has several settings, the profile and its changes
    choose the ones to show.

    Examples:
      graftmt experiment report docs
      graftmt experiment report -r runs/experiments/docs -o out --agreement

    More: docs/experiment-reports.md
    """
    from graftmt.experiments.reporting.content import document

    if metric not in ("chrf", "bleu"):
        raise ConfigError(f"--metric is {metric!r}{nearest(metric, ('chrf', 'bleu')) or '.'} Expected chrf or bleu.")
    chosen_figures = [] if (figures or "").strip().casefold() == "none" else _numbers("--figures", figures)
    chosen: Metric = "bleu" if metric == "bleu" else "chrf"
    options = {
        "tables": _numbers("--tables", tables),
        "figures": chosen_figures,
        "metric": chosen,
        "translations": translations,
    }
    made, written = _write(profile, overrides, results, output, options)
    if as_json:
        print(json_text({**document(made), "files": [str(path) for path in written]}))
        return
    if agreement:
        _show_agreement(made)
    hand_over(*written)


def _write(
    profile: str | None,
    overrides: list[str] | None,
    results: Path | None,
    output: Path | None,
    options: dict[str, Any],
) -> tuple[Report, list[Path]]:
    from graftmt.experiments.profiles import load_profile
    from graftmt.experiments.reporting import write_report

    if results is None and profile is None:
        raise ConfigError(
            "say whose results: those of a profile (docs, ted, paracrawl, demo), or the folder that they are in with --results."
        )
    settings = None
    if profile is not None and (overrides or profile.endswith((".yaml", ".yml"))):
        settings = load_profile(profile, overrides or ())
        profile = settings.name
    folder = results or Path("runs/experiments") / (profile or "")
    place = output or folder / "report"
    return write_report(folder, place, profile=profile, settings=settings, **options)


def _numbers(option: str, text: str | None) -> list[int] | None:
    if text is None:
        return None
    found = numbers(text, option)
    if not found:
        raise ConfigError(f"{option} {text!r}: write numbers with commas, such as 2,3.")
    return list(dict.fromkeys(found))


def _show_agreement(made: Report) -> None:
    from rich.console import Console
    from rich.table import Table

    from graftmt.experiments.reporting.front_page import AGREEMENT_COLUMNS, FINDING_COLUMNS, agreement_rows, finding_rows

    console = Console()
    for title, columns, rows in (
        ("The paper's findings", FINDING_COLUMNS, finding_rows(made.findings)),
        ("Kendall's tau between the paper's order of the rows and ours", AGREEMENT_COLUMNS, agreement_rows(made.agreements)),
    ):
        if not rows:
            continue
        table = Table(title=title, title_justify="left")
        for name in columns:
            table.add_column(name)
        for row in rows:
            table.add_row(*map(plain, row))
        console.print(table)
    if not made.findings and not made.agreements:
        console.print("Too few models have been run to compare their order with the paper's.")
