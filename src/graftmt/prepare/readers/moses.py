"""Moses-style text: a file per language, line i of each the same segment. Layer 4.

`NAME.en-fr.en` and `NAME.en-fr.fr`, as OPUS packs them, or `corpus.en`, `corpus.fr` and more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from graftmt.errors import DataError
from graftmt.prepare.readers.archives import StoredFile
from graftmt.prepare.readers.combination import SPLITS, by_split, split_of
from graftmt.prepare.readers.language_labels import choose_languages, looks_like_a_language
from graftmt.prepare.readers.lines import read_in_step
from graftmt.prepare.source import Source

_PAIR = re.compile(r"(?:^|[./_-])([A-Za-z]{2,3}(?:_[A-Za-z]{2,4})?)-([A-Za-z]{2,3}(?:_[A-Za-z]{2,4})?)$")


def is_moses_file(name: str) -> bool:
    """Whether its ending, but for .txt, may be a language."""
    return language_and_stem(name) is not None


def language_and_stem(name: str) -> tuple[str, str] | None:
    """("fr", "Books.en-fr") for Books.en-fr.fr; a stem that names a pair has files in these two languages alone."""
    stem, _, language = name.removesuffix(".txt").rpartition(".")
    pair = pair_of(stem)
    if not stem or stem.endswith("/") or not looks_like_a_language(language) or (pair and language not in pair):
        return None
    return language, stem


def pair_of(stem: str) -> tuple[str, str] | None:
    """("en", "fr") for ParaCrawl.en-fr."""
    match = _PAIR.search(stem)
    return (match[1], match[2]) if match else None


def read_moses(files: Sequence[StoredFile], languages: Mapping[str, str] | None = None) -> dict[str, Source]:
    """By split. Files with one name but for the language belong together, as do those labelled LANGUAGE=FILE."""
    groups: dict[tuple[str, str], dict[str, StoredFile]] = {}
    for file, language, stem in _recognised(files):
        group = groups.setdefault((split_of(file), stem), {})
        if language in group:
            raise DataError(
                f"{file} and {group[language]} are both the {language} side of {stem or 'the corpus'}; give one of them."
            )
        group[language] = file
    if not groups:
        raise DataError(
            f"none of {', '.join(map(str, files[:5]))} ends in a language's code, as corpus.en does; write en=FILE fr=FILE."
        )
    return by_split(
        (split, _source(stem, group, languages)) for (split, stem), group in sorted(groups.items()) if _pairs(group, files)
    )


def _recognised(files: Sequence[StoredFile]) -> Iterator[tuple[StoredFile, str, str]]:
    """Each file with its language and what it shares with the other languages' files."""
    for file in files:
        if file.label and file.label.lower() not in SPLITS:
            yield replace(file, label=""), file.label, ""
        elif found := language_and_stem(file.name):
            yield file, *found


def _pairs(group: Mapping[str, StoredFile], files: Sequence[StoredFile]) -> bool:
    """A file without a counterpart (a README.en) is left out where there is more, and an error where it is all there is."""
    if len(group) > 1:
        return True
    if len(files) <= 2:
        raise DataError(
            f"{next(iter(group.values()))} has no counterpart in another language; expected one named alike but for the code."
        )
    return False


def _source(stem: str, group: Mapping[str, StoredFile], languages: Mapping[str, str] | None) -> Source:
    asked = languages
    if languages is not None:  # a group may have some of what is asked for: several pairs in one folder
        present = {code.replace("-", "_").lower() for code in group}
        asked = {name: code for name, code in languages.items() if code.replace("-", "_").lower() in present} or languages
    pair = pair_of(stem)
    found = [code for code in pair if code in group] if pair else sorted(group)
    first = next(iter(group.values()))
    chosen = choose_languages(found, asked, str(first).removesuffix(f".{next(iter(group))}"))
    ordered = [group[code] for code in chosen.values()]
    return Source(str(first), tuple(chosen), lambda: read_in_step(ordered))
