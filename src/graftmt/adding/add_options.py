"""What can be asked of `graftmt add`, declared once: Python and the command line read the same fields. Layer 6.

Light to import: `graftmt add --help` waits for no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graftmt.configuration import check_numbers, check_seed, one_or_more
from graftmt.errors import ConfigError
from graftmt.options import argument, option
from graftmt.text.languages import check_language_names

Sides = Literal["source", "target", "both"]

LONGEST_FACT = 200
"""Characters of what a card says in a line."""

_TEXT, _PACK, _TRAINING, _RUN = "Text", "Pack", "Training", "Folders"


@dataclass(frozen=True, kw_only=True)
class AddOptions:
    """A request to add one or several languages to a base."""

    languages: tuple[str, ...] = argument(commas=True, metavar="LANG")
    """The new language, such as el; several in one pack: el,uk"""
    overrides: tuple[str, ...] = argument(default=(), metavar="KEY=VALUE...")
    """Changes to the training, such as stages.0.dropout=0.3"""

    base: Path = option("--base", "-b", group=_PACK, metavar="PATH")
    """Folder of the base"""
    side: Sides | None = option("--side", group=_PACK, default=None, metavar="SIDE")
    """source (read it), target (write it), both (default)"""
    recipe: str | None = option("--recipe", "-r", group=_PACK, default=None, metavar="RECIPE")
    """What to train; see `graftmt recipes`"""
    merges: int | None = option("--merges", group=_PACK, default=None, least=1, metavar="N")
    """BPE merges per language (default: 4000)"""
    parent: Path | None = option("--continue", group=_PACK, default=None, metavar="PACK")
    """Train this pack further instead of a new one"""
    licence: str | None = option("--licence", "--license", group=_PACK, default=None, metavar="NAME")
    """Licence of the pack, such as cc-by-4.0, for its card"""
    author: str | None = option("--author", group=_PACK, default=None, metavar="NAME")
    """Who made the pack, for its card"""
    codes_from: Path | None = option("--codes-from", group=_PACK, default=None, metavar="PATH")
    """Model to read the code of code:proxy:nearest from"""

    train: tuple[str, ...] = option("--train", group=_TEXT, metavar="TEXT")
    """Corpus folder, table, TMX, …, or LANG=FILE; repeatable"""
    partners: tuple[str, ...] | None = option("--with", group=_TEXT, default=None, commas=True, metavar="LANGS")
    """The base's languages to pair with: en,fr or all"""
    valid: tuple[str, ...] = option("--valid", group=_TEXT, default=(), metavar="TEXT")
    """Validation text (default: held out of --train)"""
    test: tuple[str, ...] = option("--test", group=_TEXT, default=(), metavar="TEXT")
    """Text for the verdict (default: validation text)"""
    augment: str | None = option("--augment", group=_TEXT, default=None, metavar="SPEC")
    """Lines in other languages: 1k-bt, 1k, none, …"""
    teacher: Path | None = option("--teacher", group=_TEXT, default=None, metavar="PATH")
    """Base that back-translates (default: --base)"""
    force: bool = option("--force", group=_TEXT, default=False)
    """Train even on text that looks misaligned"""

    steps: int | None = option("--steps", group=_TRAINING, default=None, least=1, metavar="N")
    """Updates (default: 12 or 20 passes over the text)"""
    minutes: float | None = option("--minutes", group=_TRAINING, default=None, least=0, metavar="N")
    """Stop cleanly after N minutes; rerun to resume"""
    seed: int = option("--seed", group=_TRAINING, default=1, least=0, metavar="N")
    """Seed of first values, batches and dropout"""
    device: str = option("--device", group=_TRAINING, default="auto", metavar="NAME")
    """cpu, cuda, cuda:1 or auto"""
    base_precision: Literal["fp32", "bf16"] = option("--base-dtype", group=_TRAINING, default="fp32", metavar="TYPE")
    """How the base is held: fp32, or bf16 on a GPU"""
    test_lines: int = option("--lines", group=_TRAINING, default=200, least=1, metavar="N")
    """Lines per direction for the verdict"""
    beam: int = option("--beam", group=_TRAINING, default=5, metavar="N")
    """Beam size for the verdict"""

    run: Path | None = option("--run", group=_RUN, default=None, metavar="FOLDER")
    """Folder of the run (default: runs/LANG-SIDE)"""
    output: Path | None = option("--output", "-o", group=_RUN, default=None, metavar="PATH")
    """Also store the pack here: a folder or X.graftpack"""
    fresh: bool = option("--fresh", group=_RUN, default=False)
    """Start over; an earlier run is moved aside"""
    dry_run: bool = option("--dry-run", group=_RUN, default=False)
    """Examine the text and estimate; train nothing"""

    def __post_init__(self) -> None:
        check_language_names(self.languages, "the languages to add")
        check_seed(self)
        for name in ("licence", "author"):
            value = getattr(self, name)
            if value is not None and (not value.strip() or not value.isprintable() or len(value) > LONGEST_FACT):
                raise ConfigError(f"--{name} is a line of 1 to {LONGEST_FACT} characters; got {value[:LONGEST_FACT]!r}.")
        check_numbers(self, "at least 1", one_or_more, "steps", "merges", "test_lines", "beam")
