"""Strings ↔ rows: casing, segments, subwords, vocabularies, language codes. Layer 1; knows nothing of tensors.

`protocol` says what a model needs of a text, `kinds` has the kinds of text that there are, `codec` puts a language's text and
codes together. `Tokenizer` is our own kind; `train_subwords` learns the `Subwords` it is made of.
"""

from __future__ import annotations

from graftmt.text.aliases import find_language, match_names, new_language, resolve_language
from graftmt.text.codec import Codec, TextCodec
from graftmt.text.kinds.inline_cased import BEGINNING_ID, END_ID, PADDING_ID, UNKNOWN_ID, Tokenizer, Vocabulary
from graftmt.text.languages import check_language_names
from graftmt.text.learning import FewerMerges, train_subwords
from graftmt.text.protocol import (
    BaseText,
    CodePlacement,
    Layout,
    PieceCounts,
    Pieces,
    SharedText,
    Symbols,
    Text,
    code_symbol,
    languages_of,
    pieces_of,
)
from graftmt.text.subwords import Subwords, normalise

__all__ = [
    "BEGINNING_ID",
    "END_ID",
    "PADDING_ID",
    "UNKNOWN_ID",
    "BaseText",
    "CodePlacement",
    "Codec",
    "FewerMerges",
    "Layout",
    "PieceCounts",
    "Pieces",
    "SharedText",
    "Subwords",
    "Symbols",
    "Text",
    "TextCodec",
    "Tokenizer",
    "Vocabulary",
    "check_language_names",
    "code_symbol",
    "find_language",
    "languages_of",
    "match_names",
    "new_language",
    "normalise",
    "pieces_of",
    "resolve_language",
    "train_subwords",
]
