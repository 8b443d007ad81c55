"""`graftmt evaluate`: BLEU, chrF and off-target rates of many directions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.common import (
    AsJson,
    BaseFolder,
    BatchTokens,
    Beam,
    Device,
    LengthPenalty,
    MaxLength,
    Packs,
    Precision,
    Quiet,
    SearchEngine,
    SourcePack,
    TargetPack,
    Tokenize,
    items,
    json_text,
    parse_packs,
    plain,
)
from graftmt.progress import say


def evaluate(
    base: BaseFolder,
    corpus: Annotated[Path, typer.Option("--corpus", "-c", help="Folder of line-aligned text: test.en.txt, test.fr.txt, …")],
    directions: Annotated[
        str,
        typer.Option("--directions", "-d", help="english-centric, multi-parallel, to-en, from-en, or en-fr,fr-en,…"),
    ] = "english-centric",
    packs: Packs = None,
    source_pack: SourcePack = None,
    target_pack: TargetPack = None,
    through: Annotated[
        str | None, typer.Option("--through", help="Translate through this language, such as en, in two hops.")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Which files of the folder.")] = "test",
    lines: Annotated[int | None, typer.Option("--lines", "-n", min=1, help="Only the first so many lines.")] = None,
    pivot: Annotated[str, typer.Option("--pivot", help="The language that averages are grouped by.")] = "en",
    new: Annotated[
        str | None,
        typer.Option("--new", help="The new languages X of the averages, with commas; those of the packs unless given."),
    ] = None,
    beam: Beam = 5,
    length_penalty: LengthPenalty = 1.0,
    max_length: MaxLength = 1024,
    tokenize: Tokenize = None,
    desegment: Annotated[
        bool | None,
        typer.Option(
            "--desegment/--no-desegment",
            help="Take the spaces between Chinese characters out of translations and references before scoring. Unless given, "
            "where the corpus was made by `graftmt prepare segment`.",
        ),
    ] = None,
    off_target: Annotated[
        bool, typer.Option("--off-target/--no-off-target", help="Which share of the translations is in the wrong language.")
    ] = True,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for report.json, report.md, heat-maps and every translation."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Translate again what the folder holds already.")] = False,
    batch: BatchTokens = 0,
    device: Device = "auto",
    dtype: Precision = "fp32",
    engine: SearchEngine = "native",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Score base and packs on many directions: BLEU and chrF with sacreBLEU's signatures, and the share of translations that
    are in the wrong language.

    Averages are the paper's: →EN, ←EN and /EN (neither side English) over the base's languages, and with packs X→EN, X→/EN,
    EN→X, /EN→X and X→X for their languages X.

    With packs, a view such as multi-parallel means the directions that base and packs together can translate.

    With -o every direction is kept as it is done. Killed, the same command goes on; with another --tokenize, --new or --pivot
    it scores again what it translated before. `graftmt compare` tells whether two such folders differ by more than chance.

    Example: graftmt evaluate --base runs/demo/base --corpus runs/demo/corpus -d multi-parallel -o runs/demo/scores

    Example: graftmt evaluate -b BASE -c CORPUS --packs el-source,uk-target -d el-uk --through en

    Example: graftmt evaluate -b BASE -c flores --tokenize spm:flores101.model -d multi-parallel -o runs/flores
    """
    from rich.console import Console

    from graftmt.api import chosen_directions, pivot_of
    from graftmt.assessment.assess import AssessOptions, assess
    from graftmt.assessment.score_report import document, off_target_notes, table, write_report
    from graftmt.data import Corpus
    from graftmt.decoding import SearchOptions, batch_tokens_for
    from graftmt.devices import choose_device
    from graftmt.interop.engines import open_translator

    device = choose_device(device)
    translator = open_translator(engine, base, parse_packs(packs), device=device, dtype=dtype)
    found = Corpus.open(corpus, split).known_as(translator.languages)
    pivot = pivot_of(translator, pivot)
    through = None if through is None else translator.code(through, "target")
    chosen = chosen_directions(translator, found, directions, pivot)
    options = AssessOptions(
        directions=tuple(chosen),
        lines=lines,
        through=through,
        source_pack=source_pack,
        target_pack=target_pack,
        search=SearchOptions(
            beam=beam, length_penalty=length_penalty, max_length=max_length, batch_tokens=batch or batch_tokens_for(device)
        ),
        tokenize=tokenize,
        pivot=pivot,
        new=None if new is None else tuple(items(new)),
        desegment=desegment,
        off_target=off_target,
        output=output,
        fresh=fresh,
    )
    assessment = assess(translator, found, options)
    report = document(assessment)
    if output is not None:
        write_report(output, assessment, report)
        if kept := len(chosen) - assessment.translated:
            say(f"{kept} of {len(chosen)} directions had been translated before; they are in {output}.")
    if as_json:
        print(json_text(report))
    else:
        console = Console()
        console.print(table(assessment).rich())
        for note in off_target_notes(assessment):
            console.print(plain(note), soft_wrap=True)
