"""Several sources as one, and files by the split that their names tell. Layer 4."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from graftmt.prepare.readers.archives import StoredFile
from graftmt.prepare.source import Line, Source

SPLITS = {
    "train": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
    "devtest": "test",
}
"""What others call the splits → what we call them."""
_SPLIT_FIRST = re.compile(rf"({'|'.join(sorted(SPLITS, key=len, reverse=True))})(?![a-z])", re.IGNORECASE)


def split_of(file: StoredFile) -> str:
    """Its label, or what its name or folder begins with (train-00000-of-00002.parquet, dev/eng.txt), or train."""
    if file.label:
        return SPLITS.get(file.label.lower(), file.label)
    for part in reversed(file.name.split("/")):
        if match := _SPLIT_FIRST.match(part):
            return SPLITS[match[1].lower()]
    return "train"


def concatenate(sources: Sequence[Source]) -> Source:
    """One after the other; a language that one of them lacks is empty there."""
    if len(sources) == 1:
        return sources[0]
    languages = tuple(dict.fromkeys(language for source in sources for language in source.languages))

    def read() -> Iterator[Line]:
        for source in sources:
            if source.languages == languages:
                yield from source
                continue
            places = [source.languages.index(language) if language in source.languages else None for language in languages]
            for line in source:
                yield tuple("" if place is None else line[place] for place in places)

    more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
    return Source(f"{sources[0].name}{more}", languages, read)


def by_split(sources: Iterable[tuple[str, Source]]) -> dict[str, Source]:
    """One source a split: train, valid, test, then others."""
    groups: dict[str, list[Source]] = {"train": [], "valid": [], "test": []}
    for split, source in sources:
        groups.setdefault(split, []).append(source)
    return {split: concatenate(group) for split, group in groups.items() if group}
