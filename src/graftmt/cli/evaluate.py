"""`graftmt evaluate`: BLEU and chrF of many directions."""

from __future__ import annotations

import json
from dataclasses import asdict
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
    SourcePack,
    TargetPack,
    parse_packs,
)


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
    beam: Beam = 5,
    length_penalty: LengthPenalty = 1.0,
    max_length: MaxLength = 1024,
    tokenize: Annotated[
        str | None,
        typer.Option("--tokenize", help="sacreBLEU's tokeniser, such as 13a, none, char; by language unless set."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for report.json, report.md and every translation.")
    ] = None,
    batch: BatchTokens = 0,
    device: Device = "auto",
    dtype: Precision = "fp32",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: AsJson = False,
) -> None:
    """Score a base on a list of directions: BLEU and chrF with sacreBLEU's signatures, and averages →EN, ←EN, /EN.

    With packs, a view such as multi-parallel means the directions that base and packs together can translate.

    Example: graftmt evaluate --base runs/demo/base --corpus runs/demo/corpus -d multi-parallel -o runs/demo/scores

    Example: graftmt evaluate -b BASE -c CORPUS --packs el-source,uk-target -d el-uk --through en
    """
    from rich.console import Console

    from graftmt.base import choose_device
    from graftmt.data import Corpus, select_directions
    from graftmt.decoding import SearchOptions, batch_tokens_for
    from graftmt.errors import LanguageError
    from graftmt.evaluation import averages, score_table
    from graftmt.files import write_json, write_text
    from graftmt.progress import progress
    from graftmt.translator import Translator

    device = choose_device(device)
    translator = Translator(base, parse_packs(packs), device=device, dtype=dtype)
    found = Corpus.open(corpus, split)
    languages = [language for language in translator.languages if language in found.languages]
    if len(languages) < 2:
        raise LanguageError(
            f"{corpus} has {split} text in {', '.join(found.languages)} and the base knows {', '.join(translator.languages)}: "
            f"{len(languages)} in common, where translation needs 2."
        )
    chosen = select_directions(directions, languages, pivot)
    if packs:  # a view means what can be translated: a source pack does not make its language a target
        reads, writes = translator.source_languages, translator.target_languages
        views = [d for d in chosen if d.source in reads and d.target in writes]
        chosen = chosen if "," in directions or not views else views
    options = SearchOptions(
        beam=beam, length_penalty=length_penalty, max_length=max_length, batch_tokens=batch or batch_tokens_for(device)
    )
    with progress(f"translating {len(chosen)} directions", 0, quiet=quiet) as report:
        evaluations = translator.evaluate(
            found,
            chosen,
            lines=lines,
            options=options,
            tokenize=tokenize,
            pivot=through,
            source_pack=source_pack,
            target_pack=target_pack,
            on_batch=lambda n: report.update(n, "lines"),
        )
    scores = [evaluation.scores for evaluation in evaluations]
    route = f", through {through}" if through else ""
    table = score_table(scores, title=f"{split}, beam {beam}{route}", pivot=pivot)
    document = {
        "base": translator.base.fingerprint,
        "packs": {name: pack.fingerprint for name, pack in translator.packs.items()},
        "through": through,
        "split": split,
        "beam": beam,
        "length_penalty": length_penalty,
        "directions": {score.direction: asdict(score) for score in scores},
        "averages": {name: asdict(average) for name, average in averages(scores, pivot).items()},
    }
    if output is not None:
        for evaluation in evaluations:
            write_text(
                output / f"{split}.{evaluation.scores.direction}.txt",
                "".join(f"{line}\n" for line in evaluation.hypotheses),
            )
        write_json(output / "report.json", document)
        write_text(output / "report.md", table.markdown() + "\n")
    if as_json:
        print(json.dumps(document, ensure_ascii=False))
    else:
        Console().print(table.rich())
