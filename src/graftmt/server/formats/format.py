"""What a kind of text has to offer. Layer 6."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Parsed(Protocol):
    """A text taken apart."""

    @property
    def blocks(self) -> Sequence[str]:
        """What is to be translated, in order; a block may have several lines and sentences."""

    def rebuild(self, translations: Sequence[str]) -> str:
        """The text with each block translated and everything else as it was."""


class TextFormat(Protocol):
    """A kind of text, such as plain text or HTML."""

    @property
    def name(self) -> str:
        """What a request calls it."""

    @property
    def endings(self) -> tuple[str, ...]:
        """Of files of this kind, with the dot."""

    @property
    def media_type(self) -> str:
        """Of the result."""

    def parse(self, content: str) -> Parsed: ...
