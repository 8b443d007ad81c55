"""What can be asked of `graftmt evaluate`, declared once: Python and the command line read the same fields. Layer 5.

Light to import: `graftmt evaluate --help` waits for no model.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from graftmt.errors import ConfigError
from graftmt.options import option
from graftmt.translation_options import RUN, TEXT, WayOptions

SCORES = "Scores"


@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """What is scored of each direction, and how; the same for a model in memory."""

    lines: int | None = option("--lines", "-n", default=None, group=TEXT, least=1)
    """Only the first N lines"""
    through: str | None = option("--through", default=None, group=TEXT, metavar="LANG")
    """Translate through this language, in two steps"""
    tokenize: str | None = option("--tokenize", default=None, group=SCORES, metavar="NAME")
    """BLEU's tokeniser: 13a, zh, spm:PATH, … (default: by language)"""
    pivot: str = option("--pivot", default="en", group=SCORES, metavar="LANG")
    """Language that averages are grouped by"""
    new: tuple[str, ...] | None = option("--new", default=None, group=SCORES, commas=True, metavar="LANGS")
    """New languages of the averages (default: the packs')"""
    desegment: bool | None = option("--desegment/--no-desegment", default=None, group=SCORES)
    """Remove spaces between Chinese characters first (default: if the corpus was segmented)"""
    off_target: bool = option("--off-target/--no-off-target", default=True, group=SCORES)
    """Count translations in the wrong language (default: yes)"""
    output: Path | None = option("--output", "-o", default=None, group=RUN, metavar="FOLDER")
    """Keep report, heat-maps and translations here"""
    fresh: bool = option("--fresh", default=False, group=RUN)
    """Translate again what the folder has already"""

    def __post_init__(self) -> None:
        if self.fresh and self.output is None:
            raise ConfigError(
                "--fresh starts over in the folder of an evaluation, and none was named: without one nothing is kept. Name it "
                "(-o), or leave --fresh out."
            )

    def scoring(self) -> dict[str, Any]:
        """These fields alone, for another class that has them."""
        return {field.name: getattr(self, field.name) for field in fields(ScoringOptions)}


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(ScoringOptions, WayOptions):
    """What `graftmt evaluate` can be asked for."""

    corpus: Path = option("--corpus", "-c", group=TEXT, metavar="FOLDER")
    """Line-aligned text: test.en.txt, test.fr.txt, …"""
    directions: str = option("--directions", "-d", default="english-centric", group=TEXT, metavar="SET")
    """english-centric, multi-parallel, to-en, from-en, or a list: en-fr,fr-en (default: english-centric)"""
    split: str = option("--split", default="test", group=TEXT, metavar="NAME")
    """Files of the folder to take"""
