"""`graftmt translate`: standard input to standard output, line by line, or a whole file to another."""

from __future__ import annotations

import queue
import shlex
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from graftmt.cli.common import (
    BaseFolder,
    BatchTokens,
    Beam,
    Device,
    LengthPenalty,
    MaxLength,
    Packs,
    Precision,
    SearchEngine,
    SourcePack,
    TargetPack,
    json_text,
    parse_packs,
    silenced,
    tell,
)
from graftmt.errors import ConfigError, DataError, LanguageError
from graftmt.progress import say


def translate(
    base: BaseFolder,
    source: Annotated[str, typer.Option("--source", "-s", help="Language of the input, such as en.")],
    target: Annotated[str, typer.Option("--target", "-t", help="Language of the output, such as fr.")],
    text: Annotated[list[str] | None, typer.Argument(hidden=True, help="Not taken: text comes by standard input.")] = None,
    packs: Packs = None,
    input_file: Annotated[
        Path | None,
        typer.Option("--input", "-i", help="Translate this file (.gz, .xz, .zst too) into --output, not standard input."),
    ] = None,
    output_file: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Where to; what is unfinished stands beside it as OUTPUT.partial and is gone on with."
        ),
    ] = None,
    pivot: Annotated[
        str | None, typer.Option("--pivot", help="Go through this language, such as en, in two hops; slower.")
    ] = None,
    source_pack: SourcePack = None,
    target_pack: TargetPack = None,
    beam: Beam = 5,
    length_penalty: LengthPenalty = 1.0,
    max_length: MaxLength = 1024,
    desegment: Annotated[
        bool, typer.Option("--desegment", help="Take the spaces between Chinese characters out of the output.")
    ] = False,
    n_best: Annotated[int, typer.Option("--n-best", help="So many translations of a line, on one line with tabs between.")] = 1,
    chunk: Annotated[
        int | None,
        typer.Option(
            "--chunk",
            min=1,
            help="Read so many lines at once, to sort them by length. 1024 unless given; with files on a GPU 8192.",
        ),
    ] = None,
    batch: BatchTokens = 0,
    device: Device = "auto",
    dtype: Precision = "fp32",
    engine: SearchEngine = "native",
    skip_bad_lines: Annotated[
        bool,
        typer.Option("--skip-bad-lines", help="With files: a line too long or not text gives an empty one and is counted."),
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="With files: forget unfinished work, and replace an output that is there.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", callback=silenced, help="With files: no progress.")] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="A JSON object for each line, with scores; with files, one with lines/s and tokens/s."),
    ] = False,
) -> None:
    """Translate standard input to standard output, or --input to --output: one line in, one line out, in order.

    An empty line stays one.

    Input that is no text (invalid UTF-8, NUL) or far too long for one line ends it with an error that names the line, after
    the translations of all lines before it.

    Lines are translated as they come: a slow producer gets each translation at once, a file goes through in large batches.

    Large files: --input and --output, of any size, with lines/s shown. Killed at any moment, the same command goes on where it
    was, and the output is what it would have been. It takes its name when it is complete; until then OUTPUT.partial has what
    is done. OUTPUT.work.json says of what text, base, packs and options, and stays. If one of these has changed, you are
    told which; --fresh starts over.

    Packs add languages: a source pack reads one, a target pack writes one, and one of each translate between two new ones.

    Examples:

    echo '3 days ago' | graftmt translate --base runs/demo/base -s en -t fr

    graftmt translate -b BASE --packs el-source,uk-target -s el -t uk < input.el > output.uk

    graftmt translate -b BASE -s en -t fr --input news.en.gz --output news.fr.gz
    """
    from graftmt.decoding import SearchOptions, batch_tokens_for
    from graftmt.devices import choose_device
    from graftmt.interop.engines import open_translator
    from graftmt.prepare.segmentation import desegment as join_words
    from graftmt.translation_requests import LongLine, Request

    if text:
        raise ConfigError(text_is_no_argument(text, base, source, target))
    check_files(input_file, output_file, fresh=fresh, skip_bad_lines=skip_bad_lines, quiet=quiet)
    device = choose_device(device)
    translator = open_translator(engine, base, parse_packs(packs), device=device, dtype=dtype)
    source, target = translator.code(source, "source"), translator.code(target, "target")
    pivot = None if pivot is None else translator.code(pivot, "target")
    if pivot in (source, target):
        raise LanguageError(f"--pivot {pivot}: it is one of the two languages; leave it out to translate directly.")
    translator.check_direction(source, target, pivot, source_pack, target_pack)
    options = SearchOptions(
        beam=beam,
        n_best=n_best,
        length_penalty=length_penalty,
        max_length=max_length,
        batch_tokens=batch or batch_tokens_for(device),
    )
    if input_file is not None and output_file is not None:
        from graftmt.bulk import FileJob, translate_file, window_for

        job = FileJob(
            input=input_file,
            output=output_file,
            source=source,
            target=target,
            pivot=pivot,
            source_pack=source_pack,
            target_pack=target_pack,
            options=options,
            window=chunk or window_for(device),
            desegment=desegment,
            skip_bad_lines=skip_bad_lines,
            fresh=fresh,
        )
        try:
            result = translate_file(translator, job)
        except KeyboardInterrupt:
            say(f"graftmt: stopped; what is done is kept beside {output_file}. The same command goes on from here.")
            raise
        if as_json:
            print(json_text(result.to_dict()))
        else:
            say(str(result))
        return

    def answer(lines: list[str]) -> None:
        found = translator.translate_requests(
            [Request(line, source, target, pivot, source_pack, target_pack) for line in lines], options
        )
        for line, translations in zip(lines, found, strict=True):
            if desegment:
                translations = [replace(t, text=join_words(t.text)) for t in translations]
            if as_json:
                entries = [{"text": t.text, "score": t.score, "finished": t.finished} for t in translations]
                print(json_text({"source": line, "translations": entries}))
            else:
                tell("\t".join(translation.text for translation in translations))
        sys.stdout.flush()

    done = 0
    # A reader of our own: at exit Python closes sys.stdin, which the thread may be waiting in, and would abort.
    for lines in chunks(open(sys.stdin.fileno(), "rb", closefd=False), chunk or 1024):  # noqa: SIM115
        try:
            answer(lines)
        except LongLine as error:
            answer(lines[: error.index])
            raise error.at(f"standard input, line {done + error.index + 1},") from None
        done += len(lines)


def text_is_no_argument(text: list[str], base: Path, source: str, target: str) -> str:
    """Text is read from standard input or a file: what to type instead."""
    if len(text) == 1 and Path(text[0]).is_file():
        return f"to translate the file {text[0]}: --input {shlex.quote(text[0])} --output FILE, or < {shlex.quote(text[0])}"
    said = " ".join(text)
    return (
        f"{said[:60]!r} is text, which translate reads from standard input: "
        f"echo {shlex.quote(said)} | graftmt translate -b {shlex.quote(str(base))} -s {source} -t {target}"
    )


def check_files(input_file: Path | None, output_file: Path | None, **only_with_them: bool) -> None:
    """Both files or none: what comes from a pipe cannot be read again after a kill."""
    if (input_file is None) != (output_file is None):
        missing = "--output" if output_file is None else "--input"
        raise ConfigError(f"{missing} is missing: give both files, or none of them for standard input and output.")
    for name, given in only_with_them.items():
        if given and input_file is None:
            raise ConfigError(f"--{name.replace('_', '-')} is for --input and --output; leave it out.")


def chunks(stream: BinaryIO, size: int) -> Iterator[list[str]]:
    """Lines in groups of at most `size`: as many as have come by the time the last group is done."""
    lines: queue.Queue[str | DataError | None] = queue.Queue(maxsize=4 * size)
    threading.Thread(target=_read, args=(stream, lines), name="graftmt-input", daemon=True).start()
    while True:
        first = lines.get()
        group: list[str] = []
        item: str | DataError | None = first
        while isinstance(item, str):
            group.append(item)
            if len(group) == size:
                break
            try:
                # A moment's wait: a file is read faster than this, so batches fill up.
                item = lines.get(timeout=0.02)
            except queue.Empty:
                break
        if group:
            yield group
        if isinstance(item, DataError):
            raise item
        if item is None:
            return


def _read(stream: BinaryIO, lines: queue.Queue[str | DataError | None]) -> None:
    """What cannot be read as text, or has no end, ends the input with an error, after all lines before it."""
    from graftmt.data.corpus import decode_line
    from graftmt.translation_requests import BYTES_TOO_MANY, LONGEST_BYTES, LongLine

    number = 0
    try:
        while raw := stream.readline(LONGEST_BYTES + 1):
            number += 1
            if len(raw) > LONGEST_BYTES:  # its end is not waited for: there may be none
                raise LongLine(number - 1, BYTES_TOO_MANY, f"standard input, line {number},")
            lines.put(decode_line(raw, number, "standard input"))
        lines.put(None)
    except DataError as error:
        lines.put(error)
    except OSError as error:
        lines.put(DataError(f"standard input cannot be read past line {number}: {error.strerror or error}."))
