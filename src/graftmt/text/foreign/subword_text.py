"""The text of a foreign model: what all kinds of it share. Each kind is a subclass, in `text/kinds/`. Layer 1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, TypedDict

from graftmt.configuration import from_mapping, to_mapping
from graftmt.documents import LONGEST_MESSAGE, check_fields
from graftmt.errors import ConfigError, DataError
from graftmt.text.foreign.row_table import FILE, RowTable, check_names, read_pieces
from graftmt.text.kinds import text_kind
from graftmt.text.protocol import (
    BEGINNING,
    BOUNDARY,
    BYTES,
    END,
    LAYOUTS,
    PADDING,
    UNKNOWN,
    CodePlacement,
    Layout,
    PieceCounts,
    SharedText,
    Side,
    code_symbol,
    text_fingerprint,
)

_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
_CHUNK = 2_000
"""Lines that are encoded in one call."""


class Options(TypedDict):
    """What base.json says of a foreign text, besides what its kind adds."""

    padding: int
    end: int
    unknown: int | None
    beginning: int | None
    codes: dict[str, int]
    layout: dict[str, Any]
    source_languages: list[str]
    target_languages: list[str]


class ForeignText(ABC):
    """A subword model of another program with the rows it has in a matrix; for a base whose sides share it, its text.

    It pickles as its files and options.
    """

    kind: ClassVar[str]

    def __init__(
        self,
        table: RowTable,
        layout: Layout,
        source_languages: Sequence[str] | None = None,
        target_languages: Sequence[str] | None = None,
    ) -> None:
        """Without other names, its languages are those that have codes."""
        self.table = table
        self.layout = layout
        self.source_languages = tuple(table.codes if source_languages is None else source_languages)
        self.target_languages = tuple(table.codes if target_languages is None else target_languages)
        self.row_of = table.row_of

    # What a kind says

    @abstractmethod
    def encode_rows(self, lines: Sequence[str]) -> list[list[int]]:
        """The rows of each line, none of which has half a character."""

    @abstractmethod
    def join(self, pieces: list[str]) -> str:
        """The text of pieces."""

    @abstractmethod
    def parts_of(self, piece: str) -> list[str]:
        """The pieces that this subword model spells another vocabulary's piece with, which begins a word where ▁ does."""

    @abstractmethod
    def model_files(self) -> dict[str, bytes]:
        """The files of the subword model."""

    def symbol_of(self, piece: str) -> str:
        """A piece in the notation that all kinds share."""
        return piece

    def model_options(self) -> dict[str, Any]:
        """Options that its kind adds."""
        return {}

    # Rows

    def __len__(self) -> int:
        return len(self.table.pieces)

    @property
    def padding_id(self) -> int:
        return self.table.padding

    @property
    def end_id(self) -> int:
        return self.table.end

    @property
    def unknown_id(self) -> int | None:
        return self.table.unknown

    @property
    def beginning_id(self) -> int | None:
        return self.table.beginning

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(self.table.codes)

    def code(self, language: str) -> int:
        return self.table.code(language)

    @cached_property
    def piece_rows(self) -> list[int]:
        return list(self.row_of.values())

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        specials = {PADDING: self.padding_id, END: self.end_id, UNKNOWN: self.unknown_id, BEGINNING: self.beginning_id}
        specials |= {code_symbol(language): row for language, row in self.table.codes.items()}
        symbol_rows = {row: symbol for symbol, row in specials.items() if row is not None}
        taken = set(symbol_rows.values())
        names = []
        for row, piece in enumerate(self.table.pieces):
            symbol = symbol_rows.get(row) or ("" if piece is None else self.symbol_of(piece))
            if row not in symbol_rows and (piece is None or symbol in taken):
                # No text, or text that only looks like a special symbol. A space cannot be part of a piece.
                symbol = f"<row {row}>"
            taken.add(symbol)
            names.append(symbol)
        return tuple(names)

    @cached_property
    def forbidden(self) -> list[int]:
        """All rows that are neither text nor the end."""
        return [row for row, piece in enumerate(self.table.pieces) if piece is None and row != self.end_id]

    # Text ↔ rows

    def encode(self, text: str) -> list[int]:
        return self.encode_many([text])[0]

    def encode_many(self, lines: Sequence[str]) -> list[list[int]]:
        """The rows of each of these lines."""
        blank = [not line or line.isspace() for line in lines]
        try:
            found = self.encode_rows(lines)
        except UnicodeEncodeError:
            found = self.encode_rows([line.translate(_SURROGATES) for line in lines])
        return [[] if empty else rows for empty, rows in zip(blank, found, strict=True)] if any(blank) else found

    def decode(self, ids: Iterable[int]) -> str:
        pieces = self.table.pieces
        found: list[str] = []
        for row in ids:
            if row == self.end_id:
                break
            if 0 <= row < len(pieces) and (piece := pieces[row]) is not None:
                found.append(piece)
        return self.join(found)

    def spell(self, piece: str) -> list[str]:
        if piece in BYTES or piece == BOUNDARY:
            return []
        parts = [part for part in self.parts_of(piece.translate(_SURROGATES)) if part in self.row_of and part != BOUNDARY]
        return [self.symbols[self.row_of[part]] for part in [part for part in parts if part not in BYTES] or parts]

    def count(self, lines: Iterable[str]) -> PieceCounts:
        single = {row for piece, row in self.row_of.items() if piece in BYTES}
        line_count = pieces = unknown = single_bytes = 0
        for chunk in _chunks(lines):
            for rows in self.encode_many(chunk):
                line_count += 1
                pieces += len(rows)
                unknown += 0 if self.unknown_id is None else rows.count(self.unknown_id)
                single_bytes += sum(row in single for row in rows) if single else 0
        return PieceCounts(lines=line_count, pieces=pieces, unknown=unknown, bytes=single_bytes)

    # Of a base, and storage

    def side(self, side: Side) -> ForeignText:
        return self

    def with_codes(self, languages: Sequence[str], placement: CodePlacement) -> SharedText:
        table = self.table.with_codes(languages)
        options = {**self.model_options(), **options_of(table, LAYOUTS[placement], languages, languages)}
        made: SharedText = text_kind(self.kind).read(
            {**self.model_files(), FILE: table.content()}, options, "a text with other codes"
        )
        return made

    def options(self) -> dict[str, Any]:
        return {**self.model_options(), **options_of(self.table, self.layout, self.source_languages, self.target_languages)}

    def files(self) -> dict[str, bytes]:
        return {**self.model_files(), FILE: self.table.content()}

    @cached_property
    def fingerprint(self) -> str:
        return text_fingerprint(self.kind, self.options(), self.files())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ForeignText) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, tuple[str, dict[str, bytes], dict[str, Any]]]:
        return read_again, (self.kind, self.files(), self.options())


def read_again(kind: str, files: Mapping[str, bytes], options: Mapping[str, Any]) -> Any:
    """The text that was pickled."""
    return text_kind(kind).read(files, options, "a text from another process")


def options_of(table: RowTable, layout: Layout, source_languages: Sequence[str], target_languages: Sequence[str]) -> Options:
    """What a text with this table says of itself."""
    return {
        "padding": table.padding,
        "end": table.end,
        "unknown": table.unknown,
        "beginning": table.beginning,
        "codes": dict(table.codes),
        "layout": to_mapping(layout),
        "source_languages": list(source_languages),
        "target_languages": list(target_languages),
    }


def read_table(files: Mapping[str, bytes], options: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The arguments of `ForeignText`, from the files and options of a stored one, which may be anybody's."""
    try:
        check_fields(dict(options), Options, "options")
        specials = {name: options[name] for name in ("padding", "end", "unknown", "beginning")}
        table = RowTable(pieces=read_pieces(files[FILE]), codes=options["codes"], **specials)
        for side in ("source_languages", "target_languages"):
            check_names(options[side])
            if len(set(options[side])) < len(options[side]):
                raise ValueError(f"{side} names one twice")
        layout = from_mapping(Layout, options["layout"], "layout")
    except (ValueError, ConfigError) as error:
        reason = str(error)[:LONGEST_MESSAGE].rstrip(".")
        raise DataError(
            f"{where}: {FILE} or the options of its text are damaged ({reason}); restore them from a copy."
        ) from None
    languages = {name: options[name] for name in ("source_languages", "target_languages")}
    return {"table": table, "layout": layout, **languages}


def _chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(lines)
    while chunk := list(islice(rest, _CHUNK)):
        yield chunk
