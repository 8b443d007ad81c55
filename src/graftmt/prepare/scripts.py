"""Which scripts a text is written in, which ones its language is written in, and how much its characters say. Layer 4."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graftmt.text.pretokenization import script_of

# Letters that all scripts use, and letters of formulas, by the first word of their names.
_OF_NO_SCRIPT = {
    "MODIFIER",
    "KATAKANA-HIRAGANA",
    "MICRO",
    "OHM",
    "KELVIN",
    "ANGSTROM",
    "MATHEMATICAL",
    "DOUBLE-STRUCK",
    "SCRIPT",
}

# How many Latin letters one character stands for in translations; measured on docs-l10n, where it makes the typical line as
# long in Chinese, Japanese and Korean as in English.
_WORTH = {"CJK": 3.0, "HIRAGANA": 2.0, "KATAKANA": 2.0, "HANGUL": 2.0}

_SCRIPTS: dict[str, frozenset[str]] = {
    code: frozenset(scripts.split("+"))
    for code, scripts in re.findall(
        r"(\w+):([\w+]+)",
        """
        am:ETHIOPIC ar:ARABIC arb:ARABIC as:BENGALI be:CYRILLIC bg:CYRILLIC bn:BENGALI bo:TIBETAN ca:LATIN cs:LATIN cy:LATIN
        da:LATIN de:LATIN dz:TIBETAN el:GREEK en:LATIN es:LATIN et:LATIN eu:LATIN fa:ARABIC fi:LATIN fr:LATIN ga:LATIN gl:LATIN
        gu:GUJARATI he:HEBREW hi:DEVANAGARI hr:LATIN hu:LATIN hy:ARMENIAN id:LATIN is:LATIN it:LATIN ja:CJK+HIRAGANA+KATAKANA
        ka:GEORGIAN km:KHMER kn:KANNADA ko:HANGUL+CJK ky:CYRILLIC lo:LAO lt:LATIN lv:LATIN mk:CYRILLIC ml:MALAYALAM
        mr:DEVANAGARI mt:LATIN my:MYANMAR ne:DEVANAGARI nl:LATIN nn:LATIN no:LATIN or:ORIYA pa:GURMUKHI+ARABIC pl:LATIN
        ps:ARABIC pt:LATIN ro:LATIN ru:CYRILLIC si:SINHALA sk:LATIN sl:LATIN sq:LATIN sr:CYRILLIC+LATIN sv:LATIN sw:LATIN
        ta:TAMIL te:TELUGU th:THAI tl:LATIN tr:LATIN ug:ARABIC uk:CYRILLIC ur:ARABIC vi:LATIN yi:HEBREW zh:CJK
        """,
    )
}
_BY_TAG = {
    tag: frozenset(scripts.split("+"))
    for tag, scripts in re.findall(
        r"(\w+):([\w+]+)",
        """
        latn:LATIN cyrl:CYRILLIC arab:ARABIC grek:GREEK hebr:HEBREW deva:DEVANAGARI beng:BENGALI hans:CJK hant:CJK
        hang:HANGUL+CJK jpan:CJK+HIRAGANA+KATAKANA thai:THAI armn:ARMENIAN geor:GEORGIAN ethi:ETHIOPIC khmr:KHMER laoo:LAO
        mymr:MYANMAR taml:TAMIL telu:TELUGU knda:KANNADA mlym:MALAYALAM gujr:GUJARATI guru:GURMUKHI orya:ORIYA sinh:SINHALA
        tibt:TIBETAN tfng:TIFINAGH olck:OL nkoo:NKO mtei:MEETEI kore:HANGUL+CJK
        """,
    )
}

MAJORITY = 0.2
"""Of a text's letters; a script with fewer is not the language's own, where no table says which these are."""


def _script_of_letter(character: str) -> str:
    """ "" for what is no letter, or the letter of no script."""
    script = script_of(character) if character.isalpha() else ""
    return "" if script in _OF_NO_SCRIPT else script


class _Letters(dict[str, tuple[str, float]]):
    """character → script and worth, worked out when first met."""

    def __missing__(self, character: str) -> tuple[str, float]:
        script = _script_of_letter(character)
        result = self[character] = (script, _WORTH.get(script, 1.0))
        return result


_letters = _Letters()


def letter_scripts(text: str) -> dict[str, float]:
    """script → letters of the text in it, in Latin letters' worth."""
    counts: dict[str, float] = {}
    for character in text:
        script, worth = _letters[character]
        if script:
            counts[script] = counts.get(script, 0.0) + worth
    return counts


def letters_worth(text: str) -> float:
    """How many Latin letters the text's letters stand for."""
    return sum(letter_scripts(text).values())


def length_of(text: str) -> float:
    """Characters, in Latin letters' worth: comparable between scripts."""
    return len(text) if text.isascii() else sum(_letters[character][1] for character in text)


def expected_scripts(language: str, code: str, sample: Iterable[str]) -> frozenset[str]:
    """The scripts a language is written in: by the tag in its name (srp_Cyrl), the table (`code`), or its text's majority."""
    for tag in re.split(r"[_-]", language.lower())[1:]:
        if tag in _BY_TAG:
            return _BY_TAG[tag]
    if code in _SCRIPTS:
        return _SCRIPTS[code]
    counts = letter_scripts("".join(sample))
    total = sum(counts.values())
    return frozenset(script for script, count in counts.items() if count >= MAJORITY * total)


def foreign_share(text: str, expected: frozenset[str]) -> float:
    """The share of the text's letters in other scripts than expected; 0 where it has no letters."""
    if text.isascii() and "LATIN" in expected:
        return 0.0
    counts = letter_scripts(text)
    total = sum(counts.values())
    return sum(count for script, count in counts.items() if script not in expected) / total if total else 0.0
