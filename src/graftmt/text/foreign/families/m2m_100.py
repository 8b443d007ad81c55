"""M2M-100: vocab.json with the pieces of a SentencePiece model, and codes such as `__en__` after the last one. Layer 1."""

from __future__ import annotations

from graftmt.text.foreign.language_codes import M2M_100
from graftmt.text.foreign.shared import shared_text, vocabulary_text
from graftmt.text.foreign.tokenizer_folder import TextFolder
from graftmt.text.protocol import LAYOUTS, BaseText, Layout


def read_text(found: TextFolder) -> BaseText:
    return read_arranged(found, LAYOUTS["decoder"])


def read_arranged(found: TextFolder, layout: Layout) -> BaseText:
    """The text with M2M-100's rows, in this layout."""
    chosen = found.tokenizer_settings.get("language_codes", "m2m100")
    languages = M2M_100.get(chosen) if isinstance(chosen, str) else None
    if languages is None:
        raise ValueError(f"language_codes is {chosen!r:.40}; known: {', '.join(M2M_100)}")
    if not found.has("vocab.json"):
        return shared_text(found, layout, languages)
    return vocabulary_text(found, layout, lambda after: {name: after + number for number, name in enumerate(languages)})
