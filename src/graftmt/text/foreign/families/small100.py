"""SMaLL-100: M2M-100's rows, with the target's code before the source text and none for the decoder. Layer 1."""

from __future__ import annotations

from graftmt.text.foreign.families.m2m_100 import read_arranged
from graftmt.text.foreign.tokenizer_folder import TextFolder
from graftmt.text.protocol import LAYOUTS, BaseText


def read_text(found: TextFolder) -> BaseText:
    return read_arranged(found, LAYOUTS["source"])
