"""The text of a base whose sides have subwords of their own: Marian's two models, FSMT's two vocabularies. Layer 1."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypedDict

from graftmt.documents import check_fields
from graftmt.errors import DataError
from graftmt.text.foreign.subword_text import ForeignText, read_again
from graftmt.text.kinds import TextKind, text_kind
from graftmt.text.protocol import SIDES, Layout, Side, text_fingerprint

KIND = "two-sided"


class SideOptions(TypedDict):
    kind: str
    options: dict[str, Any]


class Options(TypedDict):
    source: SideOptions
    target: SideOptions


class TwoSidedText:
    """A text for each side; the languages are those that the source's text reads and the target's writes."""

    kind = KIND

    def __init__(self, source: ForeignText, target: ForeignText) -> None:
        self._sides: dict[Side, ForeignText] = {"source": source, "target": target}

    @property
    def layout(self) -> Layout:
        return self._sides["source"].layout

    def side(self, side: Side) -> ForeignText:
        return self._sides[side]

    @property
    def source_languages(self) -> tuple[str, ...]:
        return self._sides["source"].source_languages

    @property
    def target_languages(self) -> tuple[str, ...]:
        return self._sides["target"].target_languages

    def options(self) -> dict[str, Any]:
        return {side: {"kind": text.kind, "options": text.options()} for side, text in self._sides.items()}

    def files(self) -> dict[str, bytes]:
        return {_file(side, name): content for side, text in self._sides.items() for name, content in text.files().items()}

    @cached_property
    def fingerprint(self) -> str:
        return text_fingerprint(self.kind, self.options(), self.files())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TwoSidedText) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, tuple[str, dict[str, bytes], dict[str, Any]]]:
        return read_again, (self.kind, self.files(), self.options())


class TwoSided(TextKind):
    """Each side is stored as its own kind is, with the side in the names of its files."""

    name = KIND

    def file_names(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(_file(side, name) for side in SIDES for name in _kind(options, side).file_names(options[side]["options"]))

    def read(self, files: Mapping[str, bytes], options: Mapping[str, Any], where: str) -> TwoSidedText:
        sides = []
        for side in SIDES:
            kind, of_side = _kind(options, side), options[side]["options"]
            own = {name: files[_file(side, name)] for name in kind.file_names(of_side)}
            text = kind.read(own, of_side, f"{where}, {side}")
            if not isinstance(text, ForeignText):
                raise DataError(f"{where}: its {side} text is of kind {kind.name!r}, which cannot be one of two sides.")
            sides.append(text)
        return TwoSidedText(*sides)


def _file(side: str, name: str) -> str:
    return f"{side}-{name}"


def _kind(options: Mapping[str, Any], side: Side) -> TextKind:
    """The kind of a side's text, by options that may be anybody's."""
    try:
        check_fields(dict(options), Options, "options")
    except ValueError as error:
        raise DataError(f"a text of kind {KIND!r} has options that are damaged ({error}).") from None
    name = options[side]["kind"]
    if name == KIND:
        raise DataError(f"a text of kind {KIND!r} has a side of the same kind; the options are damaged.")
    return text_kind(name)
