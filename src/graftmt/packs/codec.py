"""The text side of a composition: which tokenizer reads a language, and which row of which matrix is its code. Layer 3.

Rows of the source matrix: those of the base or of the source pack, then the own codes of whichever pack brings some.
Where a base writes codes on the source side (the paper), that is the target's code; where it starts the decoder from
them (M2M-100, NLLB), the source text begins with the source's code and the decoder with the target's.
"""

from __future__ import annotations

from dataclasses import dataclass

from graftmt.errors import LanguageError, nearest
from graftmt.packs.component import Side
from graftmt.packs.components.language_code import code_of
from graftmt.packs.pack import Pack
from graftmt.text import BEGINNING_ID, END_ID, PADDING_ID, UNKNOWN_ID, Tokenizer


@dataclass(frozen=True)
class ComposedCodec:
    """A `Codec` for one base and at most one pack a side."""

    base: Tokenizer
    source: Pack | None
    target: Pack | None

    padding_id = PADDING_ID
    end_id = END_ID

    def source_tokenizer(self, language: str) -> Tokenizer:
        self._check(language, self.source, "source")
        return self.source.tokenizer if self.source else self.base

    def target_tokenizer(self, language: str) -> Tokenizer:
        self._check(language, self.target, "target")
        return self.target.tokenizer if self.target else self.base

    def source_prefix(self, source: str, target: str) -> list[int]:
        self._check(source, self.source, "source")
        self._check(target, self.target, "target")
        codes_of = self.source.tokenizer if self.source else self.base
        if self.base.code_placement == "source":
            return self._code(target, self.target, codes_of)
        return self._code(source, self.source, codes_of)

    def decoder_prefix(self, target: str) -> list[int]:
        self._check(target, self.target, "target")
        if self.base.code_placement == "source":
            return [END_ID]
        return [END_ID, *self._code(target, self.target, self.target.tokenizer if self.target else self.base)]

    @property
    def forbidden(self) -> list[int]:
        if self.target is None:
            return self.base.forbidden
        codes = range(self.target.tokenizer.vocabulary.first_code_id, len(self.target.tokenizer))
        return [BEGINNING_ID, PADDING_ID, UNKNOWN_ID, *codes]

    def _code(self, language: str, pack: Pack | None, matrix: Tokenizer) -> list[int]:
        """The row of a language's code: one of `matrix`, or of those that its pack puts after them; none with `code:none`."""
        if pack is None:
            return [matrix.vocabulary.code(language)]
        choice = code_of(pack.recipe)
        if choice.kind == "none":
            return []
        if choice.kind == "learned":
            return [len(matrix) + pack.languages.index(language)]
        lent = choice.is_lent(self.base.code_placement)
        return [len(matrix) if lent else matrix.vocabulary.code(choice.language)]

    def _check(self, language: str, pack: Pack | None, side: Side) -> None:
        """A pack's matrix has rows for the text of its own languages only."""
        known = pack.languages if pack else self.base.languages
        if language not in known:
            raise LanguageError(
                f"language {language!r} is not known here as {side}{nearest(language, known) or ';'} known: "
                f"{', '.join(known)}. Compose the base with a pack for it, or with none where it is one of the base's."
            )
