"""Texts with a `tokenizer.json`, which the `tokenizers` library reads: what transformers 5 saves for NLLB-200. Layer 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graftmt.errors import DataError
from graftmt.text.foreign.library_file import parse_library_file
from graftmt.text.foreign.row_table import FILE as ROWS
from graftmt.text.foreign.subword_text import ForeignText, read_table
from graftmt.text.kinds import TextKind
from graftmt.text.protocol import BOUNDARY

KIND = "tokenizer-json"
FILE = "tokenizer.json"


class LibraryPieces:
    """A tokenizer of the `tokenizers` library, without special tokens."""

    def __init__(self, content: bytes, where: str) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise DataError(f"{where} needs the tokenizers library: pip install 'graftmt[foreign]'.") from None
        self.content = content
        try:
            parse_library_file(content)
        except ValueError as error:
            raise DataError(f"{where} cannot be used: {error}.") from None
        try:
            self.tokenizer = Tokenizer.from_str(content.decode())
            self.tokenizer.encode_batch_fast(["a"], add_special_tokens=False)
        except BaseException as error:  # the library's own panics are no Exceptions
            if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
                raise
            reason = str(error)[:200].rstrip(".")
            raise DataError(f"{where} is damaged ({reason}); restore it from a copy.") from None


class LibraryText(ForeignText):
    kind = KIND

    def __init__(self, pieces: LibraryPieces, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.subwords = pieces
        tokenizer = pieces.tokenizer
        nothing = -1 if self.unknown_id is None else self.unknown_id
        ids: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
        self._rows = [nothing] * (max(ids.values(), default=-1) + 1)
        for name, number in ids.items():
            self._rows[number] = self.row_of.get(name, nothing)

    def encode_rows(self, lines: Sequence[str]) -> list[list[int]]:
        place = self._rows.__getitem__
        encoded = self.subwords.tokenizer.encode_batch_fast(list(lines), add_special_tokens=False)
        found = [list(map(place, one.ids)) for one in encoded]
        return found if self.unknown_id is not None else [[row for row in rows if row >= 0] for rows in found]

    def join(self, pieces: list[str]) -> str:
        decoder = self.subwords.tokenizer.decoder
        return str(decoder.decode(pieces)) if decoder is not None else " ".join(pieces)

    def parts_of(self, piece: str) -> list[str]:
        tokenizer = self.subwords.tokenizer
        if tokenizer.normalizer is not None:
            begins = piece.startswith(BOUNDARY)
            piece = BOUNDARY * begins + tokenizer.normalizer.normalize_str(piece.removeprefix(BOUNDARY))
        return [token.value for token in tokenizer.model.tokenize(piece)]

    def model_files(self) -> dict[str, bytes]:
        return {FILE: self.subwords.content}


class TokenizerJsonKind(TextKind):
    name = KIND

    def file_names(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        return (FILE, ROWS)

    def read(self, files: Mapping[str, bytes], options: Mapping[str, Any], where: str) -> LibraryText:
        arguments = read_table(files, options, where)
        return LibraryText(LibraryPieces(files[FILE], f"{where}/{FILE}"), **arguments)
