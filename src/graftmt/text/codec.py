"""What batches, searches and translations need to know of text: which tokenizer reads a language, where codes go.

Layer 1. A base's `Tokenizer` is one for all its languages; a composition of base and packs has one for each side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from graftmt.text.tokenizer import Tokenizer


class Codec(Protocol):
    """Text of any language ↔ rows of a model's matrices."""

    @property
    def padding_id(self) -> int: ...

    @property
    def end_id(self) -> int: ...

    def source_tokenizer(self, language: str) -> Tokenizer:
        """Reads text in this language; an unknown one is an error that names the known."""

    def target_tokenizer(self, language: str) -> Tokenizer:
        """Writes text in this language."""

    def source_prefix(self, source: str, target: str) -> list[int]:
        """The rows that precede a source sentence; its tokens and the end follow."""

    def decoder_prefix(self, target: str) -> list[int]:
        """The rows the decoder starts from."""

    @property
    def forbidden(self) -> list[int]:
        """Rows of the output that no translation has."""
