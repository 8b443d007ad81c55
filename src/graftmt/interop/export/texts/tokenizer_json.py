"""Texts with a tokenizer.json. Layer 5."""

from __future__ import annotations

from graftmt.interop.export.text_form import TextForm
from graftmt.text import Text
from graftmt.text.kinds.tokenizer_json import FILE, KIND


class TokenizerJsonForm(TextForm):
    kind = KIND
    module = "library_text"
    requirements = ("tokenizers",)
    description = "A tokenizer.json, which the `tokenizers` library reads: its tokens are the tokens."

    def file(self, text: Text) -> tuple[str, bytes]:
        return FILE, text.files()[FILE]
