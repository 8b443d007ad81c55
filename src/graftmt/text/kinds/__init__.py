"""The kinds of text: one file here for each, or a class of another package. Found by name; nothing else knows them. Layer 1.

Another package registers its kinds as entry points of the group `graftmt.text`, each under the kind's name:

    [project.entry-points."graftmt.text"]
    words = "graftmt_words:WordKind"
"""

from __future__ import annotations

import inspect
import logging
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, ClassVar

from graftmt.errors import CheckpointError, ConfigError, nearest
from graftmt.text.protocol import SharedText, text_fingerprint

GROUP = "graftmt.text"
DEFAULT = "inline-cased-bpe"
"""Ours: `kinds.inline_cased`."""
LARGEST_FILE = 2**26
"""Bytes: twice those of a tokenizer.json with 256,000 pieces."""


class TextKind(ABC):
    """How texts of one kind are read, and, where that can be, made."""

    name: ClassVar[str]
    largest_file: ClassVar[int] = LARGEST_FILE

    @abstractmethod
    def file_names(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """The files that a text with these options has. The options may come from anyone; the names are our own."""

    @abstractmethod
    def read(self, files: Mapping[str, bytes], options: Mapping[str, Any], where: str) -> Any:
        """The text (a `Text`, for a base a `BaseText`) that `files()` and `options()` of another one describe.

        `where` says for errors where the files come from. What cannot be read is a `DataError`.
        """

    def fingerprint(self, files: Mapping[str, bytes], options: Mapping[str, Any]) -> str:
        """That of the text which `read` would give. Files are only hashed here, so they may be anything."""
        return text_fingerprint(self.name, options, files)

    def learn(self, texts: Mapping[str, Iterable[str]], *, sizes: Mapping[str, int], **options: Any) -> SharedText:
        """A new text without codes, made from lines in some languages; `sizes`: lines of each, where these are samples."""
        raise ConfigError(f"a text of kind {self.name!r} cannot be learned from a corpus; use a text of another kind.")

    def open_file(self, path: Path) -> SharedText:
        """A text without codes from one file that a user has."""
        raise ConfigError(f"a text of kind {self.name!r} cannot be made from one file, such as {path}.")


def text_kind(name: str) -> TextKind:
    """The kind of this name; one that is not installed is an error that names the known."""
    found = _own_kinds().get(name) or _other_kinds().get(name)
    if found is None:
        known = [*_own_kinds(), *_other_kinds()]
        raise CheckpointError(
            f"text of kind {name!r:.60} cannot be read here{nearest(name, known) or ';'} known: {', '.join(known)}. "
            "Install the package that brings this kind, or upgrade graftmt."
        )
    return found


def default_kind() -> TextKind:
    """Ours: what a base or a pack has that names no kind, and what is learned where none is named."""
    return text_kind(DEFAULT)


@lru_cache(maxsize=1)
def _own_kinds() -> dict[str, TextKind]:
    modules = [import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    kinds = [
        kind()
        for module in modules
        for kind in vars(module).values()
        if inspect.isclass(kind) and issubclass(kind, TextKind) and kind.__module__ == module.__name__
    ]
    return {kind.name: kind for kind in kinds}


@lru_cache(maxsize=1)
def _other_kinds() -> dict[str, TextKind]:
    """Those of other packages, looked for when a name is not one of graftmt's."""
    loaded = (_loaded(entry_point) for entry_point in entry_points(group=GROUP))
    return {kind.name: kind for kind in loaded if kind is not None}


def _loaded(entry_point: EntryPoint) -> TextKind | None:
    """A package that does not work must not keep the others from working: it is left out, and a warning says so."""
    try:
        kind = entry_point.load()()
        problem = "" if isinstance(kind, TextKind) else f"{entry_point.value} is no subclass of {__name__}.TextKind"
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    if not problem:
        assert isinstance(kind, TextKind)
        return kind
    logging.getLogger(__name__).warning("text of kind %r cannot be used (%s); update its package.", entry_point.name, problem)
    return None
