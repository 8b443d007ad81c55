"""`graftmt prepare clean`: splits of a corpus folder, read as they are stored, cleaned, and the others copied. Layer 4."""

from __future__ import annotations

import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from lzma import LZMAError
from pathlib import Path
from typing import Any

from graftmt.data.corpus import Corpus, check_equal_lengths, segmented
from graftmt.data.line_files import open_binary, read_lines
from graftmt.errors import DataError, nearest
from graftmt.files import open_regular
from graftmt.prepare.clean_options import CleanOptions
from graftmt.prepare.cleaning import ChunkMapper, CleaningReport, clean
from graftmt.prepare.cleaning_rules import CleaningConfig
from graftmt.prepare.output_folder import check_replaceable, corpus_source, open_splits
from graftmt.prepare.refusal import check_source, refuse, refuse_another_language
from graftmt.prepare.source import ORIGIN, Line, Source, counted, spread_lines, write_corpus
from graftmt.text.aliases import english_in


def clean_folder(options: CleanOptions, config: CleaningConfig, mapper: ChunkMapper) -> dict[str, Any]:
    """Cleans these splits into `options.output`, copies the others, and returns the report, which it writes there too.

    A preview writes nothing, and its report is of lines spread over the corpus.
    """
    folder, output = options.corpus, None if options.preview else options.output
    corpora = open_splits(folder)
    check_splits(options, corpora)
    files = [item for corpus in corpora.values() for item in corpus.files.items()]
    trusted = options.trusted_files
    if output is not None:
        check_replaceable(output, [folder, *(path for _, path in files), *trusted.values()])
    texts = {language: [line for line in read_lines(path) if line] for language, path in trusted.items()}
    # The rules find what is no text, such as bytes that are not UTF-8; in what is copied that is an error. So these splits come
    # first, and nobody waits for the cleaning to be told.
    copied = [name for name in corpora if name not in options.splits]
    sources: dict[str, Source] = {name: corpus_source(corpora[name]) for name in copied}
    reports: dict[str, CleaningReport] = {}
    for name in options.splits:
        check_in_step(corpora[name], config.reference, force=options.force)
    for name, corpus in corpora.items():
        if name in options.splits:
            source = raw_source(corpus) if output is not None else sample_of(raw_source(corpus))
            sources[name], reports[name] = clean(source, config, trusted=texts, mapper=mapper)
            refuse_another_language(reports[name].state.filter, source.name, force=options.force)

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


def check_splits(options: CleanOptions, corpora: Mapping[str, Corpus]) -> None:
    for name in options.splits:
        if name not in corpora:
            known = ", ".join(corpora)
            raise DataError(f"{options.corpus} has no split {name!r}{nearest(name, corpora) or '.'} Splits there: {known}.")


def sample_of(source: Source) -> Source:
    """For a preview: at most 20,000 lines, spread over the whole."""
    lines = spread_lines(source, 20_000)
    return Source(source.name, source.languages, lambda: iter(lines))


def check_in_step(corpus: Corpus, reference: str, *, force: bool) -> None:
    """Stops where the lines of two languages do not belong together: no rule mends that, and it looks clean."""

    def origin(line: int) -> str:
        path = corpus.folder / f"{corpus.split}.{ORIGIN}.txt"
        with suppress(OSError, UnicodeDecodeError), open_regular(path) as lines:
            return next(islice(lines, line - 1, None), b"").decode().strip()
        return ""

    source = raw_source(corpus)
    reference = reference or english_in(source.languages) or source.languages[0]
    if reference in source.languages:  # what is not there is an error of its own
        refuse(check_source(source, reference), source.name, force=force, origin=origin)


def raw_source(corpus: Corpus) -> Source:
    """A split as it is stored, for cleaning: bytes that are not UTF-8 become U+FFFD, and NUL and very long lines pass.

    Other readers call these errors; here rules find, count and drop them.
    """

    def read() -> Iterator[Line]:
        readers = [_raw_lines(path) for path in corpus.files.values()]
        lengths = [0] * len(readers)
        while None not in (texts := [next(reader, None) for reader in readers]):
            lengths = [length + 1 for length in lengths]
            yield tuple(text for text in texts if text is not None)
        for place, (text, reader) in enumerate(zip(texts, readers, strict=True)):
            lengths[place] += (text is not None) + sum(1 for _ in reader)
        check_equal_lengths(dict(zip(corpus.languages, lengths, strict=True)), corpus)

    return Source(f"{corpus.folder}, {corpus.split}", corpus.languages, read)


def _raw_lines(path: Path) -> Iterator[str]:
    number = 0
    try:
        with open_binary(path) as handle:
            for number, raw in enumerate(handle, 1):
                if number == 1 and raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                    raise DataError(f"{path} is in UTF-16; convert it first: iconv -f UTF-16 -t UTF-8 FILE > NEW-FILE")
                yield raw.decode("utf-8", errors="replace").rstrip("\r\n")
    except (OSError, EOFError, LZMAError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read past line {number} ({error}); the file may be truncated.") from None
