"""`graftmt prepare clean`: repair and filter a corpus, and say what was dropped and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graftmt.cli.cleaning_report import show, warn_of_losses
from graftmt.cli.common import AsJson, Quiet, counted, finite, items, json_text
from graftmt.errors import ConfigError, DataError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graftmt.prepare.cleaning import Chunk, ChunkMapper, CleaningState, Counts
    from graftmt.prepare.cleaning_rules import CleaningConfig
    from graftmt.prepare.source import Source


def clean(
    corpus: Annotated[Path, typer.Argument(help="Corpus folder: train.en.txt, train.fr.txt, … of the same lines.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the clean corpus and report.json.", show_default=False)
    ] = None,
    preview: Annotated[
        bool,
        typer.Option("--preview", help="Write nothing: show what the rules would do to at most 20,000 lines, with examples."),
    ] = False,
    splits: Annotated[
        list[str] | None,
        typer.Option("--split", help="Split to clean, several with commas or by repeating; the others are copied."),
    ] = None,
    rules: Annotated[
        str,
        typer.Option(
            "--rules",
            help="Rules to apply, with commas, or with - before each those to leave out: --rules=-copies,-duplicates. All: "
            "encoding, control_characters, markup, normalisation, whitespace, invalid, empty, too_long, copies, placeholders, "
            "length_ratio, scripts, language_id, duplicates.",
        ),
    ] = "",
    max_length: Annotated[int, typer.Option("--max-length", min=1, help="Characters of a text, at most.")] = 1000,
    max_words: Annotated[int, typer.Option("--max-words", min=1, help="Words of a text, at most.")] = 200,
    max_ratio: Annotated[
        float,
        typer.Option("--max-ratio", min=1.0, callback=finite, help="Lengths of a line's texts, longer / shorter, at most."),
    ] = 3.0,
    max_foreign: Annotated[
        float,
        typer.Option("--max-foreign", min=0.0, max=1.0, callback=finite, help="Share of letters in another script, at most."),
    ] = 0.5,
    normalise: Annotated[str, typer.Option("--normalise", help="Unicode normalisation: none, NFC or NFKC.")] = "NFC",
    language_id: Annotated[
        bool, typer.Option("--language-id/--no-language-id", help="Drop texts that are clearly in another language.")
    ] = True,
    open_set: Annotated[
        bool,
        typer.Option(
            "--open-set",
            help="Let the detector choose among all languages it knows, not the corpus's and likely ones alone.",
        ),
    ] = False,
    candidates: Annotated[
        str,
        typer.Option(
            "--candidates",
            help="Languages that wrong texts may be in beside the corpus's own, with commas: the base's, say. Default: those "
            "that most text on the web is in, and those that clearly occur; with three languages or more, the corpus's own.",
        ),
    ] = "",
    margin: Annotated[
        float | None,
        typer.Option(
            "--margin",
            callback=finite,
            help="By how much another language must win, in log-odds per √byte; larger keeps more. Default: learnt from the "
            "corpus for each language, from 0 to 4.5, so that few good texts are lost.",
        ),
    ] = None,
    trusted: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted",
            help="LANG=FILE: text to learn a language from that the detector does not know; repeat for several. Languages that "
            "are not in the corpus help to find lines in them.",
        ),
    ] = None,
    reference: Annotated[
        str, typer.Option("--reference", help="Language that copies are copies of; default: English, or else the first.")
    ] = "",
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes",
            min=1,
            help="How many work at once: 1 unless given, with ray as many as it has CPUs. The result is the same.",
        ),
    ] = None,
    engine: Annotated[
        Literal["local", "ray"], typer.Option("--engine", help="local: this machine; ray: the workers of a Ray cluster.")
    ] = "local",
    ray_address: Annotated[
        str | None,
        typer.Option("--ray-address", help="A running cluster (auto, host:port, ray://…); one on this machine unless given."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Clean it even if the lines of two languages do not belong together.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Repair and filter a corpus: a bad text is emptied, a line with fewer than two texts left is dropped.

    Before that it looks whether the lines belong together. Text that is shifted, shuffled or exchanged is an error that names
    the line; --force cleans it anyway.

    Placeholders and numbers stay as they are. The folder gets a report.json with what was repaired and dropped, by rule and
    language, and examples.

    Example: graftmt prepare clean corpus --preview

    Example: graftmt prepare clean corpus -o clean --processes 2

    Example: graftmt prepare clean corpus -o clean --trusted szl=silesian.txt --rules=-duplicates
    """
    from graftmt.prepare.cleaning_rules import CleaningConfig

    config = CleaningConfig(
        normalisation=normalise,  # type: ignore[arg-type]  # checked there
        longest_characters=max_length,
        longest_words=max_words,
        largest_ratio=max_ratio,
        largest_foreign_share=max_foreign,
        open_set=open_set,
        candidates=tuple(items(candidates)),
        margin=margin,
        reference=reference,
    )
    config = apply_rules(config, rules, language_id)
    names = items(*(splits or ["train"]))
    mapper = with_engine(engine, ray_address, processes)
    trusted_files = parse_trusted(trusted or [])
    if output is None and not preview:
        raise ConfigError("where should the clean corpus go? Give --output FOLDER, or --preview to see what would be done.")
    report = clean_folder(corpus, None if preview else output, names, config, trusted_files, mapper, force=force)
    warn_of_losses(report)
    if as_json:
        print(json_text(report, indent=2))
    else:
        show(report, None if preview else output)


def with_engine(name: Literal["local", "ray"], address: str | None, processes: int | None) -> ChunkMapper:
    """Chunks in this process, in several of this machine, or on so many workers of a Ray cluster."""
    from functools import partial

    from graftmt.augmentation.engines import Engine, map_chunks
    from graftmt.prepare.cleaning import clean_chunk, in_processes, in_this_process

    engine = Engine(name=name, address=address, workers=processes if name == "ray" else None)
    if name == "local":
        return in_this_process if processes in (None, 1) else in_processes(processes)

    def run(chunks: Iterator[Chunk], config: CleaningConfig, state: CleaningState) -> Iterator[tuple[Chunk, Counts]]:
        return map_chunks(partial(clean_chunk, config=config, state=state), chunks, engine)

    return run


def apply_rules(config: CleaningConfig, rules: str, language_id: bool) -> CleaningConfig:
    from dataclasses import replace

    names = items(rules)
    config = config.with_rules(names) if names else config
    return config if language_id else replace(config, language_id=False)


def parse_trusted(values: list[str]) -> dict[str, Path]:
    """LANG=FILE of each."""
    files: dict[str, Path] = {}
    for value in values:
        language, equals, path = value.partition("=")
        if not equals or not language or not path:
            raise ConfigError(f"--trusted: {value!r} is not LANG=FILE, such as szl=silesian.txt.")
        if language in files:
            raise ConfigError(f"--trusted: {language!r} is given twice; put its text into one file.")
        files[language] = Path(path)
    return files


def clean_folder(
    folder: Path,
    output: Path | None,
    names: list[str],
    config: CleaningConfig,
    trusted: dict[str, Path],
    mapper: ChunkMapper,
    *,
    force: bool = False,
) -> dict[str, Any]:
    """Cleans these splits of `folder` into `output`, copies the others, and returns the report, which it writes there too.

    Without `output` nothing is written, and the report is of lines spread over the corpus.
    """
    from graftmt.data.corpus import read_lines, segmented
    from graftmt.prepare.cleaning import clean as clean_source
    from graftmt.prepare.output_folder import check_replaceable, corpus_source, open_splits
    from graftmt.prepare.raw import raw_source
    from graftmt.prepare.source import write_corpus

    corpora = open_splits(folder)
    for name in names:
        if name not in corpora:
            raise DataError(
                f"{folder} has no split {name!r}{nearest(name, corpora) or '.'} Splits there: {', '.join(corpora)}."
            )
    files = [item for corpus in corpora.values() for item in corpus.files.items()]
    if output is not None:
        check_replaceable(output, [folder, *(path for _, path in files), *trusted.values()])
    texts = {language: [line for line in read_lines(path) if line] for language, path in trusted.items()}
    # The rules find what is no text, such as bytes that are not UTF-8; in what is copied that is an error. So these splits come
    # first, and nobody waits for the cleaning to be told.
    copied = [name for name in corpora if name not in names]
    sources: dict[str, Source] = {name: corpus_source(corpora[name]) for name in copied}
    reports = {}
    for name in names:
        check_in_step(raw_source(corpora[name]), config.reference, force=force)
    for name, corpus in corpora.items():
        if name in names:
            source = raw_source(corpus) if output is not None else sample_of(raw_source(corpus))
            sources[name], reports[name] = clean_source(source, config, trusted=texts, mapper=mapper)

    def report() -> dict[str, Any]:
        return {"splits": {name: counts.document() for name, counts in reports.items()}, "copied": copied}

    with_progress = {name: counted(source, name) for name, source in sources.items()}
    if output is None:
        for name in reports:
            for _ in with_progress[name]:
                pass
        return {**report(), "preview": True}
    facts = {"made_by": "graftmt prepare clean", "from": str(folder), **segmented(files)}
    write_corpus(output, with_progress, facts, report=report)
    return report()


def sample_of(source: Source) -> Source:
    """For a preview: at most 20,000 lines, spread over the whole."""
    from graftmt.prepare.source import Source, spread_lines

    lines = spread_lines(source, 20_000)
    return Source(source.name, source.languages, lambda: iter(lines))


def check_in_step(source: Source, reference: str, *, force: bool) -> None:
    """Stops where the lines of two languages do not belong together: no rule mends that, and it looks clean."""
    from graftmt.prepare.refusal import check_source, refuse
    from graftmt.text.aliases import english_in

    reference = reference or english_in(source.languages) or source.languages[0]
    if reference in source.languages:  # what is not there is an error of its own
        refuse(check_source(source, reference), source.name, force=force)
