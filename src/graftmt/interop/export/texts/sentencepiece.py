"""Plain SentencePiece texts: those of foreign models, and of packs trained with `subwords.casing=none`. Layer 5."""

from __future__ import annotations

from graftmt.interop.export.text_form import TextForm
from graftmt.text import Text
from graftmt.text.kinds.sentencepiece import FILE, KIND


class SentencePieceForm(TextForm):
    kind = KIND
    module = "sentencepiece_text"
    requirements = ("sentencepiece",)
    description = "Plain SentencePiece: its pieces are the tokens."

    def file(self, text: Text) -> tuple[str, bytes]:
        return FILE, text.files()[FILE]
