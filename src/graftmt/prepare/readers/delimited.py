"""Tables: a column per language, in tab-separated files (quotation marks are text) or CSV (they are quotes). Layer 4."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence

from graftmt.data.corpus import LONGEST_LINE
from graftmt.errors import ConfigError, DataError, nearest
from graftmt.prepare.readers.archives import StoredFile
from graftmt.prepare.readers.combination import by_split, split_of
from graftmt.prepare.readers.language_labels import choose_languages
from graftmt.prepare.readers.lines import LONGEST_RECORD, read_records, too_long
from graftmt.prepare.source import Line, Source


def is_table(name: str) -> bool:
    return name.lower().endswith((".tsv", ".csv", ".tab"))


def read_tables(
    files: Sequence[StoredFile],
    columns: Mapping[str, str] | None = None,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
) -> dict[str, Source]:
    """By split. `columns`: language → the column's number, from 1, or its name in the header; without, the header's names.

    A first line is a header where columns go by name, unless `header` says so or not. Lines without anything are skipped; one
    with more cells than the header has is an error, whichever columns are taken.
    """
    if delimiter is not None and len(delimiter) != 1:
        raise ConfigError(f"the delimiter is {delimiter!r}; expected one character, such as ';' or a tab.")
    by_number = columns is not None and all(column.isascii() and column.isdigit() for column in columns.values())
    if by_number and columns is not None and "0" in {column.lstrip("0") or "0" for column in columns.values()}:
        raise ConfigError("columns are counted from 1; there is no column 0.")
    has_header = not by_number if header is None else header
    if not has_header and not by_number:
        raise ConfigError("without a header columns go by number; write --columns en=1,fr=2.")
    return by_split((split_of(file), _source(file, columns, delimiter, has_header, by_number)) for file in files)


def first_row(file: StoredFile, delimiter: str | None = None) -> list[str]:
    """The cells of the first line."""
    row = next((row for _, row in _rows(file, delimiter)), None)
    if row is None:
        raise DataError(f"{file} is empty; a column for each language was expected.")
    return row


def _source(
    file: StoredFile, columns: Mapping[str, str] | None, delimiter: str | None, has_header: bool, by_number: bool
) -> Source:
    names = next((row for _, row in _rows(file, delimiter)), None) if has_header and not by_number else []
    if names is None:
        raise DataError(f"{file} is empty; its first line should name the columns.")
    if by_number and columns is not None:
        places = {language: int(column[:9]) - 1 for language, column in columns.items()}
    else:
        places = _places([name.strip() for name in names], columns, file, delimiter)
    most = max(places.values())

    def read() -> Iterator[Line]:
        where, width = str(file), None
        for count, (number, row) in enumerate(_rows(file, delimiter)):
            if count == 0 and has_header:
                width = len(row)
                continue
            if width is not None and len(row) > width:
                quoting = "quote cells that hold the delimiter, " if _is_csv(file) else ""
                raise DataError(
                    f"{where}, line {number}: {len(row)} columns where the header has {width}; {quoting}take out what is too "
                    "much or drop the row, or check the delimiter (--delimiter)."
                )
            if len(row) <= most:
                missing = next(language for language, place in places.items() if place >= len(row))
                raise DataError(
                    f"{where}, line {number}: {len(row)} columns, but {missing} is column {places[missing] + 1}; complete the "
                    "row or drop it, or check the delimiter (--delimiter) and the columns (--columns)."
                )
            texts = tuple(row[place] for place in places.values())
            if max(map(len, texts)) > LONGEST_LINE:
                raise too_long(where, f"line {number}", max(map(len, texts)))
            yield texts

    return Source(str(file), tuple(places), read)


def _places(names: list[str], columns: Mapping[str, str] | None, file: StoredFile, delimiter: str | None) -> dict[str, int]:
    """Language → index, by the header."""
    hint = _delimiter_hint(names, delimiter or _usual_delimiter(file))
    if columns is None:
        advice = "say where each language is with --columns, as in en=source,fr=target or en=1,fr=2"
        chosen = choose_languages(names, None, f"the header of {file}", hint or advice)
        return {language: names.index(name) for language, name in chosen.items()}
    places = {}
    for language, column in columns.items():
        if column in names:
            places[language] = names.index(column)
        elif column.isascii() and column.isdigit() and 0 < int(column[:9]) <= len(names):
            places[language] = int(column) - 1
        else:
            listed = ", ".join(names[:40]) + (f"; {hint}" if hint else "")
            raise DataError(f"{file} has no column {column!r}{nearest(column, names) or ';'} its header has: {listed}.")
    return places


def _is_csv(file: StoredFile) -> bool:
    return file.name.lower().endswith(".csv")


def _usual_delimiter(file: StoredFile) -> str:
    return "," if _is_csv(file) else "\t"


def _delimiter_hint(names: list[str], delimiter: str) -> str:
    """What to do about a header that is one cell with another delimiter in it; nothing for any other."""
    other = next((one for one in "\t;,|" if one != delimiter and one in names[0]), None) if len(names) == 1 else None
    if other is None:
        return ""
    shown, option = ("a tab", "tab") if other == "\t" else (repr(other), repr(other))
    return f"the header is one cell: if {shown} separates the columns, write --delimiter {option}"


def _rows(file: StoredFile, delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    """Cells, with the number of the row's first line."""
    if not _is_csv(file):
        for number, line in read_records(file):
            if line:
                yield number, line.split(delimiter or _usual_delimiter(file))
        return
    taken = first = last = 0

    def feed() -> Iterator[str]:
        nonlocal taken, first, last
        for number, line in read_records(file):
            first, last = first or number, number
            taken += len(line)
            if taken > LONGEST_RECORD:
                raise too_long(str(file), f"line {first}", taken)
            yield line + "\n"

    try:
        for row in csv.reader(feed(), delimiter=delimiter or _usual_delimiter(file), strict=True):
            if row:
                yield first, row
            taken = first = 0
    except csv.Error as error:
        raise DataError(
            f"{file}, line {first or last}: not valid CSV ({error}); quote cells that hold quotation marks, doubling these, or "
            "give the file the ending .tsv if its quotation marks are text."
        ) from None
