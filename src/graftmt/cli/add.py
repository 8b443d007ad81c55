"""`graftmt add`: a language pack from parallel text."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graftmt.cli.common import (
    AsJson,
    BaseFolder,
    Beam,
    Device,
    FreshRun,
    Minutes,
    items,
    plain,
    show_samples,
    speaker,
    stoppable,
    tell,
)
from graftmt.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from graftmt.adding.examination import Examination
    from graftmt.adding.run import AddResult
    from graftmt.adding.verdict import Verdict
    from graftmt.packs import Side


def add(
    languages: Annotated[str, typer.Argument(help="The new language, such as el; several at once with commas: el,uk.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="Changes to the resolved configuration: stages.0.learning_rate=1e-3 subwords.byte_fallback=true"),
    ] = None,
    *,
    base: BaseFolder,
    train: Annotated[
        list[str],
        typer.Option("--train", help="A corpus folder (train.el.txt, train.en.txt, …), or LANG=FILE for each language."),
    ],
    side: Annotated[
        Literal["source", "target", "both"] | None,
        typer.Option(
            "--side",
            help="Translate from the language (source), into it (target), or make a pack for each (both). "
            "Unless given: both, or the side of the pack that is continued.",
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            "-r",
            help="What to train, in the paper's notation or as the number of one of its models or of ours, with the lines in "
            "other languages that this one has; `graftmt recipes` lists them. "
            "Unless given: embed + enc-first-layer + init:alignment with lines in other languages (see --augment) as source, "
            "embed + dec-last-layer + enc-adapters-last as target.",
        ),
    ] = None,
    partners: Annotated[
        str | None,
        typer.Option("--with", help="The base's languages to train with: en, or en,fr, or all. Unless given: en where it is."),
    ] = None,
    valid: Annotated[
        list[str] | None, typer.Option("--valid", help="Validation text, as --train. Held out of it unless given.")
    ] = None,
    test: Annotated[list[str] | None, typer.Option("--test", help="Test text, as --train; used for the verdict.")] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="Folder of the run: checkpoints, log, pack/. runs/LANG-SIDE unless given.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The pack goes here too: a folder, or one file X.graftpack. Where both sides are made, packs/el means "
            "packs/el-source and packs/el-target. Another pack that lies there stays, and is an error.",
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, help="Updates; some 12 passes as source, 20 as target, unless given.")
    ] = None,
    minutes: Minutes = None,
    merges: Annotated[
        int | None, typer.Option("--merges", min=1, help="BPE merges of the new vocabulary, per language; 4000 unless given.")
    ] = None,
    augment: Annotated[
        str | None,
        typer.Option(
            "--augment",
            help="Train with the base's other languages too: multi-aligned, or N lines of each (1k); back-translated from "
            "English with -bt (1k-bt). Keeps these languages where the encoder is tuned. Unless given: as the model has it "
            "whose number is the --recipe; for a source pack of the default recipe on text with one language, up to 1k-bt, a "
            "quarter of the text in all. none: not even then, and instead of the default embeddings alone (embed + "
            "init:alignment).",
        ),
    ] = None,
    teacher: Annotated[
        Path | None, typer.Option("--teacher", help="A base that back-translates for --augment; the same one unless given.")
    ] = None,
    parent: Annotated[
        Path | None, typer.Option("--continue", help="A pack to train on with this text; the result records its parent.")
    ] = None,
    codes_from: Annotated[
        Path | None,
        typer.Option("--codes-from", help="For code:proxy:nearest: a base that knows the language, or a pack with its code."),
    ] = None,
    precision: Annotated[
        Literal["fp32", "bf16"], typer.Option("--base-dtype", help="How the frozen base is held; bf16 on a GPU saves half.")
    ] = "fp32",
    test_lines: Annotated[int, typer.Option("--lines", min=1, help="Lines a direction for the verdict.")] = 200,
    beam: Beam = 5,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of all that is random: first values, batches, dropout.")] = 1,
    device: Device = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Look at the text and say what training would cost; train nothing.")
    ] = False,
    fresh: FreshRun = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the result.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add a language to a base: train a small pack on its parallel text. The base does not change by one bit.

    Looks at the text first (lengths, <unk>, wrong language, overlap with the base), says what training will take, trains,
    and gives a verdict: scores in trained and in other directions, against a pivot, and ten translations. A run that was
    stopped goes on where it was when the same command is given again. What --minutes stops ends with exit code 0, as it was
    asked to, also where there is no pack yet: --json then has "pack": null, and the run, its step and how many there are.

    Examples:

    graftmt add el --base runs/demo/base --side source --train runs/demo/corpus --merges 1000

    graftmt add kab --base nllb --train kab=text.kab --train fr=text.fr --with fr --minutes 30

    graftmt add el --base BASE --side source --recipe "embed + enc-adapters-all(512)" --train corpus --augment 1k-bt
    """
    from graftmt.adding.request import AddOptions, check_early
    from graftmt.adding.run import add_language
    from graftmt.base import Base, choose_device
    from graftmt.cli.recipes import paper_recipe
    from graftmt.training import Stopped
    from graftmt.training.distribution import processes

    names = tuple(items(languages))
    sides = choose_sides(side, parent)
    both = len(sides) > 1
    say = speaker(quiet)
    augment = "none" if augment is not None and augment.casefold() == "none" else augment
    recipes = {one: (None, None) if recipe is None else paper_recipe(recipe, one) for one in sides}
    requests = [
        AddOptions(
            languages=names,
            base=base,
            train=tuple(train),
            side=one,
            valid=tuple(valid or ()),
            test=tuple(test or ()),
            partners=tuple(items(partners)) if partners is not None else None,
            recipe=recipes[one][0],
            run=run / one if run and both else run,
            output=_beside(output, one) if output and both else output,
            steps=steps,
            minutes=minutes,
            merges=merges,
            augment=recipes[one][1] if augment is None else augment,
            teacher=teacher,
            parent=parent,
            codes_from=codes_from,
            device=device,
            base_precision=precision,
            seed=seed,
            test_lines=test_lines,
            beam=beam,
            overrides=tuple(overrides or ()),
            dry_run=dry_run,
            fresh=fresh,
            quiet=quiet,
        )
        for one in sides
    ]
    started = time.monotonic()
    resident = Base.load(base, device=choose_device(device), dtype=precision)
    for request in requests:
        check_early(request, resident)  # both, before hours are spent on the first
    results: list[AddResult] = []
    with processes(choose_device(device)) as team:
        for request in requests:
            if both and team.first:
                say(f"{', '.join(names)} as {request.side}")
            left = None if minutes is None else max(0.0, minutes - (time.monotonic() - started) / 60)
            told = results[0].examination if results else None
            with stoppable(as_json=as_json):
                try:
                    results.append(add_language(replace(request, minutes=left), say, resident, told=told))
                except Stopped as stop:
                    stop.standing["made"] = [str(result.path) for result in results]
                    raise
    if not team.first:
        return
    if as_json:
        documents = [result.to_dict() for result in results]
        print(json.dumps(documents[0] if len(documents) == 1 else documents, ensure_ascii=False))
        return
    for result in results:
        show(result, base, told=results[0].examination if result is not results[0] else None)


def choose_sides(asked: Literal["source", "target", "both"] | None, parent: Path | None) -> tuple[Side, ...]:
    if asked in ("source", "target"):
        return (asked,)
    if parent is None:
        return ("source", "target")
    from graftmt.packs import read_pack_document

    own: Side = read_pack_document(parent)["side"]
    if asked == "both":
        raise ConfigError(f"--side both: the pack to continue, {parent}, is for the {own} side; leave --side out.")
    return (own,)


def _beside(output: Path, side: str) -> Path:
    """el.graftpack → el-source.graftpack: each side of two has a file of its own."""
    from graftmt.packs.archive import ARCHIVE

    archive = ARCHIVE if output.suffix == ARCHIVE else ""
    return output.with_name(f"{output.name.removesuffix(archive)}-{side}{archive}")


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

    if result.verdict is None:
        say(f"{result.pack.name}: {result.pack.recipe}\n{result.unjudged}")
    else:
        console.print(score_table(result, result.verdict))
        say(f"{result.verdict.words}\n")
        show_samples(console, result.verdict.samples)
    source, target = direction_to_try(result)
    say(
        f"\n{result.pack.size:,} parameters, trained in {result.pack.card['training_seconds']:.0f} s. The pack: {result.path}\n"
        f"Try it: graftmt translate --base {base} --packs {result.path} -s {source} -t {target}"
    )


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
