"""Whether a text and its translation have the same placeholders and addresses. Layer 4."""

from __future__ import annotations

import re
from collections import Counter

# Percent signs after digits are per cent; a conversion is no beginning of a word.
_PRINTF = re.compile(
    r"(?<![\d%])%(?:(?P<number>\d{1,2})\$|\((?P<name>\w{1,60})\))?[-+#0]{0,3}\d{0,3}(?:\.\d{1,3})?(?:hh|ll|[hlLqjzt])?"
    r"(?P<kind>[sdiufgeExXcopr@])(?![A-Za-z])"
)
_QT = re.compile(r"(?<![\d%])%(?:L?\d{1,2}|n)(?![\w$.])")
_BRACES = re.compile(r"\$?\{{1,2}\s{0,2}([A-Za-z_][\w.]{0,60}|\d{1,2}|)\s{0,2}(?:[:!][^{}\s]{0,20})?\}{1,2}")
_ICU = re.compile(r"\{\s{0,3}(\w{1,60})\s{0,3},\s{0,3}(?:plural|select|selectordinal|number|date|time|spellout|ordinal)\b")
_ADDRESS = re.compile(r"\b(?:https?|ftp)://([^\s/?#:<>()\"'{}]{1,200})", re.IGNORECASE)
_SHOWN = 3


def difference(original: str, text: str) -> str:
    """Why the two cannot be translations of each other, in words; "" where their placeholders and addresses agree."""
    if not any(sign in original or sign in text for sign in ("%", "{", "://")):
        return ""
    ours, theirs = placeholders_of(original), placeholders_of(text)
    if missing := list((ours - theirs).elements()):
        return f"without {', '.join(missing[:_SHOWN])}"
    if more := list((theirs - ours).elements()):
        return f"{', '.join(more[:_SHOWN])} is not in the original"
    here, there = addresses_of(original), addresses_of(text)
    if here != there:
        return f"other addresses: {', '.join(sorted((here - there) | (there - here))[:_SHOWN])}"
    return ""


def placeholders_of(text: str) -> Counter[str]:
    """Placeholders in a form in which order and notation do not matter: `%2$s` counts as `%s`."""
    found: Counter[str] = Counter()
    if "%" in text:
        found.update(f"%({match['name']})" if match["name"] else f"%{_kind(match['kind'])}" for match in _PRINTF.finditer(text))
        found.update(_QT.findall(text))
    if "{" in text:
        icu = set(_ICU.findall(text))
        names = [f"{{{name}}}" for name in _BRACES.findall(text)]
        # Languages have other plural forms, each with the placeholders again: there only the names count.
        found.update(set(names) | {f"{{{name}}}" for name in icu} if icu else names)
    return found


def _kind(conversion: str) -> str:
    return "d" if conversion in "iu" else conversion


def addresses_of(text: str) -> Counter[str]:
    """The domains of its addresses; a page in another language may be at another path or subdomain."""
    return Counter(".".join(host.lower().rstrip(".").split(".")[-2:]) for host in _ADDRESS.findall(text))
