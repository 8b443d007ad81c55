"""What cleaning did to some lines: counts by rule and language, and a few examples. Layer 4."""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass, field

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
