"""What a format to export to is: the base class of all targets, and the job that they are given. Layer 5."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from graftmt.interop.export.plain_model import PlainModel
from graftmt.packs import Composition


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """What stands around the text of one direction, as rows of the matrices."""

    source: str
    target: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    decoder: tuple[int, ...]
    """What the decoder starts from."""

    @property
    def name(self) -> str:
        return f"{self.source}-{self.target}"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A model, the directions that it is exported for, and what is known of it."""

    composition: Composition
    model: PlainModel
    directions: tuple[Sentences, ...]
    quantization: str
    provenance: Mapping[str, Any]
    """Fingerprints of base and packs, recipes; plain JSON."""
    example: str
    """A line in the first direction's source language."""


class ExportTarget(ABC):
    """A format of another program. A subclass is one file in `targets/`, or of another package."""

    name: ClassVar[str]
    """How it is written after `--to`."""
    title: ClassVar[str]
    """The program's own name."""
    quantizations: ClassVar[tuple[str, ...]]
    """The types in which weights can be stored; the first is the default."""
    one_direction: ClassVar[bool] = False
    """Whether a folder holds one direction only."""

    @abstractmethod
    def problem(self, job: Job) -> str:
        """Why this format cannot hold a model, and what to do instead; "" where it can."""

    @abstractmethod
    def write(self, job: Job, folder: Path) -> Mapping[str, Any]:
        """The model's files, in a folder that is new and empty; returns what export.json says besides."""

    @abstractmethod
    def usage(self, job: Job, about: Mapping[str, Any]) -> Sequence[str]:
        """Markdown lines of README.md: how the model is loaded, with which packages."""
