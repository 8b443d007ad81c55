"""The tokenizer: text ↔ rows, and where language codes go. What the rest of the package uses of `text/`.

Layer 1, the top of `text/`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from graftmt.errors import ConfigError, nearest
from graftmt.text.subwords import BYTES, CACHED_LENGTH, UNKNOWN, Subwords, remember
from graftmt.text.vocabulary import BEGINNING_ID, END_ID, PADDING_ID, UNKNOWN_ID, Vocabulary

CodePlacement = Literal["source", "decoder"]
_FORMAT = 1  # rises when the same text and model would give other ids


@dataclass(frozen=True, kw_only=True)
class PieceCounts:
    """How a text fares under a vocabulary."""

    lines: int
    pieces: int
    unknown: int
    bytes: int

    @property
    def unknown_rate(self) -> float:
        return self.unknown / self.pieces if self.pieces else 0.0

    @property
    def byte_rate(self) -> float:
        return self.bytes / self.pieces if self.pieces else 0.0


class Tokenizer:
    """Subwords plus language codes. Pickles as a model, a list of languages and a placement; caches stay behind.

    Placement "source" is the paper's: source = <lang:target> tokens </s>, the decoder starts from </s>.
    Placement "decoder" is M2M-100's and NLLB's: source = <lang:source> tokens </s>, the decoder starts from
    </s> <lang:target>.
    """

    def __init__(self, subwords: Subwords, languages: Sequence[str], code_placement: CodePlacement = "source") -> None:
        if code_placement not in get_args(CodePlacement):
            hint = nearest(code_placement, get_args(CodePlacement))
            raise ConfigError(f"code_placement: got {code_placement!r}, expected 'source' or 'decoder'{hint}")
        self.subwords = subwords
        self.vocabulary = Vocabulary(subwords.pieces, languages)
        self.code_placement: CodePlacement = code_placement
        self._cache: dict[str, list[int]] = {}

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[Subwords, tuple[str, ...], CodePlacement]]:
        return type(self), (self.subwords, self.languages, self.code_placement)

    def __len__(self) -> int:
        return len(self.vocabulary)

    @property
    def languages(self) -> tuple[str, ...]:
        return self.vocabulary.languages

    def encode(self, text: str) -> list[int]:
        """Rows of the text's pieces, without codes or </s>."""
        cache = self._cache
        ids: list[int] = []
        for word in text.split():
            found = cache.get(word)
            if found is None:
                found = self.vocabulary.ids(self.subwords.encode_word(word))
                if len(word) <= CACHED_LENGTH:
                    remember(cache, word, found)
            ids += found
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of what a model generated, up to the first </s>; specials and codes have no text, <unk> has ⁇."""
        first, last = UNKNOWN_ID, self.vocabulary.first_code_id
        pieces: list[str] = []
        for row in ids:
            if row == END_ID:
                break
            if first <= row < last or row >= len(self.vocabulary) or row < 0:
                pieces.append(self.vocabulary.symbol(row))
        return self.subwords.decode(pieces)

    @property
    def padding_id(self) -> int:
        return PADDING_ID

    @property
    def end_id(self) -> int:
        return END_ID

    def source_tokenizer(self, language: str) -> Tokenizer:
        """This one, for each of its languages: a tokenizer alone is a `Codec`."""
        self.vocabulary.code(language)
        return self

    def target_tokenizer(self, language: str) -> Tokenizer:
        return self.source_tokenizer(language)

    def source_prefix(self, source: str, target: str) -> list[int]:
        """The rows that precede a source sentence; `encode` and </s> follow."""
        return [self.vocabulary.code(target if self.code_placement == "source" else source)]

    def decoder_prefix(self, target: str) -> list[int]:
        """The rows the decoder starts from."""
        code = self.vocabulary.code(target)
        return [END_ID] if self.code_placement == "source" else [END_ID, code]

    @property
    def forbidden(self) -> list[int]:
        """Rows that no translation has: beginning, padding, <unk> (never useful to a reader), language codes."""
        codes = range(self.vocabulary.first_code_id, len(self.vocabulary))
        return [BEGINNING_ID, PADDING_ID, UNKNOWN_ID, *codes]

    @property
    def fingerprint(self) -> str:
        """Equal where, and only where, the same text gives the same rows."""
        return tokenizer_fingerprint(self.subwords.model_bytes, self.languages, self.code_placement)

    def count(self, lines: Iterable[str]) -> PieceCounts:
        """Pieces of these lines, and how many of them are <unk> or single bytes."""
        line_count = pieces = unknown = single_bytes = 0
        for line in lines:
            encoded = self.subwords.encode(line)
            line_count += 1
            pieces += len(encoded)
            unknown += encoded.count(UNKNOWN)
            if self.subwords.byte_fallback:
                single_bytes += sum(piece in BYTES for piece in encoded)
        return PieceCounts(lines=line_count, pieces=pieces, unknown=unknown, bytes=single_bytes)

    def unknown_rate(self, lines: Iterable[str]) -> float:
        """The share of pieces that are <unk>."""
        return self.count(lines).unknown_rate


def tokenizer_fingerprint(model_bytes: bytes, languages: Sequence[str], code_placement: str) -> str:
    """The fingerprint of the tokenizer that these would make; the model is only hashed, so it may be anything."""
    described = json.dumps([_FORMAT, code_placement, list(languages)], ensure_ascii=False).encode()
    return hashlib.sha256(described + b"\n" + model_bytes).hexdigest()
