"""What each row of a foreign model's matrix stands for: a piece of text, a special symbol, a code, or nothing. Layer 1.

Rows keep the numbers that the model's own tokenizer gives them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from graftmt.documents import parse_json
from graftmt.errors import LanguageError, nearest
from graftmt.text.languages import check_language_names

FILE = "rows.json"
MOST_ROWS = 2**24
"""Sixty times the rows of the largest models."""


@dataclass(frozen=True, kw_only=True)
class RowTable:
    """The rows of one matrix. What contradicts itself is a ValueError."""

    pieces: tuple[str | None, ...]
    """For each row the piece as its subword model writes it, or None where the row is no text."""
    padding: int
    end: int
    unknown: int | None = None
    beginning: int | None = None
    codes: Mapping[str, int] = field(default_factory=dict)
    """The row of each language's code."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.pieces) <= MOST_ROWS:
            raise ValueError(f"{len(self.pieces):,} rows; expected 1 to {MOST_ROWS:,}")
        check_names(self.codes)
        specials = [row for row in (self.padding, self.end, self.unknown, self.beginning) if row is not None]
        named = [*specials, *self.codes.values()]
        for row in named:
            if type(row) is not int or not 0 <= row < len(self.pieces):
                raise ValueError(f"a special symbol or code in row {row!r:.40}; there are {len(self.pieces):,} rows")
            if self.pieces[row] is not None:
                raise ValueError(f"row {row} is a special symbol or a code, and the piece {self.pieces[row]!r:.60} too")
        if len(set(named)) < len(named):
            raise ValueError("a row that is two special symbols or codes at once")
        text = [piece for piece in self.pieces if piece is not None]
        if len(set(text)) < len(text):
            raise ValueError(f"{len(text) - len(set(text)):,} pieces that have two rows")

    @property
    def row_of(self) -> dict[str, int]:
        """The rows of the pieces."""
        return {piece: row for row, piece in enumerate(self.pieces) if piece is not None}

    def code(self, language: str) -> int:
        row = self.codes.get(language)
        if row is None:
            known = ", ".join(sorted(self.codes)) or "none"
            raise LanguageError(f"language {language!r} has no code here; known: {known}{nearest(language, self.codes)}")
        return row

    def content(self) -> bytes:
        """rows.json: the pieces alone; the rest is options."""
        return (json.dumps(self.pieces, ensure_ascii=False, indent=0) + "\n").encode()

    def with_codes(self, languages: Sequence[str]) -> RowTable:
        """The same pieces and special symbols with codes for these languages alone; rows without a meaning are left out."""
        specials = {"padding": self.padding, "end": self.end, "unknown": self.unknown, "beginning": self.beginning}
        kept = {row for row in specials.values() if row is not None}
        rows = [row for row, piece in enumerate(self.pieces) if piece is not None or row in kept]
        place = {old: new for new, old in enumerate(rows)}
        moved = {name: None if row is None else place[row] for name, row in specials.items()}
        codes = {language: len(rows) + number for number, language in enumerate(languages)}
        pieces = (*(self.pieces[row] for row in rows), *(None for _ in languages))
        return RowTable(pieces=pieces, codes=codes, **moved)  # type: ignore[arg-type]


def check_names(languages: Iterable[str]) -> None:
    """A ValueError for a language that cannot have this name."""
    try:
        check_language_names(languages, "codes")
    except LanguageError as error:
        raise ValueError(str(error).rstrip(".")) from None


def read_pieces(content: bytes) -> tuple[str | None, ...]:
    """The list in a rows.json that anyone may have made; what is wrong with it is a ValueError."""
    found = parse_json(content)
    if not isinstance(found, list) or not all(piece is None or (isinstance(piece, str) and piece) for piece in found):
        raise ValueError("expected a list with a piece of text or null for each row")
    return tuple(found)


def table_of(
    names: Sequence[str | None],
    rows: int,
    *,
    specials: Mapping[str, str],
    codes: Mapping[str, int],
    texts: Iterable[str],
    unused: Iterable[int] = (),
) -> RowTable:
    """The table of a tokenizer's ids: `names` are its tokens by id, `rows` the rows of the matrix.

    `specials` names the tokens that are padding, end, unknown and beginning; `texts` are the tokens that a text can have. All
    others, and rows beyond the last token, are no text.
    """
    if len(names) > rows:
        raise ValueError(f"the tokenizer has {len(names):,} tokens and the matrix {rows:,} rows")
    row_of = {name: row for row, name in enumerate(names) if name is not None}
    found = {symbol: row_of.get(name) for symbol, name in specials.items()}
    for symbol in ("padding", "end"):
        if found.get(symbol) is None:
            raise ValueError(f"no token {specials[symbol]!r} for the {symbol}")
    taken = {row for row in found.values() if row is not None} | set(codes.values()) | set(unused)
    texts = set(texts)
    pieces = [name if name in texts and row not in taken else None for row, name in enumerate(names)]
    pieces += [None] * (rows - len(names))
    return RowTable(pieces=tuple(pieces), codes=dict(codes), **found)  # type: ignore[arg-type]
