"""What a format to export to is: the base class of all targets, and the request that they answer. Layer 5."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from graftmt.interop.export.plain_model import PlainModel
from graftmt.packs import Composition


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """What stands around the text of one direction, as rows of the matrices."""

    source: str
    target: str
    source_prefix: tuple[int, ...]
    source_suffix: tuple[int, ...]
    decoder_prefix: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.source}-{self.target}"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A model, and the directions for which it is exported."""

    composition: Composition
    model: PlainModel
    directions: tuple[Sentences, ...]
    quantization: str
    description: Mapping[str, str]
    """For the card: base, packs, licences …"""


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
    def problems(self, job: Job) -> Sequence[str]:
        """Why this format cannot hold a model, each reason with what to do instead; none where it can."""

    @abstractmethod
    def write(self, job: Job, folder: Path) -> None:
        """All files of the exported folder, which is new and empty."""
