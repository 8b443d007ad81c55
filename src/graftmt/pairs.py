"""Text that a Python program has in memory, as files that a run can be resumed from. Layer 7.

Files are named by their content and kept with the token cache: the same pairs give the same run.
"""

from __future__ import annotations

import hashlib
import reprlib
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice
from numbers import Number
from pathlib import Path
from typing import Any

from graftmt.errors import DataError, LanguageError, first_few
from graftmt.files import atomic_folder
from graftmt.places import default_cache_folder
from graftmt.prepare.readers.any_format import Wanted
from graftmt.text.aliases import english_in, listed, resolve_language, resolved_names
from graftmt.text.languages import check_language_names, code_of_words

MOST_NAMED = 8
"""Columns in an error."""
SAMPLE = 100
"""Lines of a column that are looked at to tell whether it is text."""
FIELD = "translation"
"""Of Hugging Face's data sets: a column with all languages of a row."""


def stored_pairs(
    pairs: Any, new: Sequence[str], partners: Sequence[str] | None, known: Sequence[str]
) -> tuple[dict[str, Path], tuple[str, ...] | None]:
    """Language → file with its lines, and the partners where they are clear from the columns.

    `known` are the base's languages: without partners, the columns in any of these are taken.
    """
    new = tuple(code_of_words(name) or name for name in new)
    if partners is not None and tuple(partners) == ("all",):
        partners = None
    asked = tuple(resolve_language(name, known, "partner") for name in partners or ())
    check_language_names(new, "the languages to add")
    wanted = Wanted(new=new, partners=asked, known=tuple(name for name in known if name not in new))
    texts = texts_of(pairs, wanted)
    lengths = {name: len(lines) for name, lines in texts.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"the columns have different numbers of lines: {lengths}.")
    if not any(lengths.values()):
        raise DataError(f"pairs is empty; expected lines in {', '.join(new)} and their translations.")
    others = tuple(name for name in texts if name not in new)
    return _stored(texts), asked or (others if len(others) == 1 else None)


def texts_of(pairs: Any, wanted: Wanted) -> dict[str, list[str]]:
    """The text by language, of pairs in any of the shapes that `graftmt.add` takes."""
    if _has_columns(pairs):
        _check_one_split(pairs)
        return _texts_of_columns(pairs, wanted)
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise DataError(f"pairs is {reprlib.repr(pairs)}; expected (new, partner) pairs of lines, or columns by language.")
    rows = list(pairs)
    if rows and isinstance(rows[0], Mapping):
        return _texts_of_rows(rows, wanted)
    if len(wanted.partners) != 1 or len(wanted.new) != 1:
        raise LanguageError('pairs without column names need one new language and one partner, such as partner="en".')
    names = (wanted.new[0], wanted.partners[0])
    columns: tuple[list[Any], list[Any]] = ([], [])
    for number, row in enumerate(rows, 1):
        has_order = isinstance(row, Iterable) and not isinstance(row, str | bytes | Mapping | Set)
        pair = tuple(row) if has_order else ()
        if len(pair) != 2:
            raise DataError(f"pair {number:,} is {reprlib.repr(row)}; expected two texts, ({', '.join(names)}).")
        for column, text in zip(columns, pair, strict=True):
            column.append(text)
    return {name: _lines(column, name) for name, column in zip(names, columns, strict=True)}


# Columns


def _has_columns(pairs: Any) -> bool:
    named = getattr(pairs, "column_names", None) is not None or hasattr(pairs, "columns")
    return isinstance(pairs, Mapping) or (named and hasattr(pairs, "__getitem__"))


def _column_names(pairs: Any) -> list[Any]:
    names = pairs if isinstance(pairs, Mapping) else getattr(pairs, "column_names", None) or pairs.columns
    return list(names)


def _check_one_split(pairs: Any) -> None:
    """A DatasetDict is a mapping of splits, each with columns."""
    if isinstance(pairs, Mapping) and pairs and all(_has_columns(split) for split in pairs.values()):
        names = list(map(str, pairs))
        chosen = "train" if "train" in names else names[0]
        raise DataError(
            f"pairs is a {type(pairs).__name__} with {first_few(names, MOST_NAMED)}; give one split: data[{chosen!r}]."
        )


def _texts_of_columns(pairs: Any, wanted: Wanted) -> dict[str, list[str]]:
    names = _column_names(pairs)
    if FIELD in names and (rows := list(pairs[FIELD])) and isinstance(rows[0], Mapping):
        return _texts_of_rows(rows, wanted)
    codes = _codes_of(names, wanted)
    resolved_names(codes)
    if twice := [name for name in codes if names.count(name) > 1]:
        raise DataError(f"the pairs have {names.count(twice[0])} columns called {twice[0]!r}; keep one of them.")
    if not _are_enough(codes, wanted):
        text = [name for name in names if _looks_like_text(pairs[name])]
        raise LanguageError(_no_columns(pairs, names, text, codes, wanted))
    texts, problem = {}, None
    for name, code in codes.items():
        try:
            texts[code] = _lines(pairs[name], name)
        except DataError as error:
            if code in wanted.new or code in wanted.partners:
                raise
            problem = error  # `id` is Indonesian, and numbers: a column that nobody asked for
    if problem is not None and not wanted.are_all(list(texts)):
        raise problem
    return texts


def _codes_of(names: Sequence[Any], wanted: Wanted) -> dict[str, str]:
    """Column → language, for those that are wanted, in the columns' order."""
    found = wanted.codes_of([name for name in dict.fromkeys(names) if isinstance(name, str)])
    return {name: found[name] for name in names if name in found}


def _are_enough(codes: Mapping[str, str], wanted: Wanted) -> bool:
    """All new languages are there, and a partner."""
    return wanted.are_all(list(codes.values())) and set(wanted.new) <= set(codes.values())


def _no_columns(pairs: Any, names: Sequence[Any], text: Sequence[Any], codes: Mapping[str, str], wanted: Wanted) -> str:
    """Which columns there are, which there should be, and how to rename those of `text`."""
    partner = wanted.partners[0] if wanted.partners else english_in(wanted.known) or next(iter(wanted.known), "en")
    missing = [name for name in wanted.new if name not in codes.values()]
    if not set(codes.values()) - set(wanted.new):
        missing.append(partner)
    free = [name for name in text if name not in codes]
    changes = dict(zip(free, missing, strict=False))
    new = " and ".join(map(repr, wanted.new))
    other = " or ".join(map(repr, wanted.partners)) or f"one of the base's languages ({listed(wanted.known)})"
    there = first_few(list(map(repr, names)), MOST_NAMED)
    said = f"the pairs have the column{'s' * (len(names) > 1)} {there}" if names else "the pairs have no columns"
    advice = "Give each of these languages a column that has its name."
    if len(changes) == len(missing):
        advice = f"Name the columns by their languages, such as {_renaming(pairs, changes)}."
    return f"{said}; expected {new} and {other}. {advice}"


def _renaming(pairs: Any, changes: Mapping[Any, str]) -> str:
    if hasattr(pairs, "rename_columns"):
        return f"pairs.rename_columns({dict(changes)})"
    if hasattr(pairs, "iloc"):  # pandas
        return f"pairs.rename(columns={dict(changes)})"
    return " and ".join(f"{code!r} for {name!r}" for name, code in changes.items())


# Rows


def _texts_of_rows(rows: Sequence[Any], wanted: Wanted) -> dict[str, list[str]]:
    """Of mappings, as iterating over a data set gives them: language → text, or that under `translation`."""
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise DataError(f"row {number:,} of the pairs is {reprlib.repr(row)}; expected a mapping, as those before it are.")
    if isinstance(rows[0].get(FIELD), Mapping):
        return _texts_of_rows([row.get(FIELD) for row in rows], wanted)
    names = list(dict.fromkeys(name for row in rows for name in row))
    codes = _codes_of(names, wanted)
    if not _are_enough(codes, wanted):
        text = [name for name in names if _looks_like_text(row.get(name) for row in rows)]
        raise LanguageError(_no_columns(rows, names, text, codes, wanted))
    for number, row in enumerate(rows, 1):
        if not wanted.are_all([codes[name] for name in row if name in codes]):
            raise DataError(
                f"row {number:,} of the pairs is {reprlib.repr(dict(row))}; expected text under "
                f"{' and '.join(map(repr, codes))}. Where there is no translation, give None."
            )
    return _texts_of_columns({name: [row.get(name) for row in rows] for name in codes}, wanted)


def _lines(values: Iterable[Any], name: str) -> list[str]:
    """One line of text each; None and NaN are missing translations."""
    found = []
    for number, value in enumerate(values, 1):
        text = "" if _is_missing(value) else value
        if not isinstance(text, str):
            raise DataError(
                f"line {number:,} in {name} is {reprlib.repr(value)} ({type(value).__name__}); expected a str. If the column "
                f"{name!r} is no text, leave it out, or name the other language (partner=)."
            )
        found.append(" ".join(text.replace("\0", " ").split()))
    return found


def _looks_like_text(values: Iterable[Any]) -> bool:
    """Going by the first of them."""
    return isinstance(next((value for value in islice(values, SAMPLE) if not _is_missing(value)), None), str)


def _is_missing(value: Any) -> bool:
    """pandas has NaN, which is not itself, and two values of its own for what is missing."""
    of_pandas = type(value).__name__ in ("NAType", "NaTType")
    return value is None or of_pandas or (isinstance(value, Number) and value != value)


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
