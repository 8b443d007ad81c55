"""ParaCrawl and its like: a folder of bilingual files, each becoming a bilingual corpus, ready for alignment. Layer 4.

Known by their names: en-fr.txt.gz (tab-separated, the name's order), en-fr.tmx.gz, and Moses files as OPUS packs them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from graftmt.errors import DataError, LanguageError
from graftmt.prepare.readers.archives import StoredFile
from graftmt.prepare.readers.combination import concatenate
from graftmt.prepare.readers.delimited import read_tables
from graftmt.prepare.readers.language_labels import choose_languages
from graftmt.prepare.readers.moses import language_and_stem, pair_of, read_moses
from graftmt.prepare.readers.tmx import read_tmx
from graftmt.prepare.source import Source

_CODE = r"[a-z]{2,3}(?:_[A-Za-z]{2,4})?"
_PAIR_FILE = re.compile(rf"(?:.*[/._])?({_CODE})-({_CODE})(?:[.-][\w.-]*)?\.(txt|tsv|tmx)")


def is_pair_file(name: str) -> bool:
    found = language_and_stem(name)
    return _PAIR_FILE.fullmatch(name) is not None or (found is not None and pair_of(found[1]) is not None)


def read_paracrawl(
    files: Sequence[StoredFile], languages: Mapping[str, str] | None = None, *, columns: tuple[int, int] = (1, 2)
) -> dict[str, Source]:
    """Pair (`en-fr`) → its text. `columns`: where the two languages' texts are in tab-separated files, from 1.

    With `languages`, the pairs that have both sides among them.
    """
    groups: dict[tuple[str, str], dict[str, list[StoredFile]]] = {}
    for file in files:
        pair, kind = _pair_and_kind(file)
        groups.setdefault(pair, {}).setdefault(kind, []).append(file)
    names = dict.fromkeys(code for pair in groups for code in pair)
    chosen = choose_languages(names, languages, f"{files[0]} and what is with it")
    name_of = {code: name for name, code in chosen.items()}
    pairs = {
        f"{name_of[first]}-{name_of[second]}": _source((first, second), name_of, kinds, columns)
        for (first, second), kinds in sorted(groups.items())
        if first in name_of and second in name_of
    }
    if not pairs:
        listed = ", ".join("-".join(pair) for pair in sorted(groups))
        raise LanguageError(f"no pair there has both its languages among {', '.join(chosen)}; pairs: {listed}.")
    return pairs


def _pair_and_kind(file: StoredFile) -> tuple[tuple[str, str], str]:
    if match := _PAIR_FILE.fullmatch(file.name):
        return (match[1], match[2]), "tmx" if match[3] == "tmx" else "table"
    found = language_and_stem(file.name)
    pair = pair_of(found[1]) if found else None
    if pair is None:
        raise DataError(
            f"{file} does not name a pair of languages; expected en-fr.txt.gz, en-fr.tmx.gz or NAME.en-fr.en and .fr."
        )
    return pair, "moses"


def _source(
    pair: tuple[str, str], name_of: Mapping[str, str], kinds: Mapping[str, list[StoredFile]], columns: tuple[int, int]
) -> Source:
    if len(kinds) > 1:
        listed = ", ".join(str(group[0]) for group in kinds.values())
        raise DataError(f"{'-'.join(pair)} is there more than once, in different formats: {listed}; keep one of them.")
    ((kind, files),) = kinds.items()
    names = {name_of[code]: code for code in pair}
    if kind == "moses":
        return concatenate(list(read_moses(files, names).values()))
    if kind == "tmx":
        return concatenate(list(read_tmx(files, names, fold_regions=True).values()))
    places = {name: str(column) for name, column in zip(names, columns, strict=True)}
    return concatenate(list(read_tables(files, places, header=False).values()))
