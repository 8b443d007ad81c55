"""Subwords: text ↔ pieces, losslessly, with SentencePiece BPE over lowercase segments and inline case markers.

Layer 1, above `pretokenization`; `learning` trains the models, `kinds.inline_cased` gives pieces rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import sentencepiece

from graftmt.errors import DataError
from graftmt.files import atomic_file, read_limited
from graftmt.text.pretokenization import TITLE_MARKER, UPPER_MARKER, Segmenter, apply_marker, lowercase, marker_for
from graftmt.text.protocol import BOUNDARY, BYTES, UNKNOWN

if TYPE_CHECKING:
    from graftmt.text.kinds.inline_cased import Tokenizer
    from graftmt.text.protocol import CodePlacement

UNKNOWN_SURFACE = "⁇"
ESCAPE_MARKER = "<E>"
MARKERS = (UPPER_MARKER, TITLE_MARKER, ESCAPE_MARKER)

# Words and segments repeat, so almost every one is found in a dictionary. A full cache is emptied, which is simpler
# than a least-recently-used order and costs one slow stretch per 250,000 different words.
CACHE_ENTRIES = 250_000  # some 50 MB
CACHED_LENGTH = 48  # in languages without spaces a "word" is a whole sentence, which does not come back

LARGEST_MODEL = 2**24
"""Bytes: three times those of a model of 256,000 pieces."""

Value = TypeVar("Value")
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


def normalise(text: str) -> str:
    """What `decode(encode(text))` gives back: runs of whitespace become one space, the ends are stripped.

    A lone surrogate, which no UTF-8 file can hold, becomes U+FFFD. Nothing else changes; there is no NFKC here.
    """
    return " ".join(text.split()).translate(_SURROGATES)


class Subwords:
    """A trained BPE model. Cheap to pickle: only the model's bytes travel."""

    def __init__(self, model_bytes: bytes, name: str = "the subword model") -> None:
        self.model_bytes = model_bytes
        try:
            self._model = sentencepiece.SentencePieceProcessor(model_proto=model_bytes)
            size = self._model.get_piece_size()
            _check(self._model, name)
            # All pieces but SentencePiece's own <unk>, which is always its piece 0.
            self.pieces: tuple[str, ...] = tuple(self._model.id_to_piece(i) for i in range(1, size))
            self.byte_fallback: bool = size > 1 and bool(self._model.is_byte(1))
        # Of these SentencePiece has several, one for each way in which a model can be wrong; pieces may also be no text.
        except (RuntimeError, ValueError, IndexError, OSError):
            raise DataError(f"{name} is not a SentencePiece model or is damaged; train it again or restore it.") from None
        self.alphabet: frozenset[str] = frozenset(piece for piece in self.pieces if len(piece) == 1)
        self._segments = Segmenter(self.alphabet)
        self._word_cache: dict[str, list[str]] = {}
        self._segment_cache: dict[str, list[str]] = {}

    @classmethod
    def load(cls, path: Path | str) -> Subwords:
        return cls(read_model(path), name=str(path))

    def save(self, path: Path | str) -> None:
        with atomic_file(Path(path)) as temporary:
            temporary.write_bytes(self.model_bytes)

    def __reduce__(self) -> tuple[type[Subwords], tuple[bytes]]:
        return type(self), (self.model_bytes,)

    def encode(self, text: str) -> list[str]:
        """Pieces of a text; the empty text, or one of whitespace only, gives []."""
        cache = self._word_cache
        pieces: list[str] = []
        for word in text.split():
            found = cache.get(word)
            if found is None:
                found = self.encode_word(word)
                if len(word) <= CACHED_LENGTH:
                    remember(cache, word, found)
            pieces += found
        return pieces

    def encode_word(self, word: str) -> list[str]:
        """Pieces of one non-empty word without whitespace; a caller that keeps a cache of its own starts here."""
        segments = self._segments(word)
        cache = self._segment_cache
        pieces: list[str] = []
        if segments[0] == BOUNDARY:  # on its own here; any later one is a literal ▁ of the word
            pieces.append(BOUNDARY)
            del segments[0]
        for segment in segments:
            found = cache.get(segment)
            if found is None:
                found = self._encode_segment(segment)
                if len(segment) <= CACHED_LENGTH:
                    remember(cache, segment, found)
            pieces += found
        return pieces

    def _encode_segment(self, segment: str) -> list[str]:
        if segment == BOUNDARY:
            return [BOUNDARY, ESCAPE_MARKER]
        lower = lowercase(segment)
        if len(segment) == 1 and lower not in self.alphabet:
            return self._encode_unknown(segment, lower)
        pieces = []
        start = 0
        # One call per segment: SentencePiece's batched call starts a thread pool each time, 15 times the cost of this.
        for piece in self._model.encode(lower, out_type=str):
            pieces.append(sys.intern(piece))  # the caches hold the same few thousand pieces many times over
            end = start + len(piece)
            if marker := marker_for(segment[start:end]):
                pieces.append(marker)
            start = end
        return pieces

    def _encode_unknown(self, character: str, lower: str) -> list[str]:
        if not self.byte_fallback:
            return [UNKNOWN]
        pieces = [f"<0x{value:02X}>" for value in lower.translate(_SURROGATES).encode()]
        if marker := marker_for(character):
            pieces.append(marker)
        return pieces

    def spell(self, piece: str) -> list[str]:
        """What another vocabulary's piece is made of here: no <unk>, no bare boundary, bytes only where there is nothing else.

        A piece that starts with ▁ begins a word; another one is inside a word, and so are all its parts.
        """
        if piece in BYTES:  # half a character, not the text "<0xCE>"
            return []
        if piece.startswith(BOUNDARY):
            parts = self.encode_word(piece.removeprefix(BOUNDARY)) if piece != BOUNDARY else []
        else:
            # After a literal ▁, which is always a segment by itself, BPE sees the piece without a boundary.
            parts = self.encode_word(BOUNDARY + piece)[len(self.encode_word(BOUNDARY)) :]
        parts = [part for part in parts if part not in (BOUNDARY, UNKNOWN, *MARKERS)]
        return [part for part in parts if part not in BYTES] or parts

    def with_codes(self, languages: Sequence[str], placement: CodePlacement) -> Tokenizer:
        """These subwords as a text: with rows, and with codes for these languages."""
        from graftmt.text.kinds.inline_cased import Tokenizer  # which is made of subwords

        return Tokenizer(self, languages, placement)

    def decode(self, pieces: Iterable[str]) -> str:
        """The text of any sequence of pieces, also one that `encode` would never write.

        A marker applies to the text of the piece before it, after bytes to the last character they spell; a marker that
        has nothing to apply to is ignored. Bytes that are not UTF-8 become U+FFFD.
        """
        parts: list[str] = []  # of text; boundaries are spaces already
        pending = bytearray()
        for piece in pieces:
            value = BYTES.get(piece)
            if value is not None:
                pending.append(value)
                continue
            if pending:
                parts.extend(pending.decode(errors="replace"))
                pending.clear()
            if piece in MARKERS:
                _apply_to_last(parts, piece)
            else:
                parts.append(UNKNOWN_SURFACE if piece == UNKNOWN else piece.replace(BOUNDARY, " "))
        parts.extend(pending.decode(errors="replace"))
        return "".join(parts).removeprefix(" ")


def read_model(path: Path | str) -> bytes:
    """The bytes of a file that may be a subword model."""
    try:
        return read_limited(Path(path), LARGEST_MODEL)
    except ValueError as error:
        raise DataError(f"the subword model {path} cannot be used: {error}.") from None
    except OSError as error:
        raise DataError(f"cannot read the subword model {path}: {error.strerror}; check the path.") from None


def _apply_to_last(parts: list[str], marker: str) -> None:
    if not parts:
        return
    if marker != ESCAPE_MARKER:
        parts[-1] = apply_marker(parts[-1], marker)
    elif parts[-1] == " ":
        parts[-1] = BOUNDARY


def remember(cache: dict[str, Value], key: str, value: Value) -> None:
    if len(cache) >= CACHE_ENTRIES:
        cache.clear()
    cache[key] = value


def _check(model: sentencepiece.SentencePieceProcessor, name: str) -> None:
    """Only a model that leaves text alone keeps our promise of lossless text."""
    foreign = [model.id_to_piece(i) for i in range(model.get_piece_size()) if model.is_control(i)]
    problem = ""
    if model.unk_id() != 0 or foreign:
        problem = f"it has special pieces of its own ({', '.join(foreign) or 'an <unk> that is not piece 0'})"
    elif model.piece_to_id(BOUNDARY) == 0:
        problem = f"it has no piece {BOUNDARY!r}"
    elif model.normalize("ﬁ①a") != "ﬁ①a":
        problem = "it changes text (a normalisation other than 'identity', or a dummy prefix)"
    if problem:
        raise DataError(f"{name} cannot be used: {problem}. Train one with graftmt.text.train_subwords.")
