"""Texts whose subwords are a SentencePiece model, unigram or BPE: M2M-100, NLLB-200, mBART-50, Marian, fairseq. Layer 1.

Rows are found by the names of pieces, so the model's own numbers do not matter: fairseq moves them, Marian has others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from graftmt.errors import DataError
from graftmt.files import read_limited
from graftmt.text.foreign.model_file import LARGEST_MODEL, check_model
from graftmt.text.foreign.row_table import FILE as ROWS
from graftmt.text.foreign.row_table import RowTable
from graftmt.text.foreign.subword_text import ForeignText, read_table
from graftmt.text.kinds import TextKind
from graftmt.text.plain_learning import train_plain_model
from graftmt.text.protocol import BOUNDARY, LAYOUTS

KIND = "sentencepiece"
FILE = "sentencepiece.model"
_MARKS = "\ue000\uf8ff\U000f0000\U0010fffd"
"""Private characters, of which hardly any model knows one."""


class SentencePieces:
    """A SentencePiece model that anyone may have made."""

    def __init__(self, content: bytes, where: str) -> None:
        self.content = content
        try:
            check_model(content)
            self.model = sentencepiece.SentencePieceProcessor(model_proto=content)
            size = self.model.get_piece_size()
            self.pieces: tuple[str, ...] = tuple(self.model.id_to_piece(number) for number in range(size))
            self.unknown: int = self.model.unk_id()
            special = (self.model.is_control, self.model.is_unknown, self.model.is_unused)
            text = (piece for number, piece in enumerate(self.pieces) if not any(is_one(number) for is_one in special))
            self.texts: frozenset[str] = frozenset(text)
            """The pieces that a text can have."""
            self.encode("a")  # a model may also be wrong in what it is first used for
            if len(set(self.pieces)) < size or not 0 <= self.unknown < size:
                raise ValueError("pieces that repeat, or no unknown one")
        # Of these SentencePiece has several, one for each way in which a model can be wrong; pieces may also be no text.
        except (RuntimeError, ValueError, IndexError, OSError, TypeError) as error:
            reason = f" ({error})" if type(error) is ValueError else ""
            raise DataError(f"{where} is not a SentencePiece model or is damaged{reason}; restore it from a copy.") from None

    def encode(self, text: str) -> list[str]:
        """Pieces; a run of characters that the model does not know stands for itself."""
        found: list[str] = self.model.encode(text, out_type=str)
        return found

    def writes(self, name: str) -> bool:
        """Whether a text can have this piece: a known one, or characters that the model leaves as they are."""
        return name in self.texts or name in self.encode(name)

    def encode_inside(self, piece: str) -> list[str]:
        """Pieces of what stands inside a word: after a character that the model does not know, and so joins to nothing."""
        mark = next((mark for mark in _MARKS if mark not in self.texts), None)
        return [] if mark is None else self.encode(mark + piece)[len(self.encode(mark)) :]


class SentencePieceText(ForeignText):
    kind = KIND

    def __init__(self, pieces: SentencePieces, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.subwords = pieces
        self._encode = pieces.model.encode
        known = pieces.texts
        nothing = -1 if self.unknown_id is None else self.unknown_id
        self._rows = [self.row_of.get(piece, nothing) if piece in known else nothing for piece in pieces.pieces]
        # Characters that the model does not know may have rows: Marian's vocabularies are made from text.
        self._beyond = any(piece not in known for piece in self.row_of)

    def encode_rows(self, lines: Sequence[str]) -> list[list[int]]:
        place = self._rows.__getitem__
        found = [list(map(place, numbers)) for numbers in self._encode(list(lines), num_threads=1)]
        if self._beyond or self.unknown_id is None:
            for number, rows in enumerate(found):
                if self.unknown_id is None or self.unknown_id in rows:
                    found[number] = self._by_name(lines[number])
        return found

    def _by_name(self, line: str) -> list[int]:
        rows = [self.row_of.get(piece, self.unknown_id) for piece in self.subwords.encode(line)]
        return [row for row in rows if row is not None]

    def join(self, pieces: list[str]) -> str:
        text: str = self.subwords.model.decode(pieces)
        return text.replace(BOUNDARY, " ").strip()

    def parts_of(self, piece: str) -> list[str]:
        if piece.startswith(BOUNDARY):
            return self.subwords.encode(piece.removeprefix(BOUNDARY))
        return self.subwords.encode_inside(piece)

    def model_files(self) -> dict[str, bytes]:
        return {FILE: self.subwords.content}


class SentencePieceKind(TextKind):
    name = KIND
    largest_file = LARGEST_MODEL

    def file_names(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        return (FILE, ROWS)

    def read(self, files: Mapping[str, bytes], options: Mapping[str, Any], where: str) -> SentencePieceText:
        arguments = read_table(files, options, where)
        return SentencePieceText(SentencePieces(files[FILE], f"{where}/{FILE}"), **arguments)

    def learn(self, texts: Mapping[str, Iterable[str]], *, sizes: Mapping[str, int], **options: Any) -> SentencePieceText:
        """A cased BPE model, with the special symbols in the first rows."""
        return text_of_model(train_plain_model(texts, sizes=sizes, **options), "a new vocabulary")

    def open_file(self, path: Path) -> SentencePieceText:
        """Any SentencePiece model."""
        try:
            return text_of_model(read_limited(path, LARGEST_MODEL), str(path))
        except ValueError as error:
            raise DataError(f"the subword model {path} cannot be used: {error}.") from None
        except OSError as error:
            raise DataError(f"cannot read the subword model {path}: {error.strerror}; check the path.") from None


def text_of_model(content: bytes, where: str) -> SentencePieceText:
    """The text of a model alone: <s>, <pad>, </s> and <unk>, then its pieces in their order."""
    pieces = SentencePieces(content, where)
    table = RowTable(
        pieces=(None, None, None, None, *(piece for piece in pieces.pieces if piece in pieces.texts)),
        beginning=0,
        padding=1,
        end=2,
        unknown=3,
    )
    return SentencePieceText(pieces, table=table, layout=LAYOUTS["none"])
