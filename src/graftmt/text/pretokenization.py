"""Pre-tokenisation: what becomes of a word before BPE. Layer 1, below `subwords`.

Casing becomes inline, without loss: text is lowercased, and a marker after a piece says how to undo it. Only characters whose
case round-trips one to one take part; the others (İ, ß, ẞ, ς, the Kelvin sign, ǅ, digits, punctuation) are neutral: kept as
they are, next to either case. The classes are those of Python's Unicode tables, which from one version to the next only gain
characters.

A word is cut into the segments that BPE may not merge across: between Unicode scripts, between letters, digits and other
characters, where the case changes, and around characters outside the vocabulary's alphabet and literal "▁".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container

from graftmt.text.protocol import BOUNDARY

UPPER_MARKER = "<U>"
TITLE_MARKER = "<T>"

UPPER = "u"
LOWER = "l"
NEUTRAL = "n"


class CharacterTable(dict[int, str]):
    """A table for `str.translate` that works each character out once, when it is first met."""

    def __init__(self, work_out: Callable[[str], str]) -> None:
        super().__init__()
        self._work_out = work_out

    def __missing__(self, codepoint: int) -> str:
        result = self[codepoint] = self._work_out(chr(codepoint))
        return result


def _is_upper(character: str) -> bool:
    lower = character.lower()
    return len(lower) == 1 and lower != character and lower.upper() == character


def case_of(character: str) -> str:
    """UPPER, LOWER or NEUTRAL; UPPER and LOWER characters come in pairs that map to each other exactly."""
    if _is_upper(character):
        return UPPER
    upper = character.upper()
    if len(upper) == 1 and _is_upper(upper) and upper.lower() == character:
        return LOWER
    return NEUTRAL


_CASES = CharacterTable(case_of)
_LOWERED = CharacterTable(lambda c: c.lower() if case_of(c) == UPPER else c)
_RAISED = CharacterTable(lambda c: c.upper() if case_of(c) == LOWER else c)

# Over a string of case classes; the alternatives are tried in this order:
_CASED = re.compile(
    r"n*u[un]*un*(?=ln*$)"  # URL|s: a plural after an acronym leaves the acronym whole
    r"|n*un*l[ln]*"  # Phone
    r"|n*u[un]*(?=un*l|$)"  # HTML|Parser: the last upper of a run opens the next word
    r"|[ln]+"
)


def lowercase(text: str) -> str:
    """Character by character, so the length never changes; neutral characters stay."""
    return text.translate(_LOWERED)


def split_case(text: str) -> list[str]:
    """Cuts a run into segments that their lowercase form and one marker can restore: "iPhone" → "i", "Phone"."""
    classes = text.translate(_CASES)
    if UPPER not in classes:
        return [text] if text else []
    return [text[match.start() : match.end()] for match in _CASED.finditer(classes)]


def marker_for(original: str) -> str | None:
    """The marker of a slice of one segment. All-upper is tested first, so "I" is <U>, as in the paper's tokenizer."""
    classes = original.translate(_CASES)
    if UPPER not in classes:
        return None
    if LOWER not in classes:
        return UPPER_MARKER
    return TITLE_MARKER if classes.replace(NEUTRAL, "").rfind(UPPER) == 0 else None


def apply_marker(piece: str, marker: str) -> str:
    """Undoes `lowercase` on a piece; a piece without lowercase characters comes back as it is."""
    if marker == UPPER_MARKER:
        return piece.translate(_RAISED)
    first = piece.translate(_CASES).find(LOWER)
    return piece if first < 0 else piece[:first] + piece[first].upper() + piece[first + 1 :]


# Every character becomes one class symbol, and a regular expression over these symbols finds the segments.
_ALONE = "x"  # a segment by itself
_OTHER = "o"
_MARK = "m"  # takes the class of whatever precedes it
_SHARED_LETTER = "j"  # a letter many scripts use, such as ー or ʼ: joins letters, and nothing else
_FIRST_LETTER, _LAST_LETTER = 0xE000, 0xEFFF  # one symbol per script
_FIRST_DIGIT = 0xF000

_SEGMENTS = re.compile(
    rf"(?:j[jm]*)?([{chr(_FIRST_LETTER)}-{chr(_LAST_LETTER)}])(?:\1|[jm])*"
    r"|j[jm]*"
    r"|x"
    r"|(.)(?:\2|m)*",
    re.DOTALL,
)

# unicodedata has no script property; the first word of a character's name is its script, with these exceptions.
_JOINERS = {"\u200c", "\u200d"}  # ZWNJ and ZWJ, which Persian, Indic scripts and emoji use inside words
_WIDTHS = {"FULLWIDTH", "HALFWIDTH"}
_SHARED = {"MODIFIER", "KATAKANA-HIRAGANA"}
_TWO_WORDS = {"OLD", "LINEAR", "TAI", "NEW", "INSCRIPTIONAL", "CANADIAN"}
_RENAMED = {"IDEOGRAPHIC": "CJK", "HENTAIGANA": "HIRAGANA", "MASCULINE": "LATIN", "FEMININE": "LATIN"}

_scripts: dict[str, int] = {}  # script → its number, in the order met; only equality within a process matters


def script_of(character: str) -> str:
    """The script's name as Unicode's character names spell it; "" for a character without a name."""
    words = unicodedata.name(character, "").split()
    if words and words[0] in _WIDTHS:
        words = words[1:]
    if not words:
        return ""
    if words[0] in _TWO_WORDS:
        return " ".join(words[:2])
    return _RENAMED.get(words[0], words[0])


def class_of(character: str) -> str:
    """The class symbol of a lowercase character."""
    category = unicodedata.category(character)
    if category[0] == "M" or character in _JOINERS:
        return _MARK
    if category[0] not in "LN":
        return _OTHER
    script = script_of(character)
    number = _scripts.setdefault(script, len(_scripts))
    if category[0] == "N":
        return chr(_FIRST_DIGIT + number)
    return _SHARED_LETTER if script in _SHARED else chr(_FIRST_LETTER + number)


class Segmenter:
    """Cuts words; `alphabet` holds the lowercase characters the vocabulary knows, None standing for all characters."""

    def __init__(self, alphabet: Container[str] | None = None) -> None:
        self._alphabet = alphabet
        self._classes = CharacterTable(self._class)

    def _class(self, character: str) -> str:
        lower = lowercase(character)
        known = self._alphabet is None or lower in self._alphabet
        # Classes of the lowercase form: what BPE sees is what must not mix.
        return class_of(lower) if known and character != BOUNDARY else _ALONE

    def __call__(self, word: str) -> list[str]:
        """Segments of a non-empty word without whitespace, in its own case; joined, they give "▁" + word.

        The first one starts with the boundary, which stands alone when the word starts with a character that has to
        stand alone. Any later segment "▁" is a literal character of the word.
        """
        classes = word.translate(self._classes)
        segments = [word[match.start() : match.end()] for match in _SEGMENTS.finditer(classes)]
        if lowercase(word) != word:
            segments = [part for segment in segments for part in split_case(segment)]
        if classes[0] == _ALONE:
            return [BOUNDARY, *segments]
        segments[0] = BOUNDARY + segments[0]
        return segments
