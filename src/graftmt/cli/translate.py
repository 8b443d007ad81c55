"""`graftmt translate`: standard input to standard output, line by line, or a whole file to another."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from graftmt.cli.declared import AsJson, open_translator, silenced, takes
from graftmt.cli.output import hand_over, json_text
from graftmt.errors import ConfigError, DataError, LanguageError
from graftmt.progress import say
from graftmt.translation_options import TranslateOptions

if TYPE_CHECKING:
    from graftmt.translator import Translator

Quiet = Annotated[bool, typer.Option("--quiet", "-q", callback=silenced, help="With --input: no progress messages")]


@takes(TranslateOptions)
def translate(options: TranslateOptions, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Translate standard input to standard output, or --input to --output.
    One line in, one line out, in order. With files, rerun the command to
    resume. Packs add languages: one reads, another writes.

    Examples:
      echo '3 days ago' | graftmt translate -b runs/demo/base -s en -t fr
      graftmt translate -b BASE -p el-source,uk-target -s el -t uk < in > out
      graftmt translate -b BASE -s en -t fr -i news.en.gz -o news.fr.gz

    More: docs/performance.md
    """
    from graftmt.devices import choose_device

    if quiet and options.input is None:
        raise ConfigError("--quiet is for --input and --output; leave it out.")
    options = replace(options, device=choose_device(options.device))
    translator = open_translator(options)
    options = in_codes(options, translator)
    if options.input is not None and options.output is not None:
        translate_to_file(translator, options, options.input, options.output, as_json=as_json)
    else:
        translate_input(translator, options, as_json=as_json)


def in_codes(options: TranslateOptions, translator: Translator) -> TranslateOptions:
    """The same with the codes of its languages, which may have other names; a direction that cannot be is an error."""
    source, target = translator.code(options.source, "source"), translator.code(options.target, "target")
    pivot = None if options.pivot is None else translator.code(options.pivot, "target")
    if pivot in (source, target):
        raise LanguageError(f"--pivot {pivot}: it is one of the two languages; leave it out to translate directly.")
    translator.check_direction(source, target, pivot, options.source_pack, options.target_pack)
    return replace(options, source=source, target=target, pivot=pivot)


def translate_to_file(translator: Translator, options: TranslateOptions, source: Path, output: Path, *, as_json: bool) -> None:
    from graftmt.bulk import FileJob, translate_file, window_for
    from graftmt.decoding import search_of

    job = FileJob(
        input=source,
        output=output,
        source=options.source,
        target=options.target,
        pivot=options.pivot,
        source_pack=options.source_pack,
        target_pack=options.target_pack,
        options=search_of(options, options.n_best),
        window=options.chunk or window_for(options.device),
        desegment=options.desegment,
        skip_bad_lines=options.skip_bad_lines,
        fresh=options.fresh,
    )
    try:
        result = translate_file(translator, job)
    except KeyboardInterrupt:
        say(f"graftmt: stopped; what is done is kept next to {output}. Rerun the command to resume.")
        raise
    print(json_text(result.to_dict())) if as_json else say(str(result))


def translate_input(translator: Translator, options: TranslateOptions, *, as_json: bool) -> None:
    """Lines as they come: a slow producer gets each translation at once, a file goes through in large batches."""
    from graftmt.decoding import search_of
    from graftmt.prepare.segmentation import desegment as join_words
    from graftmt.translation_requests import LongLine, Request

    search = search_of(options, options.n_best)
    way = (options.source, options.target, options.pivot, options.source_pack, options.target_pack)

    def answer(lines: list[str]) -> None:
        found = translator.translate_requests([Request(line, *way) for line in lines], search)
        for line, translations in zip(lines, found, strict=True):
            if options.desegment:
                translations = [replace(t, text=join_words(t.text)) for t in translations]
            if as_json:
                entries = [{"text": t.text, "score": t.score, "finished": t.finished} for t in translations]
                print(json_text({"source": line, "translations": entries}))
            else:
                hand_over("\t".join(translation.text for translation in translations))
        sys.stdout.flush()

    done = 0
    # A reader of our own: at exit Python closes sys.stdin, which the thread may be waiting in, and would abort.
    for lines in chunks(open(sys.stdin.fileno(), "rb", closefd=False), options.chunk or 1024):  # noqa: SIM115
        try:
            answer(lines)
        except LongLine as error:
            answer(lines[: error.index])
            raise error.at(f"standard input, line {done + error.index + 1},") from None
        done += len(lines)


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
    from graftmt.data.line_files import decode_line
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
