"""Which territories, languages, cities, units and currencies the demo corpus speaks of, and their names in CLDR.
Lowest file of the demo: candidates are codes only, and those unnamed or ambiguous in a wanted language fall out."""

from __future__ import annotations

import copy
import datetime
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

from graftmt.errors import DataError, GraftError, LanguageError

if TYPE_CHECKING:
    from babel import Locale

BASE_LANGUAGES = ("en", "fr", "de", "es", "ru")
NEW_LANGUAGES = ("el", "uk")

# Codes, never words: each is followed into CLDR. No cities named like their country in some language (Luxembourg,
# Algiers), no digital units (Greek keeps them in Latin letters), no compact billions (Spanish changes the digits).
CANDIDATES: dict[str, tuple[str, ...]] = {
    family: tuple(codes.split())
    for family, codes in {
        "territory": "FR DE ES RU GR UA IT GB US CN JP IN BR CA MX AR CL PE CO VE EG MA KE NG ET ZA SE NO FI DK IS PL "
        "CZ SK HU RO BG RS HR SI AL EE LV LT BY MD GE AM AZ KZ TR CY IL LB JO SY IQ IR SA TH VN ID KR MN AU NZ IE PT "
        "NL BE CH AT CU MT",
        "language": "en fr de es ru el uk it pt nl sv da fi is pl cs sk hu ro bg sr hr sl sq et lv lt be ga eu ca tr "
        "ar he fa hi ja ko zh vi th mn ka hy la",
        "city": "Europe/Berlin Europe/Paris Europe/Rome Europe/Madrid Europe/London Europe/Moscow Europe/Athens "
        "Europe/Warsaw Europe/Vienna Europe/Prague Europe/Budapest Europe/Bucharest Europe/Sofia Europe/Belgrade "
        "Europe/Lisbon Europe/Dublin Europe/Amsterdam Europe/Brussels Europe/Copenhagen Europe/Stockholm Europe/Oslo "
        "Europe/Helsinki Europe/Riga Europe/Vilnius Europe/Tallinn Europe/Minsk Europe/Istanbul Europe/Zurich "
        "Asia/Tokyo Asia/Seoul Asia/Shanghai Asia/Jerusalem Asia/Beirut Asia/Baghdad Asia/Tehran Asia/Yerevan "
        "Asia/Tbilisi Africa/Cairo Africa/Nairobi America/New_York America/Chicago America/Los_Angeles America/Havana "
        "America/Lima Australia/Sydney",
        "zone": "Europe_Central Europe_Eastern Europe_Western GMT Atlantic America_Pacific America_Eastern "
        "America_Central Africa_Central Africa_Eastern Australia_Western Indian_Ocean Indochina Hawaii_Aleutian Alaska",
        "currency": "USD EUR GBP JPY CNY INR BRL CAD MXN ARS CLP EGP MAD TND KES ZAR SEK NOK DKK ISK PLN CZK HUF RON "
        "RSD UAH RUB TRY ILS THB KRW AUD NZD CHF",
        "unit": "length-kilometer length-meter length-centimeter length-millimeter length-foot length-light-year "
        "mass-kilogram mass-gram mass-milligram mass-tonne mass-pound mass-ounce volume-liter volume-milliliter "
        "volume-cubic-meter volume-barrel area-square-meter area-square-kilometer area-hectare duration-second "
        "duration-minute duration-hour duration-day duration-week duration-month duration-year duration-decade "
        "duration-century temperature-celsius energy-kilocalorie energy-kilowatt-hour power-watt power-kilowatt "
        "power-megawatt power-horsepower electric-volt electric-ampere frequency-hertz pressure-atmosphere speed-knot "
        "concentr-percent",
        "rate": "length-kilometer/duration-hour length-kilometer/duration-minute length-kilometer/duration-second "
        "length-kilometer/duration-day length-meter/duration-second length-meter/duration-minute "
        "length-centimeter/duration-year length-millimeter/duration-month mass-kilogram/duration-day "
        "mass-kilogram/duration-week mass-gram/duration-hour mass-gram/volume-liter mass-tonne/duration-year "
        "mass-tonne/duration-month volume-liter/duration-minute volume-liter/duration-second volume-liter/duration-day "
        "volume-liter/length-kilometer volume-cubic-meter/duration-hour volume-cubic-meter/duration-second",
    }.items()
}

# The longest list has four names, and twice that leaves combinations to hold out; these two are only said singly.
_LEAST_KEPT = {"zone": 2, "rate": 2}

# Enough of each plural category of the world's languages to see every form a noun can take here.
_PLURAL_PROBES = (Decimal(1), Decimal(2), Decimal(3), Decimal(5), Decimal(11), Decimal("1.5"))


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """The codes that can be said, and told apart, in each of the wanted languages."""

    codes: dict[str, tuple[str, ...]]
    medium_months: tuple[int, ...]
    """Months whose abbreviated date differs from the long one everywhere; French `5 mars 2024` could be either."""


def require_babel() -> None:
    """Babel is an optional dependency; only the demo needs it."""
    try:
        import babel  # noqa: F401
    except ImportError:
        raise GraftError(
            "the demo corpus is made from CLDR, which needs the package Babel, and it is not installed; "
            "run `pip install 'graftmt[demo]'` and then the same command again."
        ) from None


@cache
def load_locale(language: str) -> Locale:
    """The Babel locale of a language code, such as `el`, `pt-BR` or `zh_Hant`."""
    require_babel()
    from babel import Locale, UnknownLocaleError, localedata

    try:
        locale = Locale.parse(language.replace("-", "_"))
        # Babel writes resolved aliases into dictionaries that languages share, so that Hindi can answer with Swahili
        # weekdays (python-babel issue 1234); each language gets dictionaries of its own before anything is read.
        data = localedata.load(str(locale))
        data.update(copy.deepcopy(data))
        return locale
    except (UnknownLocaleError, ValueError):
        raise LanguageError(
            f"the demo corpus cannot be made in {language!r}: CLDR (Babel) has no such language; "
            f"expected a code like those of the demo: {', '.join(BASE_LANGUAGES + NEW_LANGUAGES)}."
        ) from None


@cache
def name_of(family: str, code: str, language: str) -> str | None:
    """The name of one thing as it stands in a list, or None where CLDR has none in that language."""
    locale = load_locale(language)
    name: str | None
    if family == "territory":
        name = locale.territories.get(code)
    elif family == "language":
        name = locale.languages.get(code)
    elif family == "currency":
        name = locale.currencies.get(code)
    elif family == "zone":
        long_names = locale.meta_zones.get(code, {}).get("long", {})
        name = long_names.get("generic") or long_names.get("standard")
    elif family == "city":
        # CLDR leaves a city out where its name is the one in the zone's identifier, as for Berlin in English.
        name = locale.time_zones.get(code, {}).get("city") or code.rpartition("/")[2].replace("_", " ")
    elif family == "weekday":
        name = locale.days["stand-alone"]["wide"][int(code)]
    elif family == "month":
        name = locale.months["stand-alone"]["wide"][int(code)]
    else:
        raise AssertionError(f"no names for {family}")
    return name if name and name != code else None


@cache
def inventory_of(languages: tuple[str, ...]) -> Inventory:
    """The candidates that every one of the languages names, each by words that nothing else has there."""
    taken: dict[str, set[str]] = {language: set() for language in languages}
    codes: dict[str, tuple[str, ...]] = {}
    for family, candidates in CANDIDATES.items():
        kept = []
        for code in candidates:
            forms = {language: _forms(family, code, language) for language in languages}
            if all(forms[language] and not forms[language] & taken[language] for language in languages):
                kept.append(code)
                for language in languages:
                    taken[language] |= forms[language]
        if len(kept) < _LEAST_KEPT.get(family, 8):
            raise DataError(
                f"only {len(kept)} {family} names are known and unambiguous in all of {', '.join(languages)}; "
                "leave out the language with the thinnest CLDR data."
            )
        codes[family] = tuple(kept)
    return Inventory(codes=codes, medium_months=_months_told_apart(languages))


def _forms(family: str, code: str, language: str) -> frozenset[str]:
    """Every surface form of one thing, case folded and without numbers; empty where a form is missing."""
    texts: Iterable[str | None]
    if family in ("unit", "rate"):
        texts = [quantity_of(code, str(number), language) for number in _PLURAL_PROBES]
    elif family == "currency":
        texts = [money_of(code, str(number), language) for number in _PLURAL_PROBES]
        texts.append(name_of(family, code, language))
    else:
        texts = [name_of(family, code, language)]
    forms = set()
    for text in texts:
        if text is None or _fell_back(text, code, family) or not _in_own_script(text, language):
            return frozenset()
        forms.add(" ".join(re.sub(r"\d[\d.,\s]*", " ", text).split()).casefold())
    return frozenset(forms)


def _fell_back(text: str, code: str, family: str) -> bool:
    """Whether Babel said an amount with a code, `5 length-mile` or `5 consumption-liter-per-kilometer`."""
    if family not in ("unit", "rate", "currency"):
        return False
    return "-per-" in text or not set(code.split("/")).isdisjoint(text.split())


def quantity_of(code: str, number: str, language: str) -> str:
    """`5 kilometers`, or `5 kilometers per hour` where the code is two units with a slash between them."""
    from babel.units import format_compound_unit, format_unit

    unit, _, per = code.partition("/")
    if per:
        return format_compound_unit(Decimal(number), unit, denominator_unit=per, locale=load_locale(language)) or code
    return format_unit(Decimal(number), unit, length="long", locale=load_locale(language))


def money_of(code: str, number: str, language: str) -> str:
    """`5 euros`, `12.5 euros`: no padding to cents, so that the digits are those of the slot."""
    from babel.numbers import format_currency

    amount, locale = Decimal(number), load_locale(language)
    return format_currency(amount, code, format_type="name", currency_digits=False, locale=locale)


@cache
def _script(language: str) -> str:
    """The first word of the Unicode names of a language's letters (LATIN, GREEK), seen in a weekday's name."""
    weekday = name_of("weekday", "0", language) or ""
    return next((unicodedata.name(character).split()[0] for character in weekday if character.isalpha()), "LATIN")


def _in_own_script(text: str, language: str) -> bool:
    if _script(language) == "LATIN":
        return True
    return not any(unicodedata.name(character, "").startswith("LATIN ") for character in text)


def _months_told_apart(languages: tuple[str, ...]) -> tuple[int, ...]:
    from babel.dates import format_date

    def differ(month: int, language: str) -> bool:
        day, locale = datetime.date(2001, month, 15), load_locale(language)
        return format_date(day, "medium", locale) != format_date(day, "long", locale)

    apart = tuple(month for month in range(1, 13) if all(differ(month, language) for language in languages))
    # Chinese has one form for both; there the two templates say the same, and duplicates are dropped later.
    return apart or tuple(range(1, 13))
