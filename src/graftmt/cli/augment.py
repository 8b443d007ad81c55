"""`graftmt augment`: pairs of a new language with the base's other languages, real or back-translated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graftmt.cli.common import (
    AsJson,
    BaseFolder,
    BatchTokens,
    Beam,
    Device,
    Minutes,
    Packs,
    Precision,
    Quiet,
    items,
    json_text,
    parse_packs,
    plain,
    stoppable,
)

if TYPE_CHECKING:
    from graftmt.augmentation import AugmentResult


def augment(
    languages: Annotated[str, typer.Argument(help="The new language, such as el; several at once with commas: el,uk.")],
    base: BaseFolder,
    train: Annotated[
        list[str],
        typer.Option(
            "--train",
            help="A corpus folder (train.el.txt, train.en.txt, …), or for each language LANG=FILE or a file like text.el.txt.",
        ),
    ],
    spec: Annotated[
        str,
        typer.Option(
            "--spec",
            help="What to add: N or N-bt lines for each language of the base (1000, 1k-bt), multi-aligned (all real ones) or "
            "multi-aligned-bt; -bt: back-translated. The paper's own words are understood too.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The corpus folder to make.")],
    teacher: Annotated[
        Path | None, typer.Option("--teacher", help="A base that translates; --base itself unless given.")
    ] = None,
    packs: Packs = None,
    only: Annotated[
        str | None, typer.Option("--languages", help="Of the base, such as fr,de; all but the pivot unless given.")
    ] = None,
    pivot: Annotated[
        str | None, typer.Option("--pivot", help="The language to translate from; English where the corpus has it.")
    ] = None,
    beam: Beam = 1,
    seed: Annotated[int, typer.Option("--seed", help="Another seed chooses other lines.")] = 1,
    keep_copies: Annotated[
        bool, typer.Option("--keep-copies", help="Keep translations that are the same as their source.")
    ] = False,
    keep_duplicates: Annotated[
        bool, typer.Option("--keep-duplicates", help="Keep a translation that another line has too.")
    ] = False,
    chunk: Annotated[
        int, typer.Option("--chunk", min=1, help="Lines translated and stored together; a GPU takes some of these at a time.")
    ] = 512,
    batch: BatchTokens = 0,
    engine: Annotated[
        Literal["local", "ray"], typer.Option("--engine", help="local: this process; ray: the workers of a Ray cluster.")
    ] = "local",
    translate_with: Annotated[
        str,
        typer.Option("--translate-with", help="native, or ctranslate2: faster on a CPU (exports the teacher once)."),
    ] = "native",
    ray_address: Annotated[
        str | None,
        typer.Option("--ray-address", help="A running cluster (auto, host:port, ray://…); one on this machine unless given."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="With ray: so many; as many as it has CPUs or GPUs unless given.")
    ] = None,
    device: Device = "auto",
    dtype: Precision = "fp32",
    minutes: Minutes = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over, also where there is a result or unfinished work.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make a corpus in which a new language is paired with all languages of a base, for better zero-shot translation.

    With Greek-English text alone, a pack translates Greek into French poorly. A thousand lines for each other language mend
    most of that, and they may be machine-translated: the base, or another --teacher, translates the English side. Lines are
    chosen by --seed, spread over the corpus. Empty translations, copies of the source and repetitions are dropped and counted.

    Killed at any moment, the same command goes on where it was: what is done lies in OUTPUT.work until the corpus is whole.

    With --engine ray each worker loads the teacher once, from the same path on its machine; --device cuda gives each a GPU.

    Example:

    graftmt augment el --base runs/demo/base --train runs/demo/corpus --spec 1k-bt -o runs/el-1k

    graftmt add el --base runs/demo/base --train runs/el-1k --with all --side source --recipe "embed + enc-first-layer"

    graftmt augment el -b BASE --train el=text.el --train en=text.en --spec 20k-bt --teacher ENGLISH-CENTRIC --beam 5 -o OUT
    """
    from graftmt.augmentation import AugmentOptions, Engine
    from graftmt.augmentation import augment as run
    from graftmt.devices import choose_device
    from graftmt.interop.engines import open_engine

    options = AugmentOptions(
        new=tuple(items(languages)),
        base=base,
        train=tuple(train),
        spec=spec,
        output=output,
        teacher=teacher,
        packs=parse_packs(packs),
        languages=None if only is None else tuple(items(only)),
        pivot=pivot,
        beam=beam,
        seed=seed,
        keep_copies=keep_copies,
        keep_duplicates=keep_duplicates,
        chunk_lines=chunk,
        batch_tokens=batch,
        device=device,
        dtype=dtype,
        engine=Engine(name=engine, address=ray_address, workers=workers, gpu=engine == "ray" and device.startswith("cuda")),
        search=open_engine(translate_with, choose_device(device), dtype),
        minutes=minutes,
        fresh=fresh,
    )
    with stoppable(as_json=as_json, made="folder"):
        result = run(options)
    if as_json:
        print(json_text(result.to_dict()))
    else:
        show(result, options.new, base)


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
