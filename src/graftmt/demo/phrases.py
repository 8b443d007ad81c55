"""The demo's phrases: templates that join slots with neutral punctuation, and their text in any language.
Above `slots`, below `corpus`; every word comes from CLDR."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from graftmt.demo.inventory import Inventory
from graftmt.demo.slots import KINDS, Slot, say_slot


class Phrase(NamedTuple):
    """A template's name and its slots in order: the same in every language."""

    template: str
    slots: tuple[Slot, ...]


@dataclass(frozen=True, kw_only=True)
class Template:
    """Slot kinds and the punctuation around them; `weight` is how often it is drawn, relative to the others."""

    pattern: str
    kinds: tuple[str, ...]
    weight: float

    @property
    def combined(self) -> bool:
        return len(self.kinds) > 1


def draw_phrase(source: random.Random, inventory: Inventory) -> Phrase:
    """One phrase; a seeded source makes it the same on every machine."""
    template = source.choices(_TEMPLATE_NAMES, cum_weights=_CUMULATIVE_WEIGHTS)[0]
    slots = tuple(KINDS[kind].draw(source, inventory, kind) for kind in TEMPLATES[template].kinds)
    return Phrase(template, slots)


def render(phrase: Phrase, language: str) -> str:
    """The phrase in one language, on one line, with plain spaces."""
    text = TEMPLATES[phrase.template].pattern.format(*(say_slot(slot, language) for slot in phrase.slots))
    return " ".join(text.split())


# A template of one kind has that kind's name; the others are named by what they are like.
_SINGLE_WEIGHTS = {
    "territory": 0.2, "territories": 3, "territories_or": 1.5, "language": 0.1, "languages": 2.5, "languages_or": 1.5,
    "city": 0.1, "cities": 2.5, "cities_or": 1.5, "currencies": 1.5, "weekdays": 0.5, "weekdays_or": 0.3,
    "months": 0.8, "money": 3, "quantity": 3, "quantities": 3, "rate": 2, "compact": 0.6, "relative": 1,
    "date_full": 3, "date_long": 1.5, "date_medium": 0.8, "date_short_names": 1.5, "day_and_month": 0.3,
    "month_and_year": 0.8, "quarter": 0.3, "interval": 1.5, "interval_weekdays": 1.5, "interval_months": 1,
    "date_and_time": 2,
}  # fmt: skip

# No interval stands next to a dash, as intervals have one of their own.
_COMBINED = {
    "meeting": ("{}: {}; {}", "cities date_full quantity"),
    "lesson": ("{} – {} – {}", "languages_or relative money"),
    "census": ("{} ({}): {}", "territories month_and_year compact"),
    "route": ("{} – {}: {}; {}", "city city quantity rate"),
    "receipt": ("{}: {} / {}", "date_full money quantity"),
    "edition": ("{} ({}): {}", "language territory relative"),
    "translation": ("{} ({}) / {} ({})", "language territory language territory"),
    "trade": ("{}: {}; {}", "territory money quantities"),
    "appointment": ("{}: {}", "city date_and_time"),
    "broadcast": ("{} ({}): {}", "date_and_time zone cities"),
    "clock": ("{} – {} ({})", "time city territory"),
    "time_zones": ("{} ({}) / {} ({})", "time zone time zone"),
    "course": ("{}: {}; {}", "weekdays_or quantities money"),
    "tour": ("{}: {}", "interval territories"),
    "stay": ("{} ({}): {}", "interval_weekdays city money"),
    "news": ("{}: {}; {}", "relative languages cities"),
    "measurement": ("{} – {} – {}", "quantity rate relative"),
    "exchange": ("{}: {} – {}", "currencies date_long relative"),
    "choice": ("{} ({}); {}", "territories_or relative quantity"),
    "comparison": ("{} ({}); {} ({})", "compact territory compact territory"),
    "price": ("{}: {}", "quantities money"),
    "season": ("{} – {} – {}", "months territories quantity"),
    "plan": ("{}: {}; {}", "interval_months languages_or rate"),
    "budget": ("{}: {} / {}", "quarter money money"),
    "reminder": ("{} – {} – {}", "date_short_names time cities_or"),
    "holiday": ("{} ({}): {}", "day_and_month territories_or languages"),
}
_COMBINED_WEIGHT = 2.2

TEMPLATES: dict[str, Template] = {
    **{kind: Template(pattern="{}", kinds=(kind,), weight=weight) for kind, weight in _SINGLE_WEIGHTS.items()},
    **{
        name: Template(pattern=pattern, kinds=tuple(kinds.split()), weight=_COMBINED_WEIGHT)
        for name, (pattern, kinds) in _COMBINED.items()
    },
}
_TEMPLATE_NAMES = tuple(TEMPLATES)
_CUMULATIVE_WEIGHTS = tuple(accumulate(template.weight for template in TEMPLATES.values()))
