"""What can be asked of a cleaning next to its rules' limits, declared once. Layer 4.

Light to import: `graftmt prepare clean --help` waits for no model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from graftmt.errors import ConfigError
from graftmt.options import argument, option
from graftmt.prepare.cleaning_rules import CleaningConfig

RUN = "Running"


@dataclass(frozen=True, kw_only=True)
class CleanOptions:
    """Which corpus to clean, by which rules, and where."""

    corpus: Path = argument(metavar="CORPUS")
    """Folder of train.en.txt, train.fr.txt, … of the same lines"""
    splits: tuple[str, ...] = option("--split", default=("train",), commas=True, group="Corpus", metavar="NAMES")
    """Splits to clean (default: train); others are copied"""
    trusted: tuple[str, ...] = option("--trusted", default=(), group="Language detection", metavar="LANG=FILE")
    """Text to learn a language from; repeatable"""
    rules: tuple[str, ...] = option("--rules", default=(), commas=True, group="Corpus", metavar="RULES")
    """Rules to apply, or all but these: --rules=-copies,-scripts"""
    force: bool = option("--force", default=False, group="Corpus")
    """Clean even misaligned text, or text in another language"""
    output: Path | None = option("--output", "-o", default=None, group="Corpus", metavar="FOLDER")
    """Folder for the clean corpus and report.json"""
    preview: bool = option("--preview", default=False, group="Corpus")
    """Write nothing: show what the rules would do"""
    processes: int | None = option("--processes", default=None, group=RUN, least=1, most=1024)
    """Processes, or workers of the cluster (default: 1, or all)"""
    engine: Literal["local", "ray"] = option("--engine", default="local", group=RUN)
    """This machine, or the workers of a Ray cluster"""
    ray_address: str | None = option("--ray-address", default=None, group=RUN, metavar="HOST")
    """A running cluster (default: one on this machine)"""

    def __post_init__(self) -> None:
        if self.output is None and not self.preview:
            raise ConfigError("where should the clean corpus go? Give --output FOLDER, or --preview to see what would be done.")
        _ = self.trusted_files

    def applied_to(self, config: CleaningConfig) -> CleaningConfig:
        """The limits, with the rules that were named."""
        chosen = config.with_rules(self.rules) if self.rules else config
        return chosen if config.language_id else replace(chosen, language_id=False)

    @property
    def trusted_files(self) -> dict[str, Path]:
        """LANG=FILE of each."""
        files: dict[str, Path] = {}
        for value in self.trusted:
            language, equals, path = value.partition("=")
            if not equals or not language or not path:
                raise ConfigError(f"--trusted: {value!r} is not LANG=FILE, such as szl=silesian.txt.")
            if language in files:
                raise ConfigError(f"--trusted: {language!r} is given twice; put its text into one file.")
            files[language] = Path(path)
        return files
