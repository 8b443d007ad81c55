"""The text side of a composition: which text reads a language, and which row of which matrix is its code. Layer 3.

Rows of a matrix: those of the base's or the pack's text, then the own codes of whichever pack brings some. How sentences are
arranged is the base's affair, also where a pack's text is of another kind.
"""

from __future__ import annotations

from dataclasses import dataclass

from graftmt.errors import LanguageError, nearest
from graftmt.packs.pack import Pack
from graftmt.text import Text, TextCodec, languages_of
from graftmt.text.protocol import Side


@dataclass(frozen=True)
class ComposedCodec(TextCodec):
    """A `Codec` for one base and at most one pack a side."""

    source: Pack | None = None
    target: Pack | None = None

    def text_of(self, side: Side) -> Text:
        pack = self._pack(side)
        return self.base.side(side) if pack is None else pack.tokenizer

    def code_rows(self, language: str, side: Side, matrix: Side) -> list[int]:
        """A row of the matrix, or of those that the language's pack puts after them; none where the pack goes without."""
        pack, text = self._pack(side), self.text_of(matrix)
        if pack is None:
            return [text.code(language)]
        return pack.recipe.code.rows_of(text, pack.languages.index(language), self.base.layout.placement(side))

    def check(self, language: str, side: Side) -> None:
        """A pack's matrix has rows for the text of its own languages only."""
        pack = self._pack(side)
        known = pack.languages if pack else languages_of(self.base, side)
        if language not in known:
            raise LanguageError(
                f"language {language!r} is not known here as {side}{nearest(language, known) or ';'} known: "
                f"{', '.join(known)}. Compose the base with a pack for it, or with none where it is one of the base's."
            )

    def _pack(self, side: Side) -> Pack | None:
        return self.source if side == "source" else self.target
