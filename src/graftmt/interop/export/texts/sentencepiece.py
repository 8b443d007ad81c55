"""Plain SentencePiece texts: those of foreign models, and of packs trained with `subwords.casing=none`. Layer 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graftmt.interop.export.library_tokenizer import library_tokenizer
from graftmt.interop.export.text_form import LibraryTextForm
from graftmt.text import Text
from graftmt.text.kinds.sentencepiece import FILE, KIND


class SentencePieceForm(LibraryTextForm):
    kind = KIND
    module = "sentencepiece_text"
    requirements = ("sentencepiece",)
    description = "Plain SentencePiece: its pieces are the tokens."

    def library_form(
        self, text: Text, tokens: Sequence[str], mark: str, special: Mapping[str, int], template: Sequence[str]
    ) -> str:
        model = text.files()[FILE]
        return library_tokenizer(model, tokens, mark=mark, unknown=special["<unk>"], special=special, template=template)

    def file(self, text: Text) -> tuple[str, bytes]:
        return FILE, text.files()[FILE]
