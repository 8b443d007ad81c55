"""Tables: a column per language, in tab-separated files (quotation marks are text) or CSV (they are quotes). Layer 4."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence

from graftmt.data.line_files import LONGEST_LINE
from graftmt.errors import ConfigError, DataError, nearest
from graftmt.prepare.readers.archives import StoredFile
from graftmt.prepare.readers.combination import by_split, split_of
from graftmt.prepare.readers.language_labels import choose_languages
from graftmt.prepare.readers.lines import LONGEST_RECORD, read_records, too_long
from graftmt.prepare.source import Line, Source
from graftmt.progress import say
from graftmt.text.aliases import same_language


def is_table(name: str) -> bool:
    return name.lower().endswith((".tsv", ".csv", ".tab"))


def read_tables(
    files: Sequence[StoredFile],
    columns: Mapping[str, str] | None = None,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    skip_bad_rows: bool = False,
) -> dict[str, Source]:
    """By split. `columns`: language → the column's number, from 1, or its name in the header; without, the header's names.

    A first line is a header where columns go by name, or where it names the languages of columns that go by number; `header`
    overrules both. Lines without anything are skipped. One with fewer cells than are needed, or more than the header
    has, is an error, whichever columns are taken; or is left out and counted, with `skip_bad_rows`.
    """
    if delimiter is not None and len(delimiter) != 1:
        raise ConfigError(f"the delimiter is {delimiter!r}; expected one character, such as ';' or a tab.")
    by_number = columns is not None and all(column.isascii() and column.isdigit() for column in columns.values())
    if by_number and columns is not None and "0" in {column.lstrip("0") or "0" for column in columns.values()}:
        raise ConfigError("columns are counted from 1; there is no column 0.")
    has_header = not by_number if header is None else header
    if not has_header and not by_number:
        raise ConfigError("without a header columns go by number; write --columns en=1,fr=2.")
    found = []
    for file in files:
        named = by_number and header is None and columns is not None and _names_languages(file, columns, delimiter)
        if named:
            say(f"note: the first line of {file} names the columns, so it is no text (--no-header takes it as text).")
        source = _source(file, columns, delimiter, has_header or named, by_number, skip_bad_rows)
        found.append((split_of(file), source))
    return by_split(found)


def _names_languages(file: StoredFile, columns: Mapping[str, str], delimiter: str | None) -> bool:
    """Whether the first line has each language's code or name in its column."""
    row = next((row for _, row in _rows(file, delimiter)), [])
    places = {language: int(column[:9]) - 1 for language, column in columns.items()}
    if max(places.values()) >= len(row):
        return False
    return all(same_language(row[place].strip(), language) for language, place in places.items())


def first_row(file: StoredFile, delimiter: str | None = None) -> list[str]:
    """The cells of the first line."""
    row = next((row for _, row in _rows(file, delimiter)), None)
    if row is None:
        raise DataError(f"{file} is empty; a column for each language was expected.")
    return row


def _source(
    file: StoredFile,
    columns: Mapping[str, str] | None,
    delimiter: str | None,
    has_header: bool,
    by_number: bool,
    skip_bad_rows: bool,
) -> Source:
    names = next((row for _, row in _rows(file, delimiter)), None) if has_header and not by_number else []
    if names is None:
        raise DataError(f"{file} is empty; its first line should name the columns.")
    if by_number and columns is not None:
        places = {language: int(column[:9]) - 1 for language, column in columns.items()}
    else:
        places = _places([name.strip() for name in names], columns, file, delimiter)
    most, told = max(places.values()), False

    def read() -> Iterator[Line]:
        nonlocal told
        where, width = str(file), 0
        rows = _rows(file, delimiter)
        bad: list[int] = []
        for count, (number, row) in enumerate(rows):
            if count == 0 and has_header:
                width = len(row)
                continue
            if not most < len(row) <= (width or len(row)):
                if not skip_bad_rows:
                    others = [other for other, row in rows if not most < len(row) <= (width or len(row))]
                    raise DataError(_bad_row(file, number, row, places, width, others))
                bad.append(number)
                continue
            texts = tuple(row[place] for place in places.values())
            if max(map(len, texts)) > LONGEST_LINE:
                raise too_long(where, f"line {number}", max(map(len, texts)))
            yield texts
        if bad and not told:
            told = True
            say(f"warning: {where}: {_rows_in_words(len(bad))} without the right number of columns left out: {_some(bad)}.")

    return Source(str(file), tuple(places), read)


def _bad_row(
    file: StoredFile, number: int, row: Sequence[str], places: Mapping[str, int], width: int, others: Sequence[int]
) -> str:
    """What is wrong with a row, in how many others too, and the ways out."""
    cells = "1 column" if len(row) == 1 else f"{len(row)} columns"
    if width and len(row) > width:
        problem = f"{cells} where the header has {width}"
        quoting = "quote cells that hold the delimiter, " if _is_csv(file) else ""
    else:
        missing = next(language for language, place in places.items() if place >= len(row))
        problem, quoting = f"{cells}, but {missing} is column {places[missing] + 1}", ""
    more = f" So it is in {_rows_in_words(len(others))} more: {_some(others)}." if others else ""
    return (
        f"{file}, line {number}: {problem}.{more} Check --delimiter, {quoting}mend the rows, or leave them out: graftmt "
        "prepare tsv … --skip-bad-rows"
    )


def _rows_in_words(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _some(numbers: Sequence[int]) -> str:
    """line 4; lines 4, 7, 9, …"""
    listed = ", ".join(f"{number:,}" for number in numbers[:5])
    return f"line{'s' * (len(numbers) > 1)} {listed}{', …' * (len(numbers) > 5)}"


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
