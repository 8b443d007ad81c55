"""What a family of foreign models is: the base class of all of them, with everything that the import asks. Layer 5.

A family is one file in `families/`, or a class of another package that registers it as an entry point of the group
`graftmt.families`. `registry` finds them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from graftmt.interop.importing.foreign_settings import Settings
from graftmt.interop.importing.weights import Weights, find_weights
from graftmt.model import ModelConfig
from graftmt.text import BaseText

Names: TypeAlias = Mapping[str, tuple[str, ...]]
"""Our parameter → the names under which a model may have it. Where it has several, they are copies."""


@dataclass(frozen=True, kw_only=True)
class ForeignFolder:
    """The folder of a foreign model, with its configuration read."""

    path: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    """config.json; empty where there is none."""
    tokenizer_settings: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    """What its publisher calls it: an id of Hugging Face, or the folder's name."""
    source_languages: tuple[str, ...] = ()
    target_languages: tuple[str, ...] = ()
    """What the user says of its languages, for models whose files do not."""

    @property
    def config(self) -> Settings:
        return Settings(self.settings, self.path / "config.json")

    @property
    def model_type(self) -> str:
        found = self.settings.get("model_type")
        return found if isinstance(found, str) else ""


class Family(ABC):
    """Foreign models that are built alike."""

    name: ClassVar[str]
    """As --family spells it."""
    title: ClassVar[str]
    """As people call it."""

    @abstractmethod
    def recognises(self, folder: ForeignFolder) -> bool:
        """Whether the model in this folder is of this family. No two families recognise the same."""

    @abstractmethod
    def architecture(self, folder: ForeignFolder, weights: Weights) -> ModelConfig:
        """The model in our terms, without its padding row; what we cannot represent is a CheckpointError with the reason."""

    @abstractmethod
    def names(self, config: ModelConfig, weights: Weights) -> Names:
        """Where each of our parameters comes from."""

    @abstractmethod
    def text(self, folder: ForeignFolder, weights: Weights, rows: tuple[int, int]) -> BaseText:
        """Its text, for matrices with these numbers of rows (source, target)."""

    def weights(self, folder: ForeignFolder) -> Weights:
        """Its weights. Default: as transformers saves them."""
        return find_weights(folder.path)

    def unused(self) -> Sequence[str]:
        """Patterns (of fnmatch) for tensors that hold nothing which was learned, such as tables of positions."""
        return ()

    def facts(self, folder: ForeignFolder) -> Mapping[str, str]:
        """What the base's card says of it besides."""
        return {}
