"""What a model needs of text: the protocols that every kind of text follows, and the notation that all kinds share. Layer 1.

A *text* is a subword model with the rows it has in one matrix. The other folders use texts through these protocols alone;
`kinds` has the implementations. docs/overview.md says how to add one. A base's `Layout` arranges all its sentences, those of
its packs too: where language codes stand around a text, and what a decoder starts from. Which rows those are, texts say.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from graftmt.errors import ConfigError, DataError

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")

CodePlacement = Literal["source", "decoder", "none"]
"""The layouts that have a name, in configurations, base.json and pack.json."""

DecoderStart = Literal["end", "padding", "beginning"]
"""The special symbol a decoder starts from."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How the sentences of a base are arranged."""

    source_code: Side | None = "target"
    """Whose code stands with the source text: that of the target (the paper, SMaLL-100, Marian), of the source itself
    (M2M-100, NLLB-200, mBART), or nobody's."""
    decoder_code: bool = False
    """Whether the target's code follows the decoder's start."""
    code_after_text: bool = False
    """The code of the source text follows its end symbol (NLLB's legacy behaviour) instead of preceding the text."""
    decoder_start: DecoderStart = "end"

    def __post_init__(self) -> None:
        if self.source_code == "target" and self.decoder_code:
            raise ConfigError(
                "layout: the target's code cannot stand both with the source text and after the decoder's start; leave one out."
            )

    def code_matrix(self, side: Side) -> Side | None:
        """The matrix that a language's code is read from when the language is used on this side; None: it has no code."""
        if side == "target" and self.decoder_code:
            return "target"
        return "source" if self.source_code == side else None

    def codes_in(self, matrix: Side) -> Side | None:
        """Whose codes are read from this matrix: those of source languages, of target languages, or none."""
        if matrix == "source":
            return self.source_code
        return "target" if self.decoder_code else None

    def source_prefix(self, code: Sequence[int]) -> list[int]:
        """What precedes a source text; `code` is empty where a pack goes without."""
        return [] if self.code_after_text else list(code)

    def source_suffix(self, code: Sequence[int], end: int) -> list[int]:
        return [end, *code] if self.code_after_text else [end]

    def placement(self, side: Side) -> CodePlacement:
        """The named layout that treats codes as this one does, as far as a pack of this side is concerned."""
        if self.codes_in(side) is not None:
            return "source" if self.codes_in(side) != side else "decoder"
        return "none" if self.code_matrix(side) is None else "source"


LAYOUTS: dict[CodePlacement, Layout] = {
    "source": Layout(),
    "decoder": Layout(source_code="source", decoder_code=True),
    "none": Layout(source_code=None),
}


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
