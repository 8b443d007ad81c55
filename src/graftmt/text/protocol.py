"""What a model needs of text: the protocol that every kind of text follows, and the notation that all kinds share. Layer 1.

A *text* is a subword model with the rows it has in one matrix. The other folders use texts through these protocols alone;
`kinds` has the implementations. docs/overview.md says how to add one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from graftmt.errors import DataError
from graftmt.text.layout import CodePlacement, Layout, Side

BEGINNING, PADDING, END, UNKNOWN = "<s>", "<pad>", "</s>", "<unk>"
BOUNDARY = "▁"  # U+2581, SentencePiece's word boundary
BYTES = {f"<0x{value:02X}>": value for value in range(256)}


def code_symbol(language: str) -> str:
    return f"<lang:{language}>"


@dataclass(frozen=True, kw_only=True)
class PieceCounts:
    """How a text fares under a vocabulary."""

    lines: int
    pieces: int
    unknown: int
    bytes: int

    @property
    def unknown_rate(self) -> float:
        return self.unknown / self.pieces if self.pieces else 0.0

    @property
    def byte_rate(self) -> float:
        return self.bytes / self.pieces if self.pieces else 0.0


class Symbols(Protocol):
    """The rows of one matrix and what they stand for."""

    def __len__(self) -> int:
        """All rows of the matrix, those that no text uses included."""

    @property
    def symbols(self) -> Sequence[str]:
        """A name for each row, no two the same.

        Kinds share one notation, so that rows of two vocabularies can be compared by name: `<s>`, `<pad>`, `</s>` and `<unk>`,
        `code_symbol(language)` for codes, pieces as SentencePiece writes them (▁ begins a word, `<0xE2>` is a byte).
        """

    @property
    def piece_rows(self) -> Sequence[int]:
        """The rows that are pieces of text, in their order; the others are symbols."""

    @property
    def padding_id(self) -> int: ...

    @property
    def languages(self) -> tuple[str, ...]:
        """Those whose codes have a row here."""

    def code(self, language: str) -> int:
        """The row of a language's code; a language without one is a `LanguageError` that names the known."""


class Pieces(Protocol):
    """What a pack's text is made from: a text of any kind, or subwords that have no rows yet."""

    def with_codes(self, languages: Sequence[str], placement: CodePlacement) -> Text:
        """The same pieces with code rows for these languages, and no others."""


class Text(Symbols, Pieces, Protocol):
    """Strings ↔ rows of one matrix. It must pickle, since text is tokenised in processes of their own."""

    @property
    def kind(self) -> str:
        """The name under which `kinds` finds it again."""

    @property
    def layout(self) -> Layout:
        """Of a pack's text: what `with_codes` was given. Of a base's: how all sentences are arranged."""

    @property
    def end_id(self) -> int: ...

    @property
    def unknown_id(self) -> int | None: ...

    @property
    def beginning_id(self) -> int | None: ...

    @property
    def forbidden(self) -> Sequence[int]:
        """Rows that no translation has: padding, codes, rows without a meaning."""

    def encode(self, text: str) -> list[int]:
        """Rows of a text's pieces, without codes or end; [] for a text of whitespace only."""

    def decode(self, ids: Iterable[int]) -> str:
        """The text of what a model generated, up to the first end; it never raises."""

    def spell(self, piece: str) -> list[str]:
        """The symbols of its own that spell another vocabulary's piece, unknown ones left out; [] where it cannot."""

    def count(self, lines: Iterable[str]) -> PieceCounts:
        """Pieces of these lines, and how many of them are unknown or single bytes."""

    @property
    def fingerprint(self) -> str:
        """Equal where, and only where, the same text gives the same rows."""

    def options(self) -> dict[str, Any]:
        """What its kind needs besides its files to read it again: plain JSON."""

    def files(self) -> dict[str, bytes]:
        """Its files, by their names."""


class BaseText(Protocol):
    """The text of a base: a text for each side, often one for both (then it is a `Text` itself)."""

    @property
    def kind(self) -> str: ...

    @property
    def layout(self) -> Layout: ...

    def side(self, side: Side) -> Text:
        """The text of this side's matrix."""

    @property
    def source_languages(self) -> tuple[str, ...]: ...

    @property
    def target_languages(self) -> tuple[str, ...]: ...

    @property
    def fingerprint(self) -> str: ...

    def options(self) -> dict[str, Any]: ...

    def files(self) -> dict[str, bytes]: ...


class SharedText(Text, BaseText, Protocol):
    """A text that is one for both sides of a base: what can be learned from a corpus is of this sort."""

    def with_codes(self, languages: Sequence[str], placement: CodePlacement) -> SharedText: ...


def languages_of(text: BaseText, side: Side | None = None) -> tuple[str, ...]:
    """A base's languages on one side, or all of them."""
    if side is None:
        return tuple(dict.fromkeys((*text.source_languages, *text.target_languages)))
    return text.source_languages if side == "source" else text.target_languages


def pieces_of(text: Symbols) -> list[str]:
    """The symbols that are pieces of text."""
    symbols = text.symbols
    return [symbols[row] for row in text.piece_rows]


def decoder_start(text: Text, layout: Layout) -> int:
    """The row of a matrix that a decoder starts from."""
    rows = {"end": text.end_id, "padding": text.padding_id, "beginning": text.beginning_id}
    row = rows[layout.decoder_start]
    if row is None:
        raise DataError(f"a text of kind {text.kind!r} has no {layout.decoder_start} symbol, from which this base decodes.")
    return row


def text_fingerprint(kind: str, options: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    """A fingerprint for kinds whose rows follow from their options and files."""
    parts = [kind, options, {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def check_text(text: Text, where: str) -> None:
    """Whether it keeps the protocol's promises about rows: a broken one would train on wrong rows without a word."""
    symbols, rows = text.symbols, range(len(text))
    specials = {PADDING: text.padding_id, END: text.end_id, UNKNOWN: text.unknown_id, BEGINNING: text.beginning_id}
    named = {name: row for name, row in specials.items() if row is not None}
    codes = {code_symbol(language): text.code(language) for language in text.languages}
    pieces = set(text.piece_rows)
    problem = ""
    if len(symbols) != len(text) or len(set(symbols)) != len(symbols):
        problem = f"{len(set(symbols))} different symbols for {len(text)} rows"
    elif wrong := [name for name, row in (named | codes).items() if row not in rows or symbols[row] != name or row in pieces]:
        problem = f"no symbol row of its own for {', '.join(wrong[:3])}"
    elif not all(row in rows for row in (*text.piece_rows, *text.forbidden)):
        problem = "pieces or forbidden rows beyond its last row"
    if problem:
        raise DataError(f"{where}: its text of kind {text.kind!r} has {problem}; the files are damaged, or the kind has a bug.")
