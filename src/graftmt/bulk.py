"""Whole files translated: streamed in windows of lines, with their pace shown, and resumed after any kill. Layer 5.

Windows are cut at fixed places and sorted by length inside: a line's batch, and with it its translation, does not depend on
where the work was interrupted. `partial.py` keeps what is done.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from graftmt.data.line_files import UNREADABLE, compressed, decode_line, open_binary
from graftmt.decoding import SearchOptions
from graftmt.errors import ConfigError, DataError
from graftmt.partial import PartialFile, Position
from graftmt.places import check_file
from graftmt.progress import Progress, pace, progress
from graftmt.translation_requests import LONGEST_BYTES, LongLine, Request, Translation
from graftmt.translator import Translator

FORMAT = 1
BLOCK = 1 << 20
NAMED = 20
"""At most N skipped lines are named; the others are only counted."""
MOST_LINES = 10_000_000
"""Of a window, which is held in memory."""


@dataclass(frozen=True, kw_only=True)
class FileJob:
    """A file to translate, line by line, into another; .gz, .xz and .zst are read and written as such."""

    input: Path
    output: Path
    source: str
    target: str
    pivot: str | None = None
    source_pack: str | None = None
    target_pack: str | None = None
    options: SearchOptions
    window: int
    """Lines that are read, sorted, translated and stored together: what a kill can cost."""
    desegment: bool = False
    """Take the spaces between Chinese characters out."""
    skip_bad_lines: bool = False
    """A line that cannot be translated gives an empty one, instead of an error."""
    fresh: bool = False
    """Forget unfinished work, and replace an output that is there."""

    def __post_init__(self) -> None:
        if not 1 <= self.window <= MOST_LINES:
            raise ConfigError(f"the window is {self.window:,} lines; expected 1 to {MOST_LINES:,}.")


@dataclass(frozen=True, kw_only=True)
class FileResult:
    """What was done."""

    input: Path
    output: Path
    lines: int
    """All that the output has."""
    translated: int
    """Of these by this process; the others were done before."""
    skipped: int
    tokens: int
    """Of the translations made by this process, as the model writes them."""
    seconds: float
    """That it took, without loading the model."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "input": str(self.input),
            "output": str(self.output),
            "lines": self.lines,
            "translated_now": self.translated,
            "skipped": self.skipped,
            "seconds": round(self.seconds, 3),
            "lines_per_second": round(self.translated / max(self.seconds, 1e-9), 1),
            "tokens_per_second": round(self.tokens / max(self.seconds, 1e-9), 1),
        }

    def __str__(self) -> str:
        facts = self.to_dict()
        before = f", {self.lines - self.translated:,} of them from before" if self.translated < self.lines else ""
        skipped = f"; {self.skipped:,} could not be translated and are empty" if self.skipped else ""
        rates = f"{facts['lines_per_second']:,.1f} lines/s, {facts['tokens_per_second']:,.0f} tokens/s"
        pace = f": {self.seconds:,.1f} s, {rates}" if self.translated else ""
        return f"{self.lines:,} lines in {self.output}{before}{skipped}{pace}"


def window_for(device: str) -> int:
    """Lines of a window: enough for a few dozen full batches, few enough to be done within a minute or so."""
    return 8192 if device.startswith("cuda") else 1024


def translate_file(translator: Translator, job: FileJob) -> FileResult:
    """Translates the file, or resumes where an earlier process with the same job was stopped."""
    output = check_output(job)
    translator.check_direction(job.source, job.target, job.pivot, job.source_pack, job.target_pack)
    text = InputText.of(job.input)
    file = PartialFile(output, describe(translator, job, text))
    started, tokens = time.monotonic(), 0
    with (
        progress(f"{job.source}-{job.target}", text.lines) as bar,
        file.begin(fresh=job.fresh) as position,
    ):
        before = position.lines
        if file.note:
            bar.message(file.note)
        if before:
            bar.message(f"{before:,} lines of {job.input} were translated before")
        if not position.finished:
            bad = BadLines(job, bar, position.skipped)
            for window in read_windows(job, position, bad):

                def hear(done: int, first: int = window.first) -> None:
                    now = first + done
                    bar.update(now, pace(now - before, text.lines - now, time.monotonic() - started))

                found = translate_window(translator, job, window, bad, hear)
                tokens += sum(translation.tokens for translations in found for translation in translations[:1])
                position = replace(position, lines=window.end, read=window.read, skipped=bad.count)
                position = file.append(compressed(as_text(found, job.desegment).encode(), output), position)
                hear(len(window.lines))
            if not position.written:
                position = file.append(compressed(b"", output), position)  # no bytes at all are no .gz
            text.check_unchanged()
            file.finish(position)
    return FileResult(
        input=job.input,
        output=job.output,
        lines=position.lines,
        translated=position.lines - before,
        skipped=position.skipped,
        tokens=tokens,
        seconds=time.monotonic() - started,
    )


def check_output(job: FileJob) -> Path:
    """Where the output really is: a link is followed, for it is the file behind it that gets replaced."""
    output = job.output.resolve()
    if output.exists() and not output.is_file():
        raise ConfigError(f"--output {job.output} is no plain file, which is needed to resume; leave out both for pipes.")
    check_file(job.output)
    if output == job.input.resolve():
        raise ConfigError(f"--input and --output are both {job.output}; write to another file.")
    compressed(b"", output)  # says now rather than at the first window what is not installed
    return output


@dataclass(frozen=True)
class InputText:
    """A file as it is at the beginning, read once: its lines are counted, and damage is found before hours of work."""

    path: Path
    bytes: int
    lines: int
    sha256: str
    stamp: tuple[int, int]

    @classmethod
    def of(cls, path: Path) -> InputText:
        if path.exists() and not path.is_file():
            raise DataError(
                f"--input {path} is no plain file; leave out --input and --output to translate what comes from a pipe."
            )
        digest, size, lines, last = hashlib.sha256(), 0, 0, b"\n"
        with readable(path):
            stamp = cls._stamp(path)
            with open_binary(path) as handle:
                while block := handle.read(BLOCK):
                    digest.update(block)
                    size, lines, last = size + len(block), lines + block.count(b"\n"), block[-1:]
        return cls(path, size, lines + (last != b"\n"), digest.hexdigest(), stamp)

    @staticmethod
    def _stamp(path: Path) -> tuple[int, int]:
        status = path.stat()
        return status.st_size, status.st_mtime_ns

    def check_unchanged(self) -> None:
        if self._stamp(self.path) != self.stamp:
            raise DataError(
                f"{self.path} was changed while it was being translated; start over with --fresh when it is complete."
            )


@contextmanager
def readable(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; check the path.") from None
    except UNREADABLE as error:
        raise DataError(f"{path} cannot be read ({error}); it may be truncated or damaged.") from None


def describe(translator: Translator, job: FileJob, text: InputText) -> dict[str, Any]:
    """All that the output depends on."""
    if job.pivot is None or job.pivot in (job.source, job.target):
        only = translator.composition(job.source, job.target, source_pack=job.source_pack, target_pack=job.target_pack)
        packs = only.source, only.target
    else:
        first = translator.composition(job.source, job.pivot, source_pack=job.source_pack)
        packs = first.source, translator.composition(job.pivot, job.target, target_pack=job.target_pack).target
    weight = translator.base.model.source_embedding.weight
    return {
        "format": FORMAT,
        "input": {"bytes": text.bytes, "sha256": text.sha256},
        "base": translator.base.fingerprint,
        "source_pack": packs[0] and packs[0].fingerprint,
        "target_pack": packs[1] and packs[1].fingerprint,
        "source": job.source,
        "target": job.target,
        "pivot": job.pivot,
        "beam": job.options.beam,
        "n_best": job.options.n_best,
        "length_penalty": job.options.length_penalty,
        "max_length": job.options.max_length,
        "length_ratio": job.options.length_ratio,
        "batch_tokens": job.options.batch_tokens,
        "chunk": job.window,
        "desegment": job.desegment,
        "device": weight.device.type,
        "dtype": translator.engine.how,
    }


class BadLines:
    """Lines that cannot be translated: an error, unless they are to be skipped; then they are named and counted."""

    def __init__(self, job: FileJob, bar: Progress, count: int) -> None:
        self.skip, self.bar, self.count, self.named = job.skip_bad_lines, bar, count, 0

    def meet(self, error: DataError) -> None:
        if not self.skip:
            raise DataError(
                f"{error} What was done before is kept: the same command with --skip-bad-lines resumes there, and leaves "
                "the translations of such lines empty."
            ) from error
        self.count += 1
        self.named += 1
        if self.named <= NAMED:
            self.bar.message(f"skipped: {error}{' Others are counted only.' if self.named == NAMED else ''}")


class Window(NamedTuple):
    """Lines that are translated together."""

    lines: list[str]
    first: int
    """The number of lines before them."""
    read: int
    """Bytes of the input up to their end."""

    @property
    def end(self) -> int:
        return self.first + len(self.lines)


def read_windows(job: FileJob, position: Position, bad: BadLines) -> Iterator[Window]:
    """The input from there on; few lines are in memory at a time, and of none more than makes sense."""
    with readable(job.input), open_binary(job.input) as handle:
        move_to(handle, position.read, job.input)
        lines, read = raw_lines(handle), position.read
        first = position.lines
        while raw := list(islice(lines, job.window)):
            read += sum(size for _, size in raw)
            yield Window([_decoded(*line, number, job.input, bad) for number, line in enumerate(raw, first + 1)], first, read)
            first += len(raw)


def move_to(handle: BinaryIO, place: int, path: Path) -> None:
    if path.suffix not in (".gz", ".xz", ".zst"):
        handle.seek(place)
        return
    while place and (block := handle.read(min(place, BLOCK))):
        place -= len(block)


def raw_lines(handle: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Lines with their ends, and how many bytes each has; of one that is far too long only the beginning comes."""
    while raw := handle.readline(LONGEST_BYTES):
        size, rest = len(raw), raw
        while not rest.endswith(b"\n") and (rest := handle.readline(LONGEST_BYTES)):
            size += len(rest)
        yield raw, size


def _decoded(raw: bytes, size: int, number: int, path: Path, bad: BadLines) -> str:
    try:
        if size > len(raw):
            raise DataError(f"{path}, line {number}, has {size:,} bytes. Split it into sentences, one a line.")
        return decode_line(raw, number, str(path))
    except DataError as error:
        bad.meet(error)
        return ""


def translate_window(
    translator: Translator, job: FileJob, window: Window, bad: BadLines, hear: Callable[[int], None]
) -> list[list[Translation]]:
    lines = window.lines
    while True:
        requests = [Request(line, job.source, job.target, job.pivot, job.source_pack, job.target_pack) for line in lines]
        try:
            return translator.translate_requests(requests, job.options, hear)
        except LongLine as error:
            bad.meet(error.at(f"{job.input}, line {window.first + error.index + 1},"))
            lines[error.index] = ""


def as_text(found: list[list[Translation]], desegment: bool) -> str:
    """A line each; where several translations were asked for, with tabs between them."""
    from graftmt.prepare.segmentation import desegment as join_words

    texts = [[join_words(one.text) if desegment else one.text for one in translations] for translations in found]
    return "".join("\t".join(line) + "\n" for line in texts)
