"""`graftmt demo`: the whole story, from nothing but the package."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from graftmt.cli.declared import AsJson, Beam, Device, Quiet
from graftmt.cli.output import json_text, plain, show_samples, stoppable


def demo(
    folder: Annotated[Path, typer.Option("--folder", "-f", help="Folder for everything that is made")] = Path("runs/demo"),
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Train the base instead of using the shipped one")
    ] = False,
    corpus: Annotated[
        Path | None,
        typer.Option("--corpus", help="Corpus of an earlier demo (no Babel needed)"),
    ] = None,
    lines: Annotated[int, typer.Option("--lines", help="Test lines per direction", min=1)] = 100,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, help="Updates for each pack; fewer are faster and worse")
    ] = None,
    beam: Beam = 5,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Add two languages to a small model, in minutes and without a download.
    The text is made from CLDR: dates, units, currencies, places, languages.
    The base knows five languages. The demo adds Greek to read and Ukrainian
    to write, from pairs with English alone, and combines the two packs. It
    compares them with a pivot and with adapters, and proves that the base is
    unchanged. Rerun the command to resume.

    Examples:
      graftmt demo
      graftmt demo --from-scratch
      graftmt inspect runs/demo/packs/el-source
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
    """The final table, what it comes to, the samples, and what to try next."""
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
