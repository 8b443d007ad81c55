"""Bilingual corpora made into one multi-parallel corpus through the language they share, out of core with DuckDB. Layer 4.

As in the paper (Section 5.1): texts are translations of each other when they are paired with the same English line, and each
English line is there once; of several translations of it in one corpus the first counts. Lines come in the order of their
English text's MD5: shuffled, and the same whatever the order of the corpora, their number of threads or the memory.

Each corpus is read into Parquet files sorted by that MD5, no larger than what the memory sorts with ease; then ranges of it,
each small enough for the memory, are grouped by the English text and written. So the memory needed does not grow with the
corpora. What was read is kept until the end, so that a run that was killed resumes there.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from graftmt.data.corpus import Corpus, check_equal_lengths, segmented
from graftmt.data.line_files import read_lines
from graftmt.documents import read_json, write_json
from graftmt.errors import DataError
from graftmt.files import atomic_file, atomic_folder
from graftmt.folders import exclusive
from graftmt.prepare.bilingual import BilingualCorpus
from graftmt.prepare.duckdb_work import AlignOptions, _duckdb, connect, quoted, understood
from graftmt.prepare.output_folder import check_replaceable
from graftmt.progress import Progress, progress

if TYPE_CHECKING:
    import pyarrow

FORMAT = 1
BATCH_LINES = 20_000
"""Lines that pass from Python to DuckDB, and back, at once."""
ROW_GROUP = 4096
"""Lines of a sorted file that are read together: few, for a range may need no more of each file."""
SORTED_SHARE = 1
"""The text of a sorted file is this many times the memory: at a few times, sorting still needs few passes over it."""
RANGE_SHARE = 16
"""The text of a range of MD5s takes this part of the memory; sorting and grouping it need several times as much."""


@dataclass
class Ingested:
    """What was read of one corpus."""

    pairs: int = 0
    incomplete: int = 0
    """Pairs without text on one side."""
    text_bytes: int = 0
    files: int = 0
    """Sorted files that hold the pairs."""
    different: int = 0
    """Different pivot lines among the pairs: each is in the result once, unless min_languages leaves it out."""
    lines: int = 0
    """Of the result that have text in this language."""

    @property
    def repeated(self) -> int:
        """Pairs whose pivot line was there before."""
        return self.pairs - self.incomplete - self.different


@dataclass(frozen=True)
class Alignment:
    """What came out."""

    lines: int
    """One for each different pivot line that is left."""
    left_out: int
    """Pivot lines in fewer than min_languages."""
    corpora: dict[str, Ingested]
    resumed: tuple[str, ...]
    """Languages that an earlier run had read."""
    seconds: dict[str, float]

    def facts(self) -> dict[str, Any]:
        corpora = {language: {**asdict(read), "repeated": read.repeated} for language, read in self.corpora.items()}
        for read in corpora.values():
            del read["text_bytes"], read["files"]
        return {"lines": self.lines, "left_out": self.left_out, "corpora": corpora}


def align(
    corpora: Sequence[BilingualCorpus],
    output: Path,
    options: AlignOptions | None = None,
) -> Alignment:
    """Writes the corpora's lines, joined through the pivot, as train.LANG.txt in `output`, whole or not at all."""
    options = options or AlignOptions()
    corpora = sorted(corpora, key=lambda corpus: corpus.language)
    check_replaceable(output, [file for corpus in corpora for file in corpus.files])
    marks = segmented(side for corpus in corpora for side in corpus.sides(options.pivot))
    work = _work_folder(output, options)
    with exclusive(work, "the alignment in"), understood(work, options):
        _remove_unfinished(work)
        started = time.monotonic()
        read, resumed = {}, []
        for corpus in corpora:
            kept, ingested = _ingest(corpus, work, options)
            read[corpus.language] = ingested
            resumed += [corpus.language] * kept
        joining = time.monotonic()
        lines, left_out = _join(read, work, output, options, marks)
        ended = time.monotonic()
        shutil.rmtree(work, ignore_errors=True)
    return Alignment(lines, left_out, read, tuple(resumed), {"reading": joining - started, "joining": ended - joining})


def _work_folder(output: Path, options: AlignOptions) -> Path:
    """The same for the same output, so that a second run finds what the first one left."""
    output = output.absolute()
    name = f".{output.name}.{hashlib.sha256(str(output).encode()).hexdigest()[:8]}.align"
    return (options.temporary.expanduser().absolute() if options.temporary else output.parent) / name


def _remove_unfinished(work: Path) -> None:
    """What a killed run left half-written in the work folder, which is this run's alone."""
    shutil.rmtree(work / "spill", ignore_errors=True)
    for unfinished_file in work.glob(".*.tmp"):
        unfinished_file.unlink()


def _ingest(corpus: BilingualCorpus, work: Path, options: AlignOptions) -> tuple[bool, Ingested]:
    """Reads a corpus into sorted files, unless a run before this one has read the same text; says whether it had."""
    key, facts = _content_key(corpus), work / f"{corpus.language}.json"
    if facts.is_file():
        kept = read_json(facts, "the alignment's notes")
        if kept.pop("key", None) == key:
            return True, Ingested(**kept)
    facts.unlink(missing_ok=True)
    with progress(f"reading {corpus.language}", 0) as report, connect(work, options) as database:
        stream = _Pairs(corpus, report)
        while not stream.ended:
            path = _sorted_file(work, corpus.language, stream.read.files)
            with atomic_file(path) as unfinished:
                _sort(stream, unfinished, SORTED_SHARE * options.memory_bytes, database)
            stream.read.files += 1
    if stream.read.pairs == stream.read.incomplete:
        raise DataError(f"{corpus.file} and {corpus.pivot_file} have no line with text on both sides; nothing to align.")
    write_json(facts, {"key": key, **asdict(stream.read)})  # last: it says that the files are whole
    return False, stream.read


def _sort(stream: _Pairs, path: Path, text_bytes: int, database: Any) -> None:
    """The next pairs of the stream, of about so much text, as a sorted file."""
    database.register("pairs", stream.reader(text_bytes))
    try:
        database.execute(
            "COPY (SELECT md5_number_upper(shared) AS key, shared, text, position FROM pairs ORDER BY key) "
            f"TO {quoted(path)} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP}, USE_TMP_FILE false)"
        )
    except _duckdb().Error:
        if stream.error is not None:  # what the files have, rather than DuckDB, is the trouble
            raise stream.error from None
        raise
    finally:
        database.unregister("pairs")


def _content_key(corpus: BilingualCorpus) -> str:
    digest = hashlib.sha256(f"{FORMAT}".encode())
    for path in corpus.files:
        try:
            with path.open("rb") as handle:
                digest.update(hashlib.file_digest(handle, "sha256").digest())
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}; check the path.") from None
    return digest.hexdigest()


def _sorted_file(work: Path, language: str, number: int) -> Path:
    return work / f"{language}.{number}.parquet"


class _Pairs:
    """The pairs of a corpus as Arrow batches, counted; `error` is what stopped them, for DuckDB would only quote it."""

    def __init__(self, corpus: BilingualCorpus, report: Progress) -> None:
        self.corpus, self.report = corpus, report
        self.read = Ingested()
        self.ended = False
        self.error: BaseException | None = None
        self.blocks = self._blocks()

    def reader(self, text_bytes: int) -> pyarrow.RecordBatchReader:
        """The next pairs, until they have so much text or there are no more."""
        import pyarrow

        schema = pyarrow.schema([("shared", pyarrow.string()), ("text", pyarrow.string()), ("position", pyarrow.int64())])
        return pyarrow.RecordBatchReader.from_batches(schema, self._batches(schema, self.read.text_bytes + text_bytes))

    def _batches(self, schema: pyarrow.Schema, until: int) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        try:
            for columns in self.blocks:
                arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
                self.read.text_bytes += arrays[0].nbytes + arrays[1].nbytes
                yield pyarrow.record_batch(arrays, schema=schema)
                self.report.update(self.read.pairs, "pairs")
                if self.read.text_bytes >= until:
                    return
            self.ended = True
        except BaseException as error:  # Ctrl-C too
            self.error = error
            raise

    def _blocks(self) -> Iterator[tuple[list[str], list[str], list[int]]]:
        """Whitespace is made plain, as in every corpus that is written; pairs without text on one side are left out."""
        both = [read_lines(path) for path in self.corpus.files]
        while True:
            start = self.read.pairs
            pivots, texts = ([" ".join(line.split()) for line in islice(lines, BATCH_LINES)] for lines in both)
            if len(pivots) != len(texts):
                self._unequal(start + len(pivots), start + len(texts), *both)
            if not pivots:
                return
            self.read.pairs += len(pivots)
            positions = list(range(start, self.read.pairs))
            if not (all(pivots) and all(texts)):
                kept = [index for index, pair in enumerate(zip(pivots, texts, strict=True)) if all(pair)]
                self.read.incomplete += len(pivots) - len(kept)
                pivots, texts = ([column[index] for index in kept] for column in (pivots, texts))
                positions = [start + index for index in kept]
            yield pivots, texts, positions

    def _unequal(self, pivots: int, texts: int, more_pivots: Iterator[str], more_texts: Iterator[str]) -> None:
        counts = {"pivot": pivots + sum(1 for _ in more_pivots), "text": texts + sum(1 for _ in more_texts)}
        files = {"pivot": self.corpus.pivot_file, "text": self.corpus.file}
        check_equal_lengths(counts, Corpus(self.corpus.file.parent, self.corpus.language, files))


def _join(
    read: dict[str, Ingested], work: Path, output: Path, options: AlignOptions, marks: Mapping[str, Any]
) -> tuple[int, int]:
    """Writes the lines, one range of MD5s after the other, and `marks` in corpus.json; counts lines written and left out."""
    languages = [options.pivot, *read]
    text_bytes = sum(ingested.text_bytes for ingested in read.values())
    ranges = max(1, -(-text_bytes * RANGE_SHARE // options.memory_bytes))
    different, lines = dict.fromkeys(languages, 0), dict.fromkeys(languages, 0)
    with (
        atomic_folder(output) as folder,
        progress("joining", ranges) as report,
        connect(work, options) as database,
    ):
        with ExitStack() as stack:
            files = [stack.enter_context((folder / f"train.{language}.txt").open("wb")) for language in languages]
            for number in range(ranges):
                bounds = [(number + end) * 2**64 // ranges for end in (0, 1)]
                for batch in database.sql(_grouping(read, work, bounds)).to_arrow_reader(BATCH_LINES):
                    _count(batch, languages, different)
                    chosen = _in_enough_languages(batch, options.min_languages)
                    _count(chosen, languages, lines)
                    for file, column in zip(files, chosen.columns, strict=False):
                        _write_lines(file, column)
                report.update(number + 1, f"{lines[options.pivot]:,} lines")
        if not lines[options.pivot]:
            raise DataError(f"no line has text in {options.min_languages} languages; lower min_languages. Nothing was written.")
        for language, ingested in read.items():
            ingested.different, ingested.lines = different[language], lines[language]
        total, left_out = lines[options.pivot], different[options.pivot] - lines[options.pivot]
        alignment = Alignment(total, left_out, read, (), {})
        facts = {"lines": {"train": total}, "languages": {"train": languages}, "pivot": options.pivot, **marks}
        write_json(folder / "corpus.json", {**facts, "min_languages": options.min_languages, "aligned": alignment.facts()})
    return total, left_out


def _grouping(read: dict[str, Ingested], work: Path, bounds: Sequence[int]) -> str:
    """The lines whose pivot text has an MD5 in these bounds: a column for the pivot and each language, in order."""
    rows = " UNION ALL ".join(
        f"SELECT {number} AS language, key, shared, text, position FROM read_parquet([{_files(work, language, ingested)}]) "
        f"WHERE key >= {bounds[0]}::UBIGINT AND key <= {bounds[1] - 1}::UBIGINT"
        for number, (language, ingested) in enumerate(read.items())
    )
    # The first by position, not by order of reading: threads read as they like.
    texts = ", ".join(f"arg_min(text, position) FILTER (language = {number}) AS text_{number}" for number in range(len(read)))
    return f"SELECT shared, {texts} FROM ({rows}) GROUP BY key, shared ORDER BY key, shared"


def _files(work: Path, language: str, ingested: Ingested) -> str:
    return ", ".join(quoted(_sorted_file(work, language, number)) for number in range(ingested.files))


def _count(batch: pyarrow.RecordBatch, languages: Sequence[str], counts: dict[str, int]) -> None:
    for language, column in zip(languages, batch.columns, strict=True):
        counts[language] += len(column) - column.null_count


def _in_enough_languages(batch: pyarrow.RecordBatch, fewest: int) -> pyarrow.RecordBatch:
    if fewest <= 2:  # each line has the pivot and another one
        return batch
    import numpy as np
    import pyarrow

    present = sum(column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64) for column in batch.columns)
    return batch.filter(pyarrow.array(present >= fewest))


def _write_lines(file: BinaryIO, column: pyarrow.Array) -> None:
    """Each text and a line end; Arrow holds the texts of an array one after the other, so that is one write."""
    import pyarrow.compute as compute

    ended = compute.binary_join_element_wise(compute.fill_null(column, ""), "", "\n")
    _, offsets, text = ended.buffers()
    assert ended.offset == 0
    ends = memoryview(offsets).cast("i")
    file.write(memoryview(text)[: ends[len(ended)]])
