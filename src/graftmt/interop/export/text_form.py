"""How the text of a model leaves graftmt: files and a small Python file that needs no graftmt. Layer 5."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import ClassVar

from graftmt.text import Text


class TextForm(ABC):
    """The form of one kind of text. A subclass is one file in `texts/`, or of another package."""

    kind: ClassVar[str]
    """The kind of text."""
    module: ClassVar[str]
    """The Python file in `standalone/` with a class `Text`, which `encode`s lines to tokens and `decode`s them."""
    requirements: ClassVar[tuple[str, ...]]
    """The packages that the file imports."""
    description: ClassVar[str]
    """How text becomes tokens, for the page."""

    @abstractmethod
    def file(self, text: Text) -> tuple[str, bytes]:
        """The name and the content of the file that `Text` is made from."""

    def problem(self, text: Text) -> str:
        """Why a text cannot be used without graftmt; "" where it can."""
        if text.unknown_id is None:
            return "it has no symbol for unknown pieces, which other programs need. Translate with graftmt."
        return ""

    def source_code(self) -> str:
        """The Python file."""
        return files("graftmt.interop.export.standalone").joinpath(f"{self.module}.py").read_text(encoding="utf-8")


class LibraryTextForm(TextForm):
    """The form of a kind whose texts have a tokenizer.json too, which AutoTokenizer loads."""

    @abstractmethod
    def library_form(
        self, text: Text, tokens: Sequence[str], mark: str, special: Mapping[str, int], template: Sequence[str]
    ) -> str:
        """The tokenizer.json whose ids have these names; `library_tokenizer` says what the rest is."""
