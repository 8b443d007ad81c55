"""`graftmt demo`: the whole story, from nothing but the package."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from graftmt.cli.common import AsJson, Beam, Device, Quiet, json_text, plain, show_samples, stoppable


def demo(
    folder: Annotated[Path, typer.Option("--folder", "-f", help="Where everything goes.")] = Path("runs/demo"),
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Train the base here instead of taking the one inside the package.")
    ] = False,
    corpus: Annotated[
        Path | None,
        typer.Option("--corpus", help="Text made beforehand (a GPU host may lack Babel): a folder that an earlier demo wrote."),
    ] = None,
    lines: Annotated[int, typer.Option("--lines", help="Test lines a direction.", min=1)] = 100,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, help="Training steps of each pack; fewer are quicker and worse.")
    ] = None,
    beam: Beam = 5,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Show what graftmt does, on text made from CLDR: dates, units, currencies, lists of places and languages.

    Makes a multi-parallel corpus and takes a small base that knows five languages (or trains it). Adds Greek as a source and
    Ukrainian as a target, each trained on English only; scores them with every language of the base, and Greek to Ukrainian
    by combining the two; compares with a pivot and with adapters; proves that the base is unchanged. Prints a table and ten
    translations, writes report.json, report.md and figures. Nothing is downloaded; the same command goes on where it stopped.

    Example: graftmt demo && graftmt inspect runs/demo/packs/el-source
    """
    from graftmt.demo.story import DemoOptions, run_demo

    options = DemoOptions(
        folder=folder,
        from_scratch=from_scratch,
        corpus=corpus,
        test_lines=lines,
        beam=beam,
        pack_steps=steps,
        device=device,
    )
    with stoppable():
        result = run_demo(options)
    if as_json:
        print(json_text(result.report))
    else:
        show(result.report, folder)
    if not result.report["base_unchanged"]:
        raise typer.Exit(1)


def show(report: dict[str, Any], folder: Path) -> None:
    """The final table, what it comes to, the samples, and where to go on."""
    from rich.console import Console

    from graftmt.demo.report import final_table, forgetting_words

    console = Console()

    def say(text: str) -> None:
        console.print(plain(text), soft_wrap=True)

    console.print(final_table(report).rich())
    for name, pack in report["packs"].items():
        say(f"{name}: {pack['recipe']}; {pack['parameters']:,} parameters, {pack['bytes'] / 1e6:.1f} MB")
    say(f"The {forgetting_words(report['adapters_zero_shot'])}.")
    unchanged = "is unchanged, bit for bit" if report["base_unchanged"] else "HAS CHANGED"
    say(f"The base ({report['base']['parameters']:,} parameters) {unchanged}.\n")
    show_samples(console, report["samples"])
    program = sys.argv[0] if Path(sys.argv[0]).name == "graftmt" else "graftmt"
    source, target = (folder / "packs" / name for name in ("el-source", "uk-target"))
    say(
        f"\n{report['seconds']:.0f} seconds. In {folder}: report.json, report.md, curves.png, chrf.png, base, packs\n"
        f"Try it: echo 'πριν από 3 ημέρες' | {program} translate -b {folder / 'base'} -p {source},{target} -s el -t uk"
    )
