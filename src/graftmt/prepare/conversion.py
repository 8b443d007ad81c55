"""From sources to a corpus folder, with what was read counted by split and language. Layer 4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graftmt.errors import DataError
from graftmt.prepare.output_folder import check_replaceable
from graftmt.prepare.source import Line, Source, write_corpus
from graftmt.progress import Progress, SilentProgress

_EVERY = 10_000  # lines between two words about progress


def convert(
    folder: Path,
    splits: Mapping[str, Source],
    *,
    format_name: str,
    inputs: Iterable[Path],
    progress: Progress | None = None,
) -> dict[str, dict[str, Any]]:
    """Writes the corpus; returns, per split, lines, lines left out for having no text at all, and texts per language.

    The same is in the corpus's corpus.json. `inputs` are the files that the sources read: a folder with one of them, or with
    something else than a corpus, is not replaced.
    """
    check_replaceable(folder, inputs)
    report: dict[str, dict[str, Any]] = {
        split: {
            "lines": 0,
            "without_text": 0,
            "texts": dict.fromkeys(source.languages, 0),
            "source": source.name,
        }
        for split, source in splits.items()
    }
    counted = {split: _counted(source, report[split], progress or SilentProgress()) for split, source in splits.items()}
    # The report is filled while the corpus is written, and written after it.
    write_corpus(folder, counted, {"format": format_name, "splits": report})
    return report


def _counted(source: Source, counts: dict[str, Any], progress: Progress) -> Source:
    def read() -> Iterator[Line]:
        partial = [0] * len(source.languages)
        done = full = empty = 0
        for done, line in enumerate(source, 1):
            if done % _EVERY == 0:
                progress.update(done, source.name)
            if "" not in line and not any(map(str.isspace, line)):
                full += 1
                yield line
                continue
            present = [bool(text) and not text.isspace() for text in line]
            if any(present):
                partial = [count + there for count, there in zip(partial, present, strict=True)]
                yield line
            else:
                empty += 1
        progress.update(done, source.name)
        texts = [full + count for count in partial]
        counts.update(lines=done - empty, without_text=empty, texts=dict(zip(source.languages, texts, strict=True)))
        if done > empty and 0 in texts:
            raise DataError(
                f"{source.name}: no line has text in {source.languages[texts.index(0)]!r}; leave it out, or check how the "
                "files call it."
            )

    return Source(source.name, source.languages, read)
