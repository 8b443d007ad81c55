"""The United Nations Parallel Corpus v1.0: UNv1.0.ar-en.ar and .en, in folders or in tar.gz archives in parts. Layer 4."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from graftmt.errors import DataError
from graftmt.prepare.readers.archives import StoredFile
from graftmt.prepare.readers.combination import by_split
from graftmt.prepare.readers.language_labels import choose_languages
from graftmt.prepare.readers.lines import read_in_step
from graftmt.prepare.source import Source

_FILE = re.compile(r"(?:.*/)?(?:UNv1\.0|UNPC)\.(6way|devset|testset|[a-z]{2}-[a-z]{2})\.([a-z]{2})")
_SPLITS = {"devset": "valid", "testset": "test"}


def is_unpc_file(name: str) -> bool:
    match = _FILE.fullmatch(name)
    return match is not None and (len(match[1]) != 5 or match[2] in match[1].split("-"))


def read_unpc(files: Sequence[StoredFile], languages: Mapping[str, str] | None = None) -> dict[str, Source]:
    """train: each pair there, one after the other, and the fully aligned 6way text; valid and test: devset and testset.

    With `languages`, the pairs that have both sides among them.
    """
    groups: dict[str, dict[str, StoredFile]] = {}
    for file in files:
        match = _FILE.fullmatch(file.name)
        if match is None:
            raise DataError(f"{file} is no file of UNPC; expected names such as UNv1.0.ar-en.ar and UNv1.0.devset.en.")
        group = groups.setdefault(match[1], {})
        if match[2] in group:
            raise DataError(f"{file} and {group[match[2]]} are both the {match[2]} side of {match[1]}; give one of them.")
        group[match[2]] = file
    # The dev and test sets are in all six languages: those of the training text are meant, unless others are asked for.
    sides = {name: name.split("-") if "-" in name else sorted(group) for name, group in groups.items()}
    training = {code for name, codes in sides.items() if name not in _SPLITS for code in codes}
    meant = training if training and languages is None else {code for codes in sides.values() for code in codes}
    asked = choose_languages(sorted(meant), languages, f"{files[0]} and what is with it")
    sources = []
    for name in sorted(groups):
        chosen = {language: code for language, code in asked.items() if code in sides[name]}
        if len(chosen) > 1:
            sources.append((_SPLITS.get(name, "train"), _source(name, groups[name], chosen)))
    if not sources:
        raise DataError(
            f"no pair of UNPC there has both its languages among {', '.join(asked)}; there: {', '.join(sorted(groups))}."
        )
    return by_split(sources)


def _source(name: str, group: Mapping[str, StoredFile], chosen: Mapping[str, str]) -> Source:
    first = next(iter(group.values()))
    for code in chosen.values():
        if code not in group:
            raise DataError(f"{first} is there without its {code} side, UNv1.0.{name}.{code}; download it too.")
    ordered = [group[code] for code in chosen.values()]
    return Source(str(first), tuple(chosen), lambda: read_in_step(ordered))
