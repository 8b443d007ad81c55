"""Strings ↔ rows: casing, segments, subwords, vocabularies, language codes. Layer 1; knows nothing of tensors.

`train_subwords` learns a `Subwords`; a `Tokenizer` adds languages to it and is what the other folders use.
"""

from __future__ import annotations

from graftmt.text.codec import Codec
from graftmt.text.languages import check_language_names
from graftmt.text.learning import train_subwords
from graftmt.text.subwords import Subwords, normalise, read_model
from graftmt.text.tokenizer import CodePlacement, PieceCounts, Tokenizer, tokenizer_fingerprint
from graftmt.text.vocabulary import BEGINNING_ID, END_ID, PADDING_ID, UNKNOWN_ID, Vocabulary, code_symbol

__all__ = [
    "BEGINNING_ID",
    "END_ID",
    "PADDING_ID",
    "UNKNOWN_ID",
    "CodePlacement",
    "Codec",
    "PieceCounts",
    "Subwords",
    "Tokenizer",
    "Vocabulary",
    "check_language_names",
    "code_symbol",
    "normalise",
    "read_model",
    "tokenizer_fingerprint",
    "train_subwords",
]
