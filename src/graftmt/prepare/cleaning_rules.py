"""The rules of cleaning by name, which of them apply, and their limits. Layer 4."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, get_args

from graftmt.errors import ConfigError, nearest
from graftmt.prepare.repairs import Normalisation

REPAIRS = ("encoding", "control_characters", "markup", "normalisation", "whitespace")
DROPS = ("invalid", "empty", "too_long", "copies", "placeholders", "length_ratio", "scripts", "language_id", "duplicates")
RULES = (*REPAIRS, *DROPS)
"""In the order in which they apply; a text is dropped by the first rule that finds something."""
ALONE = "alone"
"""No rule, but a reason: a text is good, and nothing is left on its line to go with it."""


@dataclass(frozen=True, kw_only=True)
class CleaningConfig:
    """Which rules apply, each by its own field, and their limits."""

    encoding: bool = True
    """Repair: texts in UTF-8 that were read as Latin-1 or Windows-1252 on the way."""
    control_characters: bool = True
    """Repair: control characters, soft hyphens, byte order marks and code points that are no characters are taken out."""
    markup: bool = True
    """Repair: HTML tags are taken out, and entities become the characters they stand for."""
    normalisation: Normalisation = "NFC"
    """Repair: none, NFC, or NFKC; placeholders and numbers stay as they are."""
    whitespace: bool = True
    """Repair: white space of any kind becomes one plain space."""
    invalid: bool = True
    """Drop texts with U+FFFD, where characters were lost, or with code points that cannot be written."""
    empty: bool = True
    """Drop lines with fewer than two texts left. Without this and `duplicates`, line i stays line i."""
    too_long: bool = True
    """Drop texts longer than one of the two limits."""
    longest_characters: int = 1_000
    longest_words: int = 200
    copies: bool = True
    """Drop texts with letters that are the same as the reference's, but for case."""
    placeholders: bool = True
    """Drop texts that have other placeholders (%s, {name}) or web addresses than the reference's."""
    length_ratio: bool = True
    """Drop texts that are too long or too short: of two, compared with each other, of more, with the line's median."""
    largest_ratio: float = 3.0
    """Of lengths in Latin letters' worth: a Chinese character counts as three."""
    scripts: bool = True
    """Drop texts with too many letters in scripts that the language is not written in."""
    largest_foreign_share: float = 0.5
    language_id: bool = True
    """Drop texts where another language wins clearly."""
    open_set: bool = False
    """The detector may find any language it knows, instead of the corpus's own and likely ones."""
    candidates: tuple[str, ...] = ()
    """Languages that wrong texts may be in, beside the corpus's own; likely ones where the corpus has one or two."""
    margin: float | None = None
    """By how much another language must win: log-odds per √byte. None: learnt from the corpus, 0 to 4.5."""
    duplicates: bool = True
    """Drop lines that are the same as one before in all languages, after the repairs."""
    reference: str = ""
    """The language that copies are copies of; English where there is any, or else the first."""

    def __post_init__(self) -> None:
        if self.normalisation not in get_args(Normalisation):
            raise ConfigError(
                f"normalisation is {self.normalisation!r}; expected one of: {', '.join(get_args(Normalisation))}."
            )
        for name in ("longest_characters", "longest_words"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"{name} is {getattr(self, name)}; expected 1 or more. Turn off the rule too_long to keep all."
                )
        if self.largest_ratio < 1:
            raise ConfigError(f"largest_ratio is {self.largest_ratio}; expected 1 or more: longer text / shorter text.")
        if not 0 <= self.largest_foreign_share <= 1:
            raise ConfigError(f"largest_foreign_share is {self.largest_foreign_share}; expected a share from 0 to 1.")

    def with_rules(self, names: Iterable[str]) -> CleaningConfig:
        """These rules and no others; or, where all names begin with `-`, all but these."""
        names = list(names)
        without = [name.removeprefix("-") for name in names if name.startswith("-")]
        if without and len(without) < len(names):
            raise ConfigError(f"rules {', '.join(names)}: name those to apply, or those to leave out with -, not both.")
        for name in without or names:
            if name not in RULES:
                raise ConfigError(f"there is no rule {name!r}{nearest(name, RULES) or '.'} Rules: {', '.join(RULES)}.")
        chosen = set(RULES) - set(without) if without else set(names)
        changes: dict[str, Any] = {name: name in chosen for name in RULES if name != "normalisation"}
        if "normalisation" not in chosen:
            changes["normalisation"] = "none"
        return replace(self, **changes)
