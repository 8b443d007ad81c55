"""`graftmt demo`: the whole story, from nothing but the package."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from graftmt.cli.common import AsJson, Beam, Device, speaker, stoppable


def demo(
    folder: Annotated[Path, typer.Option("--folder", "-f", help="Where everything goes.")] = Path("runs/demo"),
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Train the base here instead of taking the one inside the package.")
    ] = False,
    corpus: Annotated[
        Path | None,
        typer.Option("--corpus", help="Text made beforehand (a GPU host may lack Babel): a folder that an earlier demo wrote."),
    ] = None,
    lines: Annotated[int, typer.Option("--lines", help="Test lines a direction.", min=1)] = 200,
    beam: Beam = 5,
    device: Device = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what graftmt does, on text made from CLDR: dates, units, currencies, lists of places and languages.

    Makes a multi-parallel corpus, takes a small multilingual base (or trains it), translates held-out phrases in all its
    directions, prints a table and ten translations, and writes report.json. Nothing is downloaded.

    Example: graftmt demo && graftmt inspect runs/demo/base
    """
    from graftmt.demo.run import DemoOptions, run_demo

    options = DemoOptions(
        folder=folder, from_scratch=from_scratch, corpus=corpus, test_lines=lines, beam=beam, device=device, quiet=quiet
    )
    with stoppable():
        result = run_demo(options, speaker(quiet))
    if as_json:
        print(json.dumps(result.report, ensure_ascii=False))
        return
    show(result.report, folder)


def show(report: dict[str, Any], folder: Path) -> None:
    """The table (source languages down, targets across) and the samples."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    languages = report["base"]["languages"]
    console.print("chrF, from the language on the left into the one above", highlight=False)
    table = Table()
    table.add_column("")
    for language in languages:
        table.add_column(language, justify="right")
    for source in languages:
        scores = [report["directions"].get(f"{source}-{target}", {}).get("chrf") for target in languages]
        table.add_row(source, *("–" if score is None else f"{score:.1f}" for score in scores))
    console.print(table)
    mean = report["averages"]["all"]
    console.print(
        f"Average of {mean['directions']} directions: chrF {mean['chrf']:.1f}, BLEU {mean['bleu']:.1f}\n", highlight=False
    )
    for sample in report["samples"]:
        right = sample["translation"] == sample["reference"]
        console.print(
            f"[bold]{sample['direction']}[/]  {'as the reference' if right else 'differs from the reference'}", highlight=False
        )
        lines = [sample["source"], sample["translation"], *([] if right else [f"reference: {sample['reference']}"])]
        for line in lines:
            console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
    program = sys.argv[0] if Path(sys.argv[0]).name == "graftmt" else "graftmt"
    console.print(
        f"\n{report['seconds']:.0f} seconds. Report: {folder / 'report.json'}, {folder / 'report.md'}, {folder / 'chrf.png'}\n"
        f"Try it: echo '3 days ago' | {program} translate --base {folder / 'base'} --source en --target ru",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
