"""What can be asked of `graftmt import`, declared once: Python and the command line read the same fields. Layer 5.

Light to import: `graftmt import --help` waits for no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graftmt.options import argument, option
from graftmt.text.languages import check_language_names

_MODEL, _BASE = "Model", "Base"


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """A foreign model to make a base of."""

    source: str = argument(metavar="SOURCE")
    """An id of Hugging Face, a folder, or a fairseq checkpoint"""

    output: Path = option("--output", "-o", group=_BASE, metavar="FOLDER")
    """Folder of the new base"""
    dtype: Literal["fp32", "bf16", "fp16"] | None = option("--dtype", group=_BASE, default=None, metavar="TYPE")
    """Store as fp32, bf16 or fp16 (default: as it is)"""
    name: str | None = option("--name", group=_BASE, default=None, metavar="NAME")
    """What the card calls it (default: its id or folder)"""
    licence: str | None = option("--licence", "--license", group=_BASE, default=None, metavar="NAME")
    """Its licence, if its own card does not name it"""

    revision: str | None = option("--revision", group=_MODEL, default=None, metavar="REV")
    """Branch, tag or commit on Hugging Face"""
    family: str | None = option("--family", group=_MODEL, default=None, metavar="NAME")
    """How it is built, if its files do not say"""
    source_languages: tuple[str, ...] = option("--from", group=_MODEL, default=(), commas=True, metavar="LANGS")
    """Languages it reads, with commas, if its files do not say"""
    target_languages: tuple[str, ...] = option("--to", group=_MODEL, default=(), commas=True, metavar="LANGS")
    """Languages it writes, with commas, if its files do not say"""

    def __post_init__(self) -> None:
        check_language_names(self.source_languages, "--from")
        check_language_names(self.target_languages, "--to")
