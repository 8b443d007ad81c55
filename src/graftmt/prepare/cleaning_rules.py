"""The rules of cleaning by name: which of them apply, their limits, and counts of what each did. Layer 4."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from graftmt.errors import ConfigError, nearest
from graftmt.options import not_an_option, option
from graftmt.prepare.repairs import Normalisation

REPAIRS = ("encoding", "control_characters", "markup", "normalisation", "whitespace")
DROPS = ("invalid", "empty", "too_long", "copies", "placeholders", "length_ratio", "scripts", "language_id", "duplicates")
RULES = (*REPAIRS, *DROPS)
"""In the order in which they apply; a text is dropped by the first rule that finds something."""
ALONE = "alone"
"""No rule, but a reason: a text is good, and nothing is left on its line to go with it."""
LIMITS, DETECTION = "Limits", "Language detection"


@dataclass(frozen=True, kw_only=True)
class CleaningConfig:
    """Which rules apply, each by its own field, and their limits."""

    normalisation: Normalisation = option("--normalise", default="NFC", group=LIMITS, metavar="FORM")
    """Unicode normalisation: none, NFC or NFKC"""
    longest_characters: int = option("--max-length", default=1_000, group=LIMITS, least=1)
    """Most characters of a text"""
    longest_words: int = option("--max-words", default=200, group=LIMITS, least=1)
    """Most words of a text"""
    largest_ratio: float = option("--max-ratio", default=3.0, group=LIMITS, least=1)
    """Longest by shortest text of a line, at most"""
    largest_foreign_share: float = option("--max-foreign", default=0.5, group=LIMITS, least=0, most=1)
    """Largest share of letters in another script"""
    reference: str = option("--reference", default="", group=LIMITS, metavar="LANG")
    """Copies are copies of this (default: English, or the first)"""

    language_id: bool = option("--language-id/--no-language-id", default=True, group=DETECTION)
    """Drop texts that are clearly in another language (default: yes)"""
    open_set: bool = option("--open-set", default=False, group=DETECTION)
    """Consider every language that the detector knows"""
    candidates: tuple[str, ...] = option("--candidates", default=(), group=DETECTION, commas=True, metavar="LANGS")
    """More languages that wrong texts may be in"""
    margin: float | None = option("--margin", default=None, group=DETECTION)
    """By how much another language must win, in log-odds per √byte (default: learnt from the corpus, 0 to 4.5)"""

    encoding: bool = not_an_option(True)
    """Repair: texts in UTF-8 that were read as Latin-1 or Windows-1252 on the way."""
    control_characters: bool = not_an_option(True)
    """Repair: control characters, soft hyphens, byte order marks and code points that are no characters are taken out."""
    markup: bool = not_an_option(True)
    """Repair: HTML tags are taken out, and entities become the characters they stand for."""
    whitespace: bool = not_an_option(True)
    """Repair: white space of any kind becomes one plain space."""
    invalid: bool = not_an_option(True)
    """Drop texts with U+FFFD, where characters were lost, or with code points that cannot be written."""
    empty: bool = not_an_option(True)
    """Drop lines with fewer than two texts left. Without this and `duplicates`, line i stays line i."""
    too_long: bool = not_an_option(True)
    """Drop texts longer than one of the two limits."""
    copies: bool = not_an_option(True)
    """Drop texts with letters that are the same as the reference's, but for case."""
    placeholders: bool = not_an_option(True)
    """Drop texts that have other placeholders (%s, {name}) or web addresses than the reference's."""
    length_ratio: bool = not_an_option(True)
    """Drop texts that are too long or too short: of two, compared with each other, of more, with the line's median. Lengths
    are in Latin letters' worth: a Chinese character counts as three."""
    scripts: bool = not_an_option(True)
    """Drop texts with too many letters in scripts that the language is not written in."""
    duplicates: bool = not_an_option(True)
    """Drop lines that are the same as one before in all languages, after the repairs."""

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


EXAMPLES = 5
EXAMPLE_LENGTH = 200


@dataclass
class Counts:
    """What happened to some lines. Texts read = texts kept + texts dropped, in each language."""

    lines: Counter[str] = field(default_factory=Counter)
    """read, kept, and dropped for a reason: `alone` or `duplicates`."""
    read: Counter[str] = field(default_factory=Counter)
    """Texts by language; so are all below."""
    kept: Counter[str] = field(default_factory=Counter)
    repaired: dict[str, Counter[str]] = field(default_factory=dict)
    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    examples: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """rule → the first few texts it changed or dropped."""

    def repair(self, rule: str, language: str, before: str, after: str) -> None:
        self.repaired.setdefault(rule, Counter())[language] += 1
        self._example(rule, {"language": language, "text": before, "becomes": after})

    def drop(self, rule: str, language: str, text: str, why: str = "") -> None:
        self.dropped.setdefault(rule, Counter())[language] += 1
        self._example(rule, {"language": language, "text": text, **({"why": why} if why else {})})

    def _example(self, rule: str, example: dict[str, str]) -> None:
        examples = self.examples.setdefault(rule, [])
        if len(examples) < EXAMPLES:
            examples.append({key: printable(value) for key, value in example.items()})

    def add(self, other: Counts) -> None:
        """Counts of the chunk that follows."""
        for mine, theirs in ((self.lines, other.lines), (self.read, other.read), (self.kept, other.kept)):
            mine.update(theirs)
        for rules, others in ((self.repaired, other.repaired), (self.dropped, other.dropped)):
            for rule, counter in others.items():
                rules.setdefault(rule, Counter()).update(counter)
        for rule, examples in other.examples.items():
            mine_of_rule = self.examples.setdefault(rule, [])
            mine_of_rule += examples[: EXAMPLES - len(mine_of_rule)]


def printable(text: str) -> str:
    """For a report: cut where it is long, and with escapes for what cannot be seen or written."""
    cut = text if len(text) <= EXAMPLE_LENGTH else text[:EXAMPLE_LENGTH] + "…"
    hidden = (c if c.isprintable() or unicodedata.category(c) == "Cf" else c.encode("unicode_escape").decode() for c in cut)
    return "".join(hidden)
