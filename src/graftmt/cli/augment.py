"""`graftmt augment`: pairs of a new language with the base's other languages, real or back-translated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from graftmt.augmentation.augment_options import AugmentOptions
from graftmt.cli.declared import AsJson, Quiet, takes
from graftmt.cli.output import json_text, plain, stoppable

if TYPE_CHECKING:
    from graftmt.augmentation.augmenting import AugmentResult


@takes(AugmentOptions)
def augment(options: AugmentOptions, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Make a corpus in which a new language is paired with every language of
    a base, for better zero-shot translation. The lines of the other languages
    are real ones, or the base translates them. Empty translations, copies and
    repetitions are dropped and counted. Rerun the command to resume.

    Examples:
      graftmt augment el -b BASE --train corpus --spec 1k-bt -o el-1k
      graftmt add el -b BASE --train el-1k --with all --side source
      graftmt augment el -b BASE --train corpus --spec 20k-bt --teacher M -o X

    More: docs/more-text.md
    """
    from graftmt.augmentation.augmenting import augment as run
    from graftmt.devices import choose_device
    from graftmt.interop.engine_registry import open_engine

    search = open_engine(options.translate_with, choose_device(options.device), options.dtype)
    with stoppable(as_json=as_json, made="folder"):
        result = run(options, search=search)
    if as_json:
        print(json_text(result.to_dict()))
    else:
        show(result, options.new, options.base)


def show(result: AugmentResult, new: tuple[str, ...], base: Path) -> None:
    """What each language got, and what to type next."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    report = result.report
    table = Table(title=plain(f"{result.folder}: {report['title']}"), title_justify="left")
    reasons = [name for name in ("empty", "unfinished", "too_long", "copies", "duplicates") if _any(report, name)]
    for name in ("language", "chosen", *reasons, "lines"):
        table.add_column(name.replace("_", " "), justify="left" if name == "language" else "right")
    for language, counts in report["languages"].items():
        table.add_row(plain(language), *(f"{counts.get(name, 0):,}" for name in ("chosen", *reasons, "lines")))
    console.print(table)
    pairs = ", ".join(f"{pair} {lines:,}" for pair, lines in report["pairs"].items())
    before = " It was there already, from the same text and options." if result.made_before else ""
    repeated = f" {report['repeated']:,} lines repeat a text and were not considered." if report["repeated"] else ""
    text = (
        f"{report['lines']:,} lines; pairs: {pairs}.{repeated}{before}\n"
        f"Train on it: graftmt add {','.join(new)} --base {base} --train {result.folder} --with all --side source "
        "--recipe 'embed + enc-first-layer + init:alignment' stages.0.temperature=1"
    )
    console.print(plain(text), soft_wrap=True)


def _any(report: dict[str, dict[str, dict[str, int]]], reason: str) -> bool:
    return any(counts.get(reason) for counts in report["languages"].values())
