"""Where language codes stand around a text, and what a decoder starts from. Layer 1.

A base's layout arranges all its sentences, those of its packs too; which rows the codes have is for the texts to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from graftmt.errors import ConfigError

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
