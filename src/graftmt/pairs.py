"""Text that a Python program has in memory, as files that a run can be resumed from. Layer 7.

Files are named by their content and kept with the token cache: the same pairs give the same run.
"""

from __future__ import annotations

import hashlib
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graftmt.errors import DataError, LanguageError
from graftmt.files import atomic_folder
from graftmt.known_files import default_cache_folder
from graftmt.text.languages import check_language_names


def stored_pairs(pairs: Any, new: Sequence[str], partner: str | None) -> tuple[dict[str, Path], str | None]:
    """Language → file with its lines, and the partner where it is clear from the columns."""
    columns = columns_of(pairs, new, partner)
    check_language_names(columns, "the columns of the pairs")
    missing = [name for name in new if name not in columns]
    if missing or len(columns) < 2:
        raise LanguageError(f"the pairs have columns {', '.join(columns) or 'none'}; expected {', '.join(new)} and a partner.")
    lengths = {name: len(lines) for name, lines in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"the columns have different numbers of lines: {lengths}.")
    if partner is None:
        others = [name for name in columns if name not in new]
        partner = others[0] if len(others) == 1 else None
    return _stored(columns), partner


def columns_of(pairs: Any, new: Sequence[str], partner: str | None) -> dict[str, list[str]]:
    """The text by language, of pairs in any of the shapes that `graftmt.add` takes."""
    if _has_columns(pairs):
        names = [name for name in _column_names(pairs) if isinstance(name, str)]
        if names == ["translation"]:  # as Hugging Face's data sets for translation have it
            return columns_of(_by_language(list(pairs["translation"])), new, partner)
        wanted = [name for name in names if partner is None or name in (*new, *partner.split(","))]
        return {name: _lines(pairs[name], name) for name in wanted}
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise DataError(f"pairs is {reprlib.repr(pairs)}; expected (new, partner) pairs of lines, or columns by language.")
    if partner is None or len(new) != 1:
        raise LanguageError('pairs without column names need one new language and partner=, such as partner="en".')
    rows = [tuple(row) if not isinstance(row, str) and isinstance(row, Iterable) else (row,) for row in pairs]
    for number, row in enumerate(rows, 1):
        if len(row) != 2:
            raise DataError(f"pair {number:,} is {reprlib.repr(row)}; expected two texts, ({new[0]}, {partner}).")
    return {new[0]: _lines([a for a, _ in rows], new[0]), partner: _lines([b for _, b in rows], partner)}


def _has_columns(pairs: Any) -> bool:
    return isinstance(pairs, Mapping) or hasattr(pairs, "column_names") or hasattr(pairs, "columns")


def _column_names(pairs: Any) -> list[Any]:
    names = pairs if isinstance(pairs, Mapping) else getattr(pairs, "column_names", None) or pairs.columns
    return list(names)


def _by_language(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in rows] for name in names}


def _lines(values: Iterable[Any], name: str) -> list[str]:
    """One line of text each; None and NaN are missing translations."""
    found = []
    for number, value in enumerate(values, 1):
        text = "" if value is None or value != value else value  # NaN, which pandas has for what is missing, is not itself
        if not isinstance(text, str):
            raise DataError(
                f"line {number:,} in {name} is {reprlib.repr(value)} ({type(value).__name__}); expected a str. If the column "
                f"{name!r} is no text, leave it out, or name the other language (partner=)."
            )
        found.append(" ".join(text.replace("\0", " ").split()))
    return found


def _stored(columns: Mapping[str, Sequence[str]]) -> dict[str, Path]:
    digest = hashlib.sha256()
    texts = {name: "".join(f"{line}\n" for line in lines).encode() for name, lines in sorted(columns.items())}
    for name, text in texts.items():
        digest.update(f"{name} {len(text)} ".encode() + text)
    folder = default_cache_folder() / f"pairs-{digest.hexdigest()[:32]}"
    files = {name: folder / f"train.{name}.txt" for name in columns}
    if not all(path.is_file() for path in files.values()):
        with atomic_folder(folder) as temporary:
            for name, text in texts.items():
                (temporary / f"train.{name}.txt").write_bytes(text)
    return files
