"""What the rest asks the component that says how a pack's language is named to the model, its language code. Layer 3."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

from graftmt.packs.component import Component, Side
from graftmt.text import CodePlacement, Text


class CodeComponent(Component):
    """The choice of a language code, which every recipe has: `Recipe.code`."""

    own_codes: ClassVar[str]
    """The tensor of codes that the pack has learned, a row for each of its languages."""

    @property
    @abstractmethod
    def is_nearest(self) -> bool:
        """Whether it is still to be found out which of the base's codes it is."""

    @abstractmethod
    def naming(self, language: str) -> Self:
        """The same with the code of this language of the base."""

    @abstractmethod
    def named_as_in(self, codes: Sequence[str]) -> Self:
        """The same with the base's own name for its language, of all those that the base has codes of."""

    @abstractmethod
    def is_own(self, side: Side, placement: CodePlacement) -> bool:
        """Whether a pack brings a row for each of its languages."""

    @abstractmethod
    def rows_of(self, text: Text, number: int, placement: CodePlacement) -> list[int]:
        """The rows of a matrix that are written for the pack's language of this number. First come those of `text`."""
