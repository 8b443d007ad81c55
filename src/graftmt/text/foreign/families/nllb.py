"""NLLB-200: codes such as `eng_Latn` before the source text; with `legacy_behaviour`, after it. Layer 1."""

from __future__ import annotations

from graftmt.text.foreign.language_codes import NLLB
from graftmt.text.foreign.shared import shared_text
from graftmt.text.foreign.tokenizer_folder import TextFolder
from graftmt.text.protocol import BaseText, Layout


def read_text(found: TextFolder) -> BaseText:
    legacy = found.tokenizer_settings.get("legacy_behaviour") or False
    if not isinstance(legacy, bool):
        raise ValueError(f"legacy_behaviour is {legacy!r:.40}; expected true or false")
    return shared_text(found, Layout(source_code="source", decoder_code=True, code_after_text=legacy), NLLB)
