"""Texts with Moses tokenisation and BPE whose last piece of a word ends in `</w>`: FSMT, the winners of WMT19. Layer 1.

Words are cut by `sacremoses`; pieces are joined by the merges of a `merges.txt`.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from graftmt.errors import DataError
from graftmt.text.foreign.row_table import FILE as ROWS
from graftmt.text.foreign.subword_text import ForeignText, read_table
from graftmt.text.kinds import TextKind
from graftmt.text.languages import is_language_name
from graftmt.text.protocol import BOUNDARY
from graftmt.text.subwords import CACHED_LENGTH, remember

KIND = "moses-bpe"
FILE = "merges.txt"
WORD_END = "</w>"
MOST_MERGES = 2_000_000

_FULL_WIDTH = str.maketrans(
    "，、”“∶：？《》）！（；」「～’━〈〉【】％０１２３４５６７８９", ',,""::?"")!(;""~\'-<>[]%0123456789'
)
"""Moses' replacements of Chinese punctuation, as far as they are one character each."""
_STOPS = re.compile(r"[。．]\s*")
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&#124;": "|", "&#91;": "[", "&#93;": "]", "&amp;": "&"}


class Merges:
    """BPE merges, the first of which goes first."""

    def __init__(self, content: bytes, where: str) -> None:
        self.content = content
        try:
            lines = [line.split()[:2] for line in content.decode().split("\n")[:-1]]
        except UnicodeDecodeError:
            raise DataError(f"{where} is not text; restore it from a copy.") from None
        if len(lines) > MOST_MERGES or any(len(pair) != 2 for pair in lines):
            raise DataError(f"{where} is damaged: expected up to {MOST_MERGES:,} lines of two pieces; restore it from a copy.")
        self.rank = {(first, second): number for number, (first, second) in enumerate(lines)}

    @property
    def results(self) -> set[str]:
        return {first + second for first, second in self.rank}

    def apply(self, word: str) -> list[str]:
        """The pieces of a word that is not empty."""
        pieces = [*word[:-1], word[-1] + WORD_END]
        while len(pieces) > 1:
            last = len(self.rank)
            best = min(pairwise(pieces), key=lambda pair: self.rank.get(pair, last))
            if best not in self.rank:
                break
            joined, place = [], 0
            while place < len(pieces):
                both = tuple(pieces[place : place + 2]) == best
                joined.append("".join(best) if both else pieces[place])
                place += 1 + both
            pieces = joined
        return pieces


class Moses:
    """Moses' tokenisation for one language."""

    def __init__(self, language: str, where: str) -> None:
        try:
            import sacremoses
        except ImportError:
            raise DataError(f"{where} needs sacremoses: pip install 'graftmt[foreign]'.") from None
        self._normalizer = sacremoses.MosesPunctNormalizer(lang=language)
        self._tokenizer = sacremoses.MosesTokenizer(lang=language)
        self._detokenizer = sacremoses.MosesDetokenizer(lang=language)

    def words(self, text: str) -> list[str]:
        text = _STOPS.sub(". ", text.translate(_FULL_WIDTH)).replace("…", "...")
        text = self._normalizer.normalize(text)
        text = "".join(character for character in text if not unicodedata.category(character).startswith("C"))
        return [
            word for word in self._tokenizer.tokenize(text, aggressive_dash_splits=True, return_str=False, escape=True) if word
        ]

    def text(self, words: list[str]) -> str:
        return str(self._detokenizer.detokenize(words))


class MosesText(ForeignText):
    kind = KIND

    def __init__(self, merges: Merges, language: str, lowercase: bool, where: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.merges = merges
        self.language = language
        self.lowercase = lowercase
        self._moses = Moses(language, where)
        self._cache: dict[str, list[int]] = {}

    def encode_rows(self, lines: Sequence[str]) -> list[list[int]]:
        for line in lines:
            line.encode()  # half a character is an error here, as in the other kinds
        return [[row for word in self._words(line) for row in self._word_rows(word)] for line in lines]

    def _words(self, line: str) -> list[str]:
        return self._moses.words(line.lower() if self.lowercase else line)

    def _word_rows(self, word: str) -> list[int]:
        rows = self._cache.get(word)
        if rows is None:
            found = (self.row_of.get(piece, self.unknown_id) for piece in self.merges.apply(word))
            rows = [row for row in found if row is not None]
            if len(word) <= CACHED_LENGTH:
                remember(self._cache, sys.intern(word), rows)
        return rows

    def join(self, pieces: list[str]) -> str:
        return self._moses.text("".join(piece.replace(WORD_END, " ") for piece in pieces).split())

    def parts_of(self, piece: str) -> list[str]:
        words = self._words(piece.removeprefix(BOUNDARY))
        return [part for word in words for part in self.merges.apply(word)]

    def symbol_of(self, piece: str) -> str:
        """What ends a word counts as a whole word, which most such pieces are, and other kinds write ▁ before a word."""
        text = piece.removesuffix(WORD_END)
        for entity, character in _ENTITIES.items():
            text = text.replace(entity, character)
        return BOUNDARY + text if piece.endswith(WORD_END) else text

    def model_files(self) -> dict[str, bytes]:
        return {FILE: self.merges.content}

    def model_options(self) -> dict[str, Any]:
        return {"language": self.language, "lowercase": self.lowercase}


class MosesBpe(TextKind):
    name = KIND

    def file_names(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        return (FILE, ROWS)

    def read(self, files: Mapping[str, bytes], options: Mapping[str, Any], where: str) -> MosesText:
        arguments = read_table(files, options, where)
        language, lowercase = options.get("language"), options.get("lowercase")
        if not isinstance(language, str) or not is_language_name(language) or not isinstance(lowercase, bool):
            raise DataError(f"{where}: the options of its text are damaged (language or lowercase); restore them from a copy.")
        return MosesText(Merges(files[FILE], f"{where}/{FILE}"), language, lowercase, where, **arguments)
