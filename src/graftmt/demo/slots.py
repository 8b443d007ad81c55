"""The slots of the demo's phrases: language-independent values (which territory, which unit and how many, which day),
how each kind is drawn from a random source and said in a language. Above `inventory`, below `phrases`."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Literal, NamedTuple

from graftmt.demo.inventory import Inventory, load_locale, money_of, name_of, quantity_of

ListStyle = Literal["standard", "or"]


class Slot(NamedTuple):
    """One value to be said. `names` are identities (which territory, unit, month), `numbers` are only copied."""

    kind: str
    names: tuple[str, ...]
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How slots of one kind are drawn and said; kinds of one family share their vocabulary of names."""

    family: str
    draw: Callable[[random.Random, Inventory, str], Slot]
    say: Callable[[Slot, str], str]


# Amounts and dates come back often and Babel takes its time over them; lists seldom do, and age out.
@lru_cache(maxsize=1 << 17)
def say_slot(slot: Slot, language: str) -> str:
    return KINDS[slot.kind].say(slot, language)


# --- names and lists of names -------------------------------------------------------------------------------------


def _names_kind(family: str, *, sizes: tuple[int, ...], style: ListStyle = "standard") -> Kind:
    """One name (size 1), or a list of some: `Berlin, Paris, and Rome`, or with style `or`: `Greek or French`."""

    def draw(source: random.Random, inventory: Inventory, kind: str) -> Slot:
        codes = _CALENDAR_CODES.get(family) or inventory.codes[family]
        return Slot(kind, tuple(source.sample(codes, source.choice(sizes))))

    def say(slot: Slot, language: str) -> str:
        names = [name_of(family, code, language) for code in slot.names]
        return _join([name for name in names if name is not None], style, language)

    return Kind(family=family, draw=draw, say=say)


def _join(texts: list[str], style: ListStyle, language: str) -> str:
    from babel.lists import format_list

    return format_list(texts, style=style, locale=load_locale(language))


_CALENDAR_CODES = {
    "weekday": tuple(str(weekday) for weekday in range(7)),
    "month": tuple(str(month) for month in range(1, 13)),
}


# --- numbers ------------------------------------------------------------------------------------------------------


def _draw_number(source: random.Random) -> str:
    """Mostly small, often enough 1 or 2 to 4 for the plural forms, now and then a decimal or a grouped thousand."""
    shape = source.random()
    if shape < 0.12:
        return "1"
    if shape < 0.30:
        return str(source.randint(2, 4))
    if shape < 0.68:
        return str(source.randint(5, 99))
    if shape < 0.80:
        return str(source.randint(100, 999))
    if shape < 0.88:
        return str(source.randint(10, 999) * 100)
    return f"{source.randint(0, 49)}.{source.randint(1, 9)}"


def _amount_kind(family: str, speak: Callable[[str, str, str], str], *, sizes: tuple[int, ...] = (1,)) -> Kind:
    """A number with a unit or a currency, or a list of such: `5 kilometers and 1.5 liters`."""

    def draw(source: random.Random, inventory: Inventory, kind: str) -> Slot:
        codes = tuple(source.sample(inventory.codes[family], source.choice(sizes)))
        return Slot(kind, codes, tuple(_draw_number(source) for _ in codes))

    def say(slot: Slot, language: str) -> str:
        pairs = zip(slot.names, slot.numbers, strict=True)
        return _join([speak(code, number, language) for code, number in pairs], "standard", language)

    return Kind(family=family, draw=draw, say=say)


def _draw_compact(source: random.Random, inventory: Inventory, kind: str) -> Slot:
    # From 2 up: Babel gives `1 millions` in French.
    magnitude = source.choice(("3", "6", "12"))
    decimal = f".{source.randint(1, 9)}" if magnitude != "3" and source.random() < 0.25 else ""
    return Slot(kind, (magnitude,), (f"{source.randint(2, 99)}{decimal}",))


def _say_compact(slot: Slot, language: str) -> str:
    from babel.numbers import format_compact_decimal

    locale = load_locale(language)
    number = Decimal(slot.numbers[0]).scaleb(int(slot.names[0]))
    # Chinese, Japanese and Korean write the words in the short form and have no long one.
    length: Literal["long", "short"] = "long" if "long" in locale.compact_decimal_formats else "short"
    return format_compact_decimal(number, format_type=length, locale=locale, fraction_digits=1)


class _RelativeUnit(NamedTuple):
    """A unit of time, its length, and the most of it that is drawn."""

    granularity: Literal["year", "month", "week", "day", "hour", "minute", "second"]
    length: datetime.timedelta
    most: int


_RELATIVE_UNITS = (
    _RelativeUnit("year", datetime.timedelta(days=365), 60),
    _RelativeUnit("month", datetime.timedelta(days=30), 30),
    _RelativeUnit("week", datetime.timedelta(weeks=1), 40),
    _RelativeUnit("day", datetime.timedelta(days=1), 90),
    _RelativeUnit("hour", datetime.timedelta(hours=1), 60),
    _RelativeUnit("minute", datetime.timedelta(minutes=1), 90),
    _RelativeUnit("second", datetime.timedelta(seconds=1), 90),
)
_RELATIVE_SLOTS = {f"{sign}{unit.granularity}": (sign, unit) for unit in _RELATIVE_UNITS for sign in "+-"}


def _draw_relative(source: random.Random, inventory: Inventory, kind: str) -> Slot:
    name = source.choice(tuple(_RELATIVE_SLOTS))
    # Half of them small, for the plural forms.
    most = source.choice((5, _RELATIVE_SLOTS[name][1].most))
    return Slot(kind, (name,), (str(source.randint(1, most)),))


def _say_relative(slot: Slot, language: str) -> str:
    from babel.dates import format_timedelta

    sign, unit = _RELATIVE_SLOTS[slot.names[0]]
    length = int(slot.numbers[0]) * unit.length
    # A threshold no number reaches keeps Babel from turning 14 days into 2 weeks.
    return format_timedelta(
        length if sign == "+" else -length,
        granularity=unit.granularity,
        threshold=1e9,
        add_direction=True,
        locale=load_locale(language),
    )


# --- dates and times ----------------------------------------------------------------------------------------------

_FIRST_YEAR, _LAST_YEAR = 1950, 2049


def _draw_day(source: random.Random) -> datetime.date:
    first = datetime.date(_FIRST_YEAR, 1, 1)
    return first + datetime.timedelta(days=source.randrange((datetime.date(_LAST_YEAR, 12, 31) - first).days))


def _date_kind(name: str, shows: str, speak: Callable[[datetime.date, str], str]) -> Kind:
    """A date in one format; `shows` says which of weekday, month and quarter the text names."""

    def draw(source: random.Random, inventory: Inventory, kind: str) -> Slot:
        day = _draw_day(source)
        if name == "date_medium":
            day = day.replace(month=source.choice(inventory.medium_months), day=min(day.day, 28))
        return Slot(kind, _calendar_names(day, shows), (day.isoformat(),))

    def say(slot: Slot, language: str) -> str:
        return speak(datetime.date.fromisoformat(slot.numbers[0]), language)

    return Kind(family=name, draw=draw, say=say)


def _calendar_names(day: datetime.date, shows: str) -> tuple[str, ...]:
    values = {"weekday": day.weekday(), "month": day.month, "quarter": (day.month + 2) // 3}
    return tuple(f"{what} {values[what]}" for what in shows.split())


def _speak_format(name: str) -> Callable[[datetime.date, str], str]:
    def speak(day: datetime.date, language: str) -> str:
        from babel.dates import format_date

        return format_date(day, name, locale=load_locale(language))

    return speak


def _speak_skeleton(skeleton: str) -> Callable[[datetime.date, str], str]:
    def speak(day: datetime.date, language: str) -> str:
        from babel.dates import format_skeleton

        return format_skeleton(skeleton, datetime.datetime(day.year, day.month, day.day), locale=load_locale(language))

    return speak


def _interval_kind(name: str, skeleton: str, shows: str) -> Kind:
    """Two days, of the same month, of two months, or of two years: `Mar 5 – 14, 2024`."""

    def draw(source: random.Random, inventory: Inventory, kind: str) -> Slot:
        first = _draw_day(source)
        last = first + datetime.timedelta(days=source.choice((source.randint(1, 20), source.randint(32, 200))))
        if skeleton == "yMMMM":
            last = first + datetime.timedelta(days=source.randint(32, 400))
        span = "one year" if first.year == last.year else "two years"
        names = (*_calendar_names(first, shows), *_calendar_names(last, shows), span)
        return Slot(kind, names, (first.isoformat(), last.isoformat()))

    def say(slot: Slot, language: str) -> str:
        from babel.dates import format_interval

        first, last = (datetime.date.fromisoformat(number) for number in slot.numbers)
        return format_interval(first, last, skeleton=skeleton, locale=load_locale(language))

    return Kind(family=name, draw=draw, say=say)


def _draw_time(source: random.Random, inventory: Inventory, kind: str) -> Slot:
    hour, minute = source.randrange(24), source.choice((0, 15, 30, 45, source.randrange(60), source.randrange(60)))
    return Slot(kind, ("before noon" if hour < 12 else "after noon",), (f"{hour:02}:{minute:02}",))


def _say_time(slot: Slot, language: str) -> str:
    from babel.dates import format_time

    return format_time(datetime.time.fromisoformat(slot.numbers[-1]), "short", locale=load_locale(language))


def _draw_date_and_time(source: random.Random, inventory: Inventory, kind: str) -> Slot:
    day, time = _draw_day(source), _draw_time(source, inventory, kind)
    return Slot(kind, (*_calendar_names(day, "weekday month"), *time.names), (day.isoformat(), *time.numbers))


def _say_date_and_time(slot: Slot, language: str) -> str:
    pattern = str(load_locale(language).datetime_formats["full"]).replace("'", "")
    day = _speak_format("full")(datetime.date.fromisoformat(slot.numbers[0]), language)
    return pattern.format(_say_time(slot, language), day)


# --- the kinds ----------------------------------------------------------------------------------------------------

KINDS: dict[str, Kind] = {
    "territory": _names_kind("territory", sizes=(1,)),
    "territories": _names_kind("territory", sizes=(2, 3, 4)),
    "territories_or": _names_kind("territory", sizes=(2, 3), style="or"),
    "language": _names_kind("language", sizes=(1,)),
    "languages": _names_kind("language", sizes=(2, 3, 4)),
    "languages_or": _names_kind("language", sizes=(2, 3), style="or"),
    "city": _names_kind("city", sizes=(1,)),
    "cities": _names_kind("city", sizes=(2, 3, 4)),
    "cities_or": _names_kind("city", sizes=(2, 3), style="or"),
    "zone": _names_kind("zone", sizes=(1,)),
    "currencies": _names_kind("currency", sizes=(2, 3)),
    "weekdays": _names_kind("weekday", sizes=(1, 2, 3)),
    "weekdays_or": _names_kind("weekday", sizes=(2, 3), style="or"),
    "months": _names_kind("month", sizes=(1, 2, 3)),
    "money": _amount_kind("currency", money_of),
    "quantity": _amount_kind("unit", quantity_of),
    "quantities": _amount_kind("unit", quantity_of, sizes=(2, 3)),
    "rate": _amount_kind("rate", quantity_of),
    "compact": Kind(family="compact", draw=_draw_compact, say=_say_compact),
    "relative": Kind(family="relative", draw=_draw_relative, say=_say_relative),
    "date_full": _date_kind("date_full", "weekday month", _speak_format("full")),
    "date_long": _date_kind("date_long", "month", _speak_format("long")),
    "date_medium": _date_kind("date_medium", "month", _speak_format("medium")),
    "date_short_names": _date_kind("date_short_names", "weekday month", _speak_skeleton("yMMMEd")),
    "day_and_month": _date_kind("day_and_month", "month", _speak_skeleton("MMMMd")),
    "month_and_year": _date_kind("month_and_year", "month", _speak_skeleton("yMMMM")),
    "quarter": _date_kind("quarter", "quarter", _speak_skeleton("yQQQQ")),
    "interval": _interval_kind("interval", "yMMMd", "month"),
    "interval_weekdays": _interval_kind("interval_weekdays", "yMMMEd", "weekday month"),
    "interval_months": _interval_kind("interval_months", "yMMMM", "month"),
    "time": Kind(family="time", draw=_draw_time, say=_say_time),
    "date_and_time": Kind(family="date_and_time", draw=_draw_date_and_time, say=_say_date_and_time),
}
