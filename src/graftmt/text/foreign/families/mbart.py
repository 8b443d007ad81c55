"""mBART-50: codes such as `en_XX` before the source text and after the decoder's start. Layer 1."""

from __future__ import annotations

from graftmt.text.foreign.language_codes import MBART_50
from graftmt.text.foreign.shared import shared_text
from graftmt.text.foreign.tokenizer_folder import TextFolder
from graftmt.text.protocol import LAYOUTS, BaseText


def read_text(found: TextFolder) -> BaseText:
    if found.tokenizer_settings.get("tokenizer_class") in ("MBartTokenizer", "MBartTokenizerFast"):
        raise ValueError("it is that of mBART-25, whose decoder starts from a language's code alone; only mBART-50 can be read")
    return shared_text(found, LAYOUTS["decoder"], MBART_50)
