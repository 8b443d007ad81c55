"""Our own kind of text: SentencePiece BPE over lowercase segments with inline case markers, one `subwords.model`. Layer 1.

A `Tokenizer` is subwords with rows and language codes: `protocol.Text` and `BaseText` in one. Its `Vocabulary` says which row
stands for which symbol: fairseq's four special symbols, three case markers, the subword pieces, language codes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from graftmt.errors import ConfigError, DataError, LanguageError, nearest
from graftmt.text.codec import TextCodec
from graftmt.text.kinds import DEFAULT, TextKind
from graftmt.text.languages import check_language_names
from graftmt.text.learning import train_subwords
from graftmt.text.protocol import (
    BEGINNING,
    BYTES,
    END,
    LAYOUTS,
    PADDING,
    UNKNOWN,
    CodePlacement,
    Layout,
    PieceCounts,
    Side,
    code_symbol,
)
from graftmt.text.subwords import CACHED_LENGTH, LARGEST_MODEL, MARKERS, Subwords, remember

KIND = DEFAULT
FILE = "subwords.model"
_FORMAT = 1  # rises when the same text and model would give other ids

SPECIALS = (BEGINNING, PADDING, END, UNKNOWN)
BEGINNING_ID, PADDING_ID, END_ID, UNKNOWN_ID = range(len(SPECIALS))
FIRST_PIECE_ID = len(SPECIALS) + len(MARKERS)


class Vocabulary:
    """Symbols ↔ rows. Codes come last, so that adding a language moves no other row."""

    beginning_id = BEGINNING_ID
    padding_id = PADDING_ID
    end_id = END_ID
    unknown_id = UNKNOWN_ID

    def __init__(self, pieces: Sequence[str], languages: Sequence[str]) -> None:
        check_language_names(languages, "the vocabulary")
        if len(set(languages)) < len(languages):
            raise ConfigError(f"languages: {', '.join(languages)} names one twice; each has one row.")
        self.languages = tuple(languages)
        self._symbols = (*SPECIALS, *MARKERS, *pieces, *map(code_symbol, languages))
        self._ids = {symbol: row for row, symbol in enumerate(self._symbols)}
        if len(self._ids) < len(self._symbols):
            raise DataError("the subword pieces repeat a symbol or use a special one; train the subword model again.")
        self.first_code_id = FIRST_PIECE_ID + len(pieces)

    def __len__(self) -> int:
        return len(self._symbols)

    @property
    def symbols(self) -> tuple[str, ...]:
        """All symbols, in the order of their rows."""
        return self._symbols

    @property
    def piece_rows(self) -> range:
        """The rows of the subword pieces: neither specials and markers nor codes."""
        return range(FIRST_PIECE_ID, self.first_code_id)

    def id(self, symbol: str) -> int:
        """The row of a symbol; one without a row is an error, for <unk> has to be written by whoever means it."""
        try:
            return self._ids[symbol]
        except KeyError:
            raise DataError(f"the symbol {symbol!r} is not one of this vocabulary's {len(self)}.") from None

    def ids(self, symbols: Iterable[str]) -> list[int]:
        """The rows of pieces that are known to be of this vocabulary; the tight loop of `Tokenizer.encode`."""
        return list(map(self._ids.__getitem__, symbols))

    def symbol(self, row: int) -> str:
        """The symbol of a row; a row beyond the last one, as in a padded matrix, is <unk>."""
        return self._symbols[row] if 0 <= row < len(self._symbols) else UNKNOWN

    def code(self, language: str) -> int:
        """The row of a language's code."""
        row = self._ids.get(code_symbol(language))
        if row is None:
            known = ", ".join(sorted(self.languages)) or "none"
            hint = nearest(language, self.languages)
            raise LanguageError(f"language {language!r} is not known here; known: {known}{hint}")
        return row


class Tokenizer:
    """Subwords plus language codes. Pickles as a model, a list of languages and a placement; caches stay behind.

    Placement "source" is the paper's: source = <lang:target> tokens </s>, the decoder starts from </s>.
    Placement "decoder" is M2M-100's and NLLB's: source = <lang:source> tokens </s>, the decoder starts from
    </s> <lang:target>. With "none" no codes are written.
    """

    kind = KIND
    padding_id, end_id, unknown_id, beginning_id = PADDING_ID, END_ID, UNKNOWN_ID, BEGINNING_ID

    def __init__(self, subwords: Subwords, languages: Sequence[str], code_placement: CodePlacement = "source") -> None:
        if code_placement not in get_args(CodePlacement):
            hint = nearest(code_placement, get_args(CodePlacement))
            raise ConfigError(f"code_placement: got {code_placement!r}, expected {', '.join(LAYOUTS)}{hint}")
        self.subwords = subwords
        self.vocabulary = Vocabulary(subwords.pieces, languages)
        self.code_placement: CodePlacement = code_placement
        self._cache: dict[str, list[int]] = {}

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[Subwords, tuple[str, ...], CodePlacement]]:
        return type(self), (self.subwords, self.languages, self.code_placement)

    # Rows

    def __len__(self) -> int:
        return len(self.vocabulary)

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.vocabulary.symbols

    @property
    def piece_rows(self) -> range:
        return self.vocabulary.piece_rows

    @property
    def languages(self) -> tuple[str, ...]:
        return self.vocabulary.languages

    def code(self, language: str) -> int:
        return self.vocabulary.code(language)

    @property
    def forbidden(self) -> list[int]:
        """Rows that no translation has: beginning, padding, <unk> (never useful to a reader), language codes."""
        codes = range(self.vocabulary.first_code_id, len(self.vocabulary))
        return [BEGINNING_ID, PADDING_ID, UNKNOWN_ID, *codes]

    # Text ↔ rows

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

    def spell(self, piece: str) -> list[str]:
        return self.subwords.spell(piece)

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

    # A base's text: one for both sides, and a `Codec` by itself

    @property
    def layout(self) -> Layout:
        return LAYOUTS[self.code_placement]

    def side(self, side: Side) -> Tokenizer:
        return self

    @property
    def source_languages(self) -> tuple[str, ...]:
        return self.languages

    @property
    def target_languages(self) -> tuple[str, ...]:
        return self.languages

    @property
    def source_padding_id(self) -> int:
        return PADDING_ID

    @property
    def target_padding_id(self) -> int:
        return PADDING_ID

    def source_tokenizer(self, language: str) -> Tokenizer:
        """This one, for each of its languages."""
        self.code(language)
        return self

    def target_tokenizer(self, language: str) -> Tokenizer:
        return self.source_tokenizer(language)

    def source_prefix(self, source: str, target: str) -> list[int]:
        """The rows that precede a source sentence; `encode` and the suffix follow."""
        return TextCodec(self).source_prefix(source, target)

    def source_suffix(self, source: str, target: str) -> list[int]:
        return TextCodec(self).source_suffix(source, target)

    def decoder_prefix(self, target: str) -> list[int]:
        """The rows the decoder starts from."""
        return TextCodec(self).decoder_prefix(target)

    # Storage

    def with_codes(self, languages: Sequence[str], placement: CodePlacement) -> Tokenizer:
        return Tokenizer(self.subwords, languages, placement)

    @property
    def fingerprint(self) -> str:
        """Equal where, and only where, the same text gives the same rows."""
        return tokenizer_fingerprint(self.subwords.model_bytes, self.languages, self.code_placement)

    def options(self) -> dict[str, Any]:
        return {"languages": list(self.languages), "code_placement": self.code_placement}

    def files(self) -> dict[str, bytes]:
        return {FILE: self.subwords.model_bytes}


def tokenizer_fingerprint(model_bytes: bytes, languages: Sequence[str], code_placement: str) -> str:
    """The fingerprint of the tokenizer that these would make; the model is only hashed, so it may be anything."""
    described = json.dumps([_FORMAT, code_placement, list(languages)], ensure_ascii=False).encode()
    return hashlib.sha256(described + b"\n" + model_bytes).hexdigest()


class InlineCased(TextKind):
    """Texts that are `Tokenizer`s; their options are their languages and where codes stand."""

    name = KIND
    largest_file = LARGEST_MODEL

    def file_names(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        return (FILE,)

    def read(self, files: Mapping[str, bytes], options: Mapping[str, Any], where: str) -> Tokenizer:
        return Tokenizer(Subwords(files[FILE], f"{where}/{FILE}"), options["languages"], options["code_placement"])

    def fingerprint(self, files: Mapping[str, bytes], options: Mapping[str, Any]) -> str:
        return tokenizer_fingerprint(files[FILE], options["languages"], options["code_placement"])

    def learn(self, texts: Mapping[str, Iterable[str]], *, sizes: Mapping[str, int], **options: Any) -> Tokenizer:
        """`options` are those of `train_subwords`."""
        return Tokenizer(train_subwords(texts, sizes=sizes, **options), ())

    def open_file(self, path: Path) -> Tokenizer:
        return Tokenizer(Subwords.load(path), ())
