"""What every reader gives and every later step takes: lines in several languages, streamed, and their folder. Layer 4.

A `Source` can be read more than once. A line is a tuple with one text a language, "" where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from graftmt.documents import write_json
from graftmt.errors import ConfigError, DataError
from graftmt.files import atomic_folder
from graftmt.prepare.repairs import one_line
from graftmt.progress import progress
from graftmt.text.languages import check_language_names

Line: TypeAlias = tuple[str, ...]
ORIGIN = "source"
"""SPLIT.source.txt says where each line came from, and is no language; corpus folders have it where a source gives it."""
_SPLIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


@dataclass(frozen=True)
class Source:
    """Line-aligned text in these languages; `read` starts from the beginning each time."""

    name: str
    """How errors and reports call it: usually a path."""
    languages: tuple[str, ...]
    read: Callable[[], Iterator[Line]]

    def __iter__(self) -> Iterator[Line]:
        return self.read()


def spread_lines(source: Source, most: int) -> list[Line]:
    """At most `most` lines, evenly spread over the whole source, which is read once; all where it has no more."""
    kept: list[Line] = []
    step = 1
    for number, line in enumerate(source):
        if number % step == 0:
            kept.append(line)
            if len(kept) > most:
                kept, step = kept[::2], 2 * step
    return kept


def counted(source: Source, name: str) -> Source:
    """The same lines, with their number on standard error while they are written."""

    def read() -> Iterator[Line]:
        with progress(f"{name}: lines written", 0) as bar:
            for number, line in enumerate(source, 1):
                yield line
                if number % 1000 == 0:
                    bar.update(number)

    return Source(source.name, source.languages, read)


def write_corpus(
    folder: Path,
    splits: Mapping[str, Source],
    facts: Mapping[str, Any] | None = None,
    *,
    report: Callable[[], Mapping[str, Any]] | None = None,
) -> dict[str, int]:
    """Writes SPLIT.LANG.txt for each split and language, and corpus.json, as one atomic folder; returns lines per split.

    `report`, asked when all lines are written, is for a report.json. Whatever fails on the way, an error of a reader or a full
    disk, leaves what was at `folder` before.
    """
    for split, source in splits.items():
        check_language_names(source.languages, source.name)
        if not _SPLIT.fullmatch(split):
            raise ConfigError(f"{split!r} cannot name a split; expected letters, digits, '_' and '-', such as train or valid.")
    counts: dict[str, int] = {}
    with atomic_folder(folder) as temporary:
        for split, source in splits.items():
            counts[split] = 0
            with ExitStack() as stack:
                files = [
                    stack.enter_context((temporary / f"{split}.{language}.txt").open("w", encoding="utf-8", newline="\n"))
                    for language in source.languages
                ]
                for line in source:
                    counts[split] += 1
                    for file, text in zip(files, line, strict=True):
                        file.write(one_line(text) + "\n")
            if not counts[split]:
                raise DataError(f"{source.name} has no lines for the split {split!r}; nothing was written.")
        languages = {split: [name for name in source.languages if name != ORIGIN] for split, source in splits.items()}
        write_json(temporary / "corpus.json", {"lines": counts, "languages": languages, **(facts or {})})
        if report is not None:
            write_json(temporary / "report.json", report())
    return counts
