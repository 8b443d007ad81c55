"""Texts in the folders of bases and packs: what base.json or pack.json says of a text, its files, its fingerprint. Layer 1.

A document that says nothing of its text has one of our own kind, whose options are fields of the document itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from graftmt.errors import CheckpointError, DataError
from graftmt.files import read_limited
from graftmt.text.kinds import TextKind, default_kind, text_kind
from graftmt.text.protocol import BEGINNING, END, PADDING, SIDES, UNKNOWN, BaseText, Text, code_symbol, languages_of

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_TAKEN = re.compile(r"(base|pack|readme|model\.safetensors)\b.*", re.IGNORECASE)
"""Names of files that bases and packs have besides."""


class TextDocument(TypedDict):
    """The field `text` of base.json and pack.json."""

    kind: str
    options: dict[str, Any]
    files: list[str]


@dataclass(frozen=True)
class StoredText:
    """A text that has not been read yet."""

    kind: TextKind
    options: Mapping[str, Any]

    @classmethod
    def of(cls, document: Mapping[str, Any], codes: Sequence[str]) -> StoredText:
        """What a checked document says; `codes` are the languages that ours would have codes for."""
        if "text" in document:
            return cls(text_kind(document["text"]["kind"]), document["text"]["options"])
        return cls(default_kind(), {"languages": codes, "code_placement": document["code_placement"]})

    @property
    def names(self) -> tuple[str, ...]:
        """Of its files: as its kind says, whatever the document lists."""
        return self.kind.file_names(self.options)

    def read_files(self, folder: Path) -> dict[str, bytes]:
        return {name: self._read(folder / name) for name in self.names}

    def _read(self, path: Path) -> bytes:
        try:
            return read_limited(path, self.kind.largest_file)
        except ValueError as error:
            raise DataError(f"{path} cannot be used: {error}.") from None
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}; check the path.") from None

    def fingerprint(self, files: Mapping[str, bytes]) -> str:
        """That of the text, from files that are only hashed."""
        return self.kind.fingerprint(files, self.options)

    def text(self, files: Mapping[str, bytes], where: str) -> Text:
        """The text of one matrix, as a pack has it."""
        text: Text = self.kind.read(files, self.options, where)
        check_text(text, where)
        return text

    def base_text(self, files: Mapping[str, bytes], where: str) -> BaseText:
        text: BaseText = self.kind.read(files, self.options, where)
        check_base_text(text, where)
        return text


def check_text(text: Text, where: str) -> None:
    """Whether it keeps the protocol's promises about rows: a broken one would train on wrong rows without a word."""
    symbols, rows = text.symbols, range(len(text))
    specials = {PADDING: text.padding_id, END: text.end_id, UNKNOWN: text.unknown_id, BEGINNING: text.beginning_id}
    named = {name: row for name, row in specials.items() if row is not None}
    codes = {code_symbol(language): text.code(language) for language in text.languages}
    pieces = set(text.piece_rows)
    problem = ""
    if len(symbols) != len(text) or len(set(symbols)) != len(symbols):
        problem = f"{len(set(symbols))} different symbols for {len(text)} rows"
    elif wrong := [name for name, row in (named | codes).items() if row not in rows or symbols[row] != name or row in pieces]:
        problem = f"no symbol row of its own for {', '.join(wrong[:3])}"
    elif not all(row in rows for row in (*text.piece_rows, *text.forbidden)):
        problem = "pieces or forbidden rows beyond its last row"
    if problem:
        raise DataError(f"{where}: its text of kind {text.kind!r} has {problem}; the files are damaged, or the kind has a bug.")


def check_base_text(text: BaseText, where: str) -> None:
    """`check_text` for each side, and that both are arranged as the base is."""
    source, target = text.side("source"), text.side("target")
    check_text(source, where)
    if target is not source:
        check_text(target, where)
    if not source.layout == target.layout == text.layout:
        raise DataError(
            f"{where}: its text of kind {text.kind!r} has sides with another layout than its own; the kind has a bug."
        )


def text_fields(text: BaseText) -> dict[str, Any]:
    """What base.json says of a text of any kind."""
    rows, target_rows = (len(text.side(side)) for side in SIDES)
    fields: dict[str, Any] = {"code_placement": text.layout.placement("target"), "rows": rows}
    return fields if target_rows == rows else {**fields, "target_rows": target_rows}


def check_against(text: BaseText, document: Mapping[str, Any], padding_id: int, where: str) -> None:
    """Whether a text that was read is the one that base.json speaks of; `padding_id` is that of its architecture."""
    found = {"languages": list(languages_of(text)), **text_fields(text), "padding_id": text.side("source").padding_id}
    said = {**{key: document.get(key) for key in found}, "padding_id": padding_id}
    for key, value in found.items():
        if said[key] != value:
            raise CheckpointError(
                f"{where}: base.json says that {key} is {said[key]}, and its text says {value}; the files are not of one base. "
                "Restore the folder from a copy."
            )


def describe(text: Text | BaseText) -> dict[str, TextDocument]:
    """The field that a document has for a text; none for one of our own kind."""
    if text.kind == default_kind().name:
        return {}
    return {"text": {"kind": text.kind, "options": text.options(), "files": sorted(text.files())}}


def files_to_store(text: Text | BaseText) -> dict[str, bytes]:
    """A text's files, once it is clear that they will be found again and are read as the same text."""
    kind, files, options = text_kind(text.kind), text.files(), text.options()
    problem = ""
    if set(files) != set(kind.file_names(options)):
        problem = f"has the files {', '.join(files)}, and its kind reads {', '.join(kind.file_names(options))}"
    elif wrong := [name for name in files if not _FILE_NAME.fullmatch(name) or _TAKEN.fullmatch(name)]:
        problem = f"has a file with a name that cannot be used, {wrong[0]!r}"
    elif large := [name for name, content in files.items() if len(content) > kind.largest_file]:
        problem = f"has a file that would not be read again, {large[0]}: {len(files[large[0]]):,} bytes"
    elif kind.fingerprint(files, options) != text.fingerprint:
        problem = "has another fingerprint than its files and options"
    if problem:
        raise DataError(f"the text of kind {text.kind!r} cannot be stored: it {problem}; the kind has a bug.")
    return files
