"""Texts that both sides of a model share, in the arrangement of rows that fairseq gave the models of its family. Layer 1.

Rows: <s>, <pad>, </s>, <unk>, the pieces, the languages' codes. M2M-100 has its pieces in a vocab.json; NLLB-200 and mBART-50
take them from the SentencePiece model, moved by one; a tokenizer.json says all by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graftmt.errors import DataError
from graftmt.text.foreign.library_file import LibraryFile, read_library_file
from graftmt.text.foreign.row_table import table_of
from graftmt.text.foreign.subword_text import ForeignText
from graftmt.text.foreign.tokenizer_folder import SPECIALS, TextFolder
from graftmt.text.kinds.sentencepiece import SentencePieces, SentencePieceText
from graftmt.text.kinds.tokenizer_json import FILE as LIBRARY
from graftmt.text.kinds.tokenizer_json import LibraryPieces, LibraryText
from graftmt.text.languages import is_language_name
from graftmt.text.protocol import Layout

MODELS = ("sentencepiece.bpe.model", "sentencepiece.model", "spiece.model")
_OWN = ("<unk>", "<s>", "</s>")  # the first pieces of a SentencePiece model


def code_language(token: str) -> str | None:
    """The language whose code a token is: `eng_Latn`, or `en` of `__en__`; None where it cannot be one."""
    name = token[2:-2] if token.startswith("__") and token.endswith("__") else token
    return name if is_language_name(name) else None


def shared_text(found: TextFolder, layout: Layout, default_codes: Sequence[str]) -> ForeignText:
    """The text of a model with a SentencePiece model or a tokenizer.json; the first is preferred.

    `default_codes`: the codes of the published models in their order, for folders that do not list theirs.
    """
    name = found.first(*MODELS, LIBRARY)
    library = _library(found) if found.has(LIBRARY) else None
    if name == LIBRARY:
        assert library is not None
        return _library_text(found, library, layout)
    pieces = SentencePieces(found.read(name), str(found.path / name))
    names = fairseq_names(pieces)
    if library is not None:
        _check_same(found, names, library, name)
    codes = _codes(found, library.added) if library else _listed_codes(found, len(names), default_codes)
    tokens: list[str | None] = [*names, *[None] * max(0, 1 + max(codes.values(), default=-1) - len(names))]
    table = table_of(tokens, found.shared_rows, specials=found.specials, codes=codes, texts=pieces.texts)
    return SentencePieceText(pieces, table=table, layout=layout)


def vocabulary_text(found: TextFolder, layout: Layout, codes_after: Callable[[int], dict[str, int]]) -> ForeignText:
    """The text of a SentencePiece model with a vocab.json; `codes_after`: the rows of codes, given the number of tokens."""
    name = found.first(*MODELS)
    pieces = SentencePieces(found.read(name), str(found.path / name))
    names = found.read_vocabulary("vocab.json")
    if None in names:
        raise ValueError(f"vocab.json has no token with the id {names.index(None)}")
    texts = [token for token in names if token is not None and pieces.writes(token)]
    if len(texts) < len(names) // 2:
        raise ValueError(
            f"vocab.json and {name} are not of one model: {len(texts):,} of {len(names):,} tokens are pieces of it"
        )
    codes = codes_after(len(names))
    tokens: list[str | None] = [*names, *[None] * len(codes)]
    table = table_of(tokens, found.shared_rows, specials=found.specials, codes=codes, texts=texts)
    return SentencePieceText(pieces, table=table, layout=layout)


def fairseq_names(pieces: SentencePieces) -> list[str]:
    """Tokens by row: the special symbols in fairseq's order, then the model's pieces."""
    if pieces.pieces[: len(_OWN)] != _OWN:
        raise ValueError(f"its SentencePiece model begins with {', '.join(pieces.pieces[:3])}; expected {', '.join(_OWN)}")
    return [*SPECIALS.values(), *pieces.pieces[len(_OWN) :]]


def _library(found: TextFolder) -> LibraryFile:
    try:
        return read_library_file(found.read(LIBRARY), found.named_tokens)
    except ValueError as error:
        raise DataError(f"{found.path / LIBRARY} cannot be used: {error}.") from None


def _library_text(found: TextFolder, library: LibraryFile, layout: Layout) -> ForeignText:
    codes = _codes(found, library.added)
    table = table_of(library.names, found.shared_rows, specials=found.specials, codes=codes, texts=library.texts)
    return LibraryText(LibraryPieces(library.content, str(found.path / LIBRARY)), table=table, layout=layout)


def _codes(found: TextFolder, added: dict[str, int]) -> dict[str, int]:
    """Codes among special tokens, in the order of their rows."""
    special = {code_language(name): row for name, row in added.items() if name not in found.named_tokens}
    return {language: row for language, row in sorted(special.items(), key=lambda one: one[1]) if language is not None}


def _listed_codes(found: TextFolder, after: int, default_codes: Sequence[str]) -> dict[str, int]:
    """Codes that the settings give ids; where they give none, the published ones after the last piece."""
    codes = _codes(found, {name: row for name, row in found.added_tokens.items() if row >= after})
    codes = codes or {language: after + number for number, language in enumerate(default_codes)}
    missing = [
        token for token in found.additional_tokens if token not in found.named_tokens and code_language(token) not in codes
    ]
    if missing:
        raise ValueError(
            f"its settings name the codes {', '.join(missing[:3])} and no ids for them; save its tokenizer.json too"
        )
    return codes


def _check_same(found: TextFolder, names: Sequence[str], library: LibraryFile, model: str) -> None:
    """Whether two files say the same of the rows; transformers would read the one, and this program the other."""
    for row, name in enumerate(names):
        other = library.names[row] if row < len(library.names) else None
        if name != other:
            raise DataError(
                f"{found.path}: row {row} is {name!r:.60} in {model} and {other!r:.60} in {LIBRARY}; they differ. "
                "Remove the one that does not belong to it."
            )
