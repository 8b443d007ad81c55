"""`graftmt add`: a language pack from parallel text."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from graftmt.adding.add_options import AddOptions
from graftmt.cli.declared import AsJson, Quiet, takes
from graftmt.cli.output import json_text, plain, show_samples, stoppable, tell
from graftmt.progress import silence

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from graftmt.adding.examination import Examination
    from graftmt.adding.result import AddResult
    from graftmt.adding.verdict import Verdict


@takes(AddOptions)
def add(options: AddOptions, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Add a language to a base: train a small pack on its parallel text.
    The base does not change by one bit. The command examines the text,
    estimates the time, trains, and gives a verdict. Rerun it to resume.

    Examples:
      graftmt add el -b runs/demo/base --train runs/demo/corpus --merges 1000
      graftmt add kab -b BASE --train kab=text.kab --train fr=text.fr --with fr
      graftmt add el -b BASE --train corpus --side source --recipe 14 --dry-run

    More: docs/packs.md
    """
    from graftmt.api import add_with
    from graftmt.devices import choose_device
    from graftmt.training.distribution import processes

    results: list[AddResult] = []
    with ExitStack() as context:
        team = context.enter_context(processes(choose_device(options.device)))
        if not team.first:
            context.enter_context(silence())
        with stoppable(as_json=as_json):
            results.extend(add_with(options))
    if not team.first:
        return
    if as_json:
        documents = [result.to_dict() for result in results]
        print(json_text(documents[0] if len(documents) == 1 else documents))
        return
    for result in results:
        show(result, options.base, told=results[0].examination if result is not results[0] else None)
    show_all(results)


def show(result: AddResult, base: Path, *, told: Examination | None = None) -> None:
    """The verdict as a table, the samples, and what to type next; after a dry run what is known without training.

    `told`: what was shown of the text for the other side.
    """
    from rich.console import Console

    if result.pack is None:
        tell(*result.lines(told), result.estimate_line())
        return
    console = Console()

    def say(text: str) -> None:
        console.print(plain(text), soft_wrap=True)

    judgement = result.judgement
    if judgement is not None and not judgement.is_usable:
        wrapped(console, f"{result.pack.name}: {judgement.level}. {' '.join(judgement.reasons)}\n")
    if result.verdict is None:
        wrapped(console, f"{result.pack.name}: {result.pack.recipe}\n{result.unjudged}")
    else:
        say("Samples, from the longer lines:")
        show_samples(console, result.verdict.samples)
        console.print()
        console.print(score_table(result, result.verdict))
        wrapped(console, result.verdict.words)
    wrapped(
        console,
        f"\n{result.pack.size:,} parameters, trained in {result.pack.card['training_seconds']:.0f} s. The pack: {result.path}",
    )
    if judgement is None or judgement.is_usable:
        source, target = direction_to_try(result)
        say(f"Try it: graftmt translate --base {base} --packs {result.path} -s {source} -t {target}")
    if judgement is not None:
        for advice in judgement.advice:
            wrapped(console, advice)
        wrapped(console, judgement.headline)


def show_all(results: Sequence[AddResult]) -> None:
    """Where several packs were made: each in a line, at the end."""
    made = [result for result in results if result.pack is not None]
    if len(made) > 1:
        levels = [f": {result.judgement.level}" if result.judgement is not None else "" for result in made]
        tell("", *(f"{result.path}{level}" for result, level in zip(made, levels, strict=True)))


def wrapped(console: Console, text: str) -> None:
    """Lines of the terminal's width, broken between words; as they are for a file."""
    console.print(plain(text), soft_wrap=not console.is_terminal)


def score_table(result: AddResult, verdict: Verdict) -> Table:
    from rich.table import Table

    from graftmt.packs.card import kind_of

    assert result.pack is not None
    table = Table(title=plain(f"{result.pack.name}: {result.pack.recipe}"), title_justify="left")
    pivot = next((entry["pivot"]["through"] for entry in verdict.scores.values() if "pivot" in entry), None)
    optional = [f"chrF through {pivot}"] * (pivot is not None) + ["chrF before"] * (result.before is not None)
    for name in ("direction", "", "lines", "BLEU", "chrF", *optional):
        table.add_column(plain(name), justify="left" if name in ("direction", "") else "right")
    for direction, entry in verdict.scores.items():
        cells = [
            direction,
            kind_of(entry),
            f"{entry['lines']:,}",
            f"{entry['bleu']:.1f}",
            f"{entry['chrf']:.1f}",
        ]
        if pivot is not None:
            cells.append(f"{entry['pivot']['chrf']:.1f}" if "pivot" in entry else "")
        if result.before:
            cells.append(f"{result.before.scores[direction]['chrf']:.1f}")
        table.add_row(*map(plain, cells))
    return table


def direction_to_try(result: AddResult) -> tuple[str, str]:
    """Source and target: the first that was judged, or the first that was trained."""
    if result.verdict is not None:
        entry = next(iter(result.verdict.scores.values()))
        return entry["source"], entry["target"]
    new, partner = result.config.languages[0], result.corpus.partners[0]
    return (new, partner) if result.config.side == "source" else (partner, new)
