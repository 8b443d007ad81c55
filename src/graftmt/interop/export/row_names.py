"""A name for each row of the matrices of a composition: the tokens of programs that work with strings. Layer 5."""

from __future__ import annotations

from graftmt.packs import Composition
from graftmt.text import Text, code_symbol
from graftmt.text.protocol import SIDES, Side


def row_names(composition: Composition, matrix: Side, rows: int) -> list[str]:
    """Different names for `rows` rows: those of the text's symbols, then of codes that packs put after them."""
    text = text_of(composition, matrix)
    names = list(text.symbols)
    codes = code_rows(composition, matrix)
    taken = set(names)
    for row in range(len(names), rows):
        name = codes.get(row, "")
        if not name or name in taken:
            name = f"<row {row}>"
        names.append(name)
        taken.add(name)
    return names


def code_rows(composition: Composition, matrix: Side) -> dict[int, str]:
    """The rows in a matrix that are codes of packs' languages."""
    found: dict[int, str] = {}
    layout = composition.codec.base.layout
    for side, pack in zip(SIDES, (composition.source, composition.target), strict=True):
        if pack is None or layout.code_matrix(side) != matrix:
            continue
        for language in pack.languages:
            for row in composition.codec.code_rows(language, side, matrix):
                found.setdefault(row, code_symbol(language))
    return found


def text_of(composition: Composition, matrix: Side) -> Text:
    """The text that a matrix has its rows from."""
    return composition.codec.text_of(matrix)
