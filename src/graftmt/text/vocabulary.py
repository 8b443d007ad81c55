"""The vocabulary: which row of an embedding matrix stands for which symbol.

Layer 1, above `subwords`. Rows: fairseq's four special symbols, three case markers, the subword pieces, language codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graftmt.errors import ConfigError, DataError, LanguageError, nearest
from graftmt.text.languages import check_language_names
from graftmt.text.protocol import BEGINNING, END, PADDING, UNKNOWN, code_symbol
from graftmt.text.subwords import MARKERS

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
