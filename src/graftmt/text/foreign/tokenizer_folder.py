"""The files of a foreign tokenizer, read with care: anyone may have made them. Layer 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from graftmt.documents import parse_json
from graftmt.errors import DataError
from graftmt.files import read_limited
from graftmt.text.foreign.row_table import MOST_ROWS
from graftmt.text.kinds import LARGEST_FILE
from graftmt.text.protocol import BEGINNING, END, PADDING, UNKNOWN, Side

SPECIALS = {"beginning": BEGINNING, "padding": PADDING, "end": END, "unknown": UNKNOWN}
"""What tokenizers call the special symbols unless they say otherwise."""
_FIELDS = {"beginning": "bos_token", "padding": "pad_token", "end": "eos_token", "unknown": "unk_token"}
_OTHER_FIELDS = ("sep_token", "cls_token", "mask_token")


@dataclass(frozen=True)
class TextFolder:
    """The folder of a foreign model, as far as its text is concerned."""

    path: Path
    settings: Mapping[str, Any]
    """The model's configuration."""
    rows: tuple[int, int]
    """Of the matrices: source, target."""
    source_languages: tuple[str, ...] = ()
    target_languages: tuple[str, ...] = ()

    @property
    def shared_rows(self) -> int:
        """The rows of both matrices, where they have the same symbols."""
        if self.rows[0] != self.rows[1]:
            raise ValueError(f"one vocabulary for matrices of {self.rows[0]:,} and {self.rows[1]:,} rows")
        return self.rows[0]

    def languages(self, side: Side) -> tuple[str, ...]:
        """What the caller says of this side's languages; () where that is left to the files."""
        return self.source_languages if side == "source" else self.target_languages

    def has(self, *names: str) -> bool:
        return all((self.path / name).exists() for name in names)

    def first(self, *names: str) -> str:
        """The first of these files that exists; none is an error that lists them."""
        found = next((name for name in names if self.has(name)), None)
        if found is None:
            raise DataError(f"{self.path} has none of the files {', '.join(names)}; bring the tokenizer's files too.")
        return found

    def read(self, name: str) -> bytes:
        path = self.path / name
        try:
            return read_limited(path, LARGEST_FILE)
        except ValueError as error:
            raise DataError(f"{path} cannot be used: {error}.") from None
        except FileNotFoundError:
            raise DataError(f"there is no file {path}; bring the tokenizer's files too.") from None
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}; check the path.") from None

    def read_object(self, name: str) -> dict[str, Any]:
        """The JSON object in a file; {} where there is no such file."""
        if not self.has(name):
            return {}
        try:
            found = parse_json(self.read(name))
            if not isinstance(found, dict):
                raise ValueError("expected an object")
        except ValueError as error:
            raise DataError(f"{self.path / name} is damaged ({error}); restore it from a copy.") from None
        return found

    def read_vocabulary(self, name: str) -> list[str | None]:
        """The tokens in a vocab.json by their ids; None where an id is left out."""
        try:
            return parse_vocabulary(self.read(name))
        except ValueError as error:
            raise DataError(f"{self.path / name} cannot be used: {error}.") from None

    @cached_property
    def tokenizer_settings(self) -> dict[str, Any]:
        """tokenizer_config.json, and special_tokens_map.json for what that does not say."""
        return {**self.read_object("special_tokens_map.json"), **self.read_object("tokenizer_config.json")}

    @property
    def specials(self) -> dict[str, str]:
        """The tokens that are special symbols."""
        found = {symbol: _content(self.tokenizer_settings.get(field)) for symbol, field in _FIELDS.items()}
        return {symbol: found[symbol] or name for symbol, name in SPECIALS.items()}

    @property
    def named_tokens(self) -> set[str]:
        """All tokens that the settings give a task, none of which is a language's code."""
        others = (_content(self.tokenizer_settings.get(field)) for field in _OTHER_FIELDS)
        return {*self.specials.values(), *SPECIALS.values(), "<mask>", *(name for name in others if name)}

    @property
    def additional_tokens(self) -> list[str]:
        """Tokens that were added to the named ones: codes, for the most part. Names differ between versions."""
        for field in ("extra_special_tokens", "additional_special_tokens"):
            found = self.tokenizer_settings.get(field)
            if isinstance(found, list) and found:
                return [name for name in map(_content, found) if name]
        return []

    @property
    def added_tokens(self) -> dict[str, int]:
        """Tokens that were added to a vocabulary, with their ids, where the settings say."""
        found = self.tokenizer_settings.get("added_tokens_decoder")
        if not isinstance(found, dict):
            return {}
        named = {_content(token): row for row, token in found.items()}
        return {name: int(row) for name, row in named.items() if name and row.isascii() and row.isdigit() and len(row) < 10}


def _content(token: Any) -> str | None:
    """The text of a token, which may be an object with options."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) and token else None


def parse_vocabulary(content: bytes) -> list[str | None]:
    """The tokens of a vocabulary by their ids. What is wrong with it is a ValueError."""
    found = parse_json(content, unique=True)
    if not isinstance(found, dict) or not found:
        raise ValueError("expected an object with an id for each token")
    return tokens_by_id(found)


def tokens_by_id(found: Mapping[str, Any]) -> list[str | None]:
    """The list of tokens that these ids describe; None where an id is left out."""
    for token, row in found.items():
        if type(row) is not int or not 0 <= row < MOST_ROWS:
            raise ValueError(f"the token {token!r:.60} has the id {row!r:.40}; expected 0 to {MOST_ROWS:,}")
    names: list[str | None] = [None] * (max(found.values(), default=-1) + 1)
    for token, row in found.items():
        if names[row] is not None:
            raise ValueError(f"the tokens {names[row]!r:.60} and {token!r:.60} both have the id {row}")
        names[row] = token
    return names
