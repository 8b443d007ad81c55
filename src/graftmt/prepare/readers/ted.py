"""TED talks as neulab released them: all_talks_train.tsv, _dev and _test, a column per language. Layer 4.

As in the paper (Section 4.1): HTML and Moses escapes are undone, a cell that contains NULL is missing, text stays tokenised.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence

from graftmt.data.line_files import LONGEST_LINE
from graftmt.errors import DataError
from graftmt.prepare.readers.archives import StoredFile
from graftmt.prepare.readers.combination import SPLITS
from graftmt.prepare.readers.language_labels import choose_languages
from graftmt.prepare.readers.lines import read_records, too_long
from graftmt.prepare.source import Line, Source

_FILE = re.compile(r"(?:.*/)?all_talks_(train|dev|test)\.tsv")
_TALK = "talk_name"
# With its semicolon alone: text such as "&not" in "R&nothing" is none. Bounded, as a number of any length would be costly.
_ESCAPE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def is_ted_file(name: str) -> bool:
    return _FILE.fullmatch(name) is not None


def read_ted(files: Sequence[StoredFile], languages: Mapping[str, str] | None = None) -> dict[str, Source]:
    """train, valid (their dev) and test, those of them that are there."""
    splits: dict[str, Source] = {}
    for file in files:
        match = _FILE.fullmatch(file.name)
        if match is None:
            raise DataError(
                f"{file} is no file of the TED release; expected all_talks_train.tsv, all_talks_dev.tsv, all_talks_test.tsv."
            )
        split = SPLITS[match[1]]
        if split in splits:
            raise DataError(f"{file} and {splits[split].name} are both the {match[1]} file of the release; give one of them.")
        splits[split] = _source(file, languages)
    return {split: splits[split] for split in ("train", "valid", "test") if split in splits}


def unescape(text: str) -> str:
    """&quot;, &#91;, &apos; and the like as the characters they stand for."""
    return _ESCAPE.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text


def _source(file: StoredFile, languages: Mapping[str, str] | None) -> Source:
    header = _header(file)
    chosen = choose_languages([code for code in header if code != _TALK], languages, f"the header of {file}")
    places = [header.index(code) for code in chosen.values()]

    def read() -> Iterator[Line]:
        where = str(file)
        for number, row in read_records(file):
            if number == 1:
                continue
            cells = row.split("\t")  # no quoting: the release has stray quotation marks
            if len(cells) != len(header):
                raise DataError(
                    f"{where}, line {number}: {len(cells)} columns where the header has {len(header)}; the file may be cut or "
                    "its tabs changed by an editor. Download it again."
                )
            yield tuple(_text(cells[place], where, number) for place in places)

    return Source(str(file), tuple(chosen), read)


def _header(file: StoredFile) -> list[str]:
    for _, row in read_records(file):
        return [cell.strip() for cell in row.split("\t")]
    raise DataError(f"{file} is empty; its first line should name the languages.")


def _text(cell: str, where: str, number: int) -> str:
    if "NULL" in cell:  # __NULL__, _ _ NULL _ _
        return ""
    if len(cell) > LONGEST_LINE:
        raise too_long(where, f"line {number}", len(cell))
    return " ".join(unescape(cell).split())
