"""What can be asked of an augmentation. Layer 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graftmt.augmentation.engines import LOCAL, Engine
from graftmt.engines import Engine as SearchEngine
from graftmt.errors import ConfigError, LanguageError
from graftmt.text.languages import check_language_names

CHUNK_LINES = 512
"""Lines of a chunk: what a kill can cost, and what one batch is made from."""


@dataclass(frozen=True, kw_only=True)
class AugmentOptions:
    """What `graftmt augment` can be asked for."""

    new: tuple[str, ...]
    base: Path
    spec: str
    output: Path
    train: tuple[str, ...] = ()
    """A corpus folder, or a file for each language: LANG=FILE, or one like `data.el.txt`."""
    languages: tuple[str, ...] | None = None
    """Of the base, to be paired with; all but the pivot unless given."""
    pivot: str | None = None
    """What the new text is paired with already: English, or the only language of the base that the corpus has."""
    teacher: Path | None = None
    """A base that translates instead of `base`."""
    packs: Mapping[str, Path] | Sequence[Path] = ()
    """For the teacher."""
    beam: int = 1
    seed: int = 1
    keep_copies: bool = False
    keep_duplicates: bool = False
    chunk_lines: int = CHUNK_LINES
    batch_tokens: int = 0
    device: str = "auto"
    dtype: str = "fp32"
    engine: Engine = LOCAL
    """Who does the work: this process, or a cluster."""
    search: SearchEngine | None = None
    """What searches for translations, where it is not graftmt itself."""
    minutes: float | None = None
    """After so many, what is translated is kept and `Stopped` is raised."""
    fresh: bool = False

    def __post_init__(self) -> None:
        if self.chunk_lines < 1:
            raise ConfigError(f"chunk_lines is {self.chunk_lines}; at least 1 is needed.")
        if not self.new or len(set(self.new)) < len(self.new):
            raise LanguageError(f"new languages: got {', '.join(self.new) or 'none'}; expected one or several, each once.")
        check_language_names(self.new, "new languages")

    @property
    def work(self) -> Path:
        """Beside the output, which is replaced as a whole when it is ready."""
        return self.output.with_name(f"{self.output.name}.work")
