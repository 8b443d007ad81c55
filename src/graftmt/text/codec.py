"""What batches, searches and translations need to know of text: which text reads a language, what stands around it. Layer 1.

A base alone has a `TextCodec`; a composition of base and packs has one of its own, with other rows in the same layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from graftmt.errors import LanguageError, nearest
from graftmt.text.protocol import BaseText, Side, Text, decoder_start, languages_of


class Codec(Protocol):
    """Text of any language ↔ rows of a model's matrices."""

    @property
    def source_padding_id(self) -> int: ...

    @property
    def target_padding_id(self) -> int: ...

    @property
    def end_id(self) -> int:
        """The row that ends a translation; that of a source text is part of its suffix."""

    def source_tokenizer(self, language: str) -> Text:
        """Reads text in this language; an unknown one is an error that names the known."""

    def target_tokenizer(self, language: str) -> Text:
        """Writes text in this language."""

    def source_prefix(self, source: str, target: str) -> list[int]:
        """The rows that precede a source sentence."""

    def source_suffix(self, source: str, target: str) -> list[int]:
        """The rows that follow it: the end, and a code where a base has it there."""

    def decoder_prefix(self, target: str) -> list[int]:
        """The rows the decoder starts from."""

    @property
    def forbidden(self) -> Sequence[int]:
        """Rows of the output that no translation has."""


@dataclass(frozen=True)
class TextCodec:
    """The `Codec` of a base without packs."""

    base: BaseText

    @property
    def source_padding_id(self) -> int:
        return self.text_of("source").padding_id

    @property
    def target_padding_id(self) -> int:
        return self.text_of("target").padding_id

    @property
    def end_id(self) -> int:
        return self.text_of("target").end_id

    @property
    def forbidden(self) -> Sequence[int]:
        return self.text_of("target").forbidden

    def source_tokenizer(self, language: str) -> Text:
        self.check(language, "source")
        return self.text_of("source")

    def target_tokenizer(self, language: str) -> Text:
        self.check(language, "target")
        return self.text_of("target")

    def source_prefix(self, source: str, target: str) -> list[int]:
        return self.base.layout.source_prefix(self._source_code(source, target))

    def source_suffix(self, source: str, target: str) -> list[int]:
        return self.base.layout.source_suffix(self._source_code(source, target), self.text_of("source").end_id)

    def decoder_prefix(self, target: str) -> list[int]:
        self.check(target, "target")
        text, layout = self.text_of("target"), self.base.layout
        code = self.code_rows(target, "target", "target") if layout.decoder_code else []
        return [decoder_start(text, layout), *code]

    def _source_code(self, source: str, target: str) -> list[int]:
        self.check(source, "source")
        self.check(target, "target")
        whose = self.base.layout.source_code
        return [] if whose is None else self.code_rows(source if whose == "source" else target, whose, "source")

    def text_of(self, side: Side) -> Text:
        """The text whose rows this side's matrix has."""
        return self.base.side(side)

    def code_rows(self, language: str, side: Side, matrix: Side) -> list[int]:
        """The rows, one or none, that are the code of a language used on `side`, in the matrix of the side `matrix`."""
        return [self.text_of(matrix).code(language)]

    def check(self, language: str, side: Side) -> None:
        """An error for a language that is not known on this side."""
        known = languages_of(self.base, side)
        if language not in known:
            where = "" if self.base.source_languages == self.base.target_languages else f" as {side}"
            named = ", ".join(sorted(known)) or "none"
            raise LanguageError(f"language {language!r} is not known here{where}; known: {named}{nearest(language, known)}")
