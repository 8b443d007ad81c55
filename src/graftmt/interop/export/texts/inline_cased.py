"""Our own kind of text, inline casing over SentencePiece, as one Python file. Layer 5."""

from __future__ import annotations

from graftmt.interop.export.text_form import TextForm
from graftmt.text import Text
from graftmt.text.kinds.inline_cased import FILE, KIND


class InlineCasedForm(TextForm):
    kind = KIND
    module = "inline_cased_text"
    requirements = ("sentencepiece",)
    description = (
        "Inline casing: words are lowercased and cut where scripts, digits or the case change; SentencePiece cuts the parts "
        "further. A token `<U>` or `<T>` after a piece says that it was upper or title case. No tokenizer of Hugging Face can "
        "do this; the file here does, and so does graftmt."
    )

    def file(self, text: Text) -> tuple[str, bytes]:
        return FILE, text.files()[FILE]
