"""Pre-tokenisation: cuts one word into the segments that BPE may not merge across.

Layer 1, above `casing`, below `subwords`. A cut falls between Unicode scripts, between letters, digits and other
characters, where the case changes, and around characters outside the vocabulary's alphabet and literal "▁".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container

from graftmt.text.casing import CharacterTable, lowercase, split_case
from graftmt.text.protocol import BOUNDARY

# Every character becomes one class symbol, and a regular expression over these symbols finds the segments.
_ALONE = "x"  # a segment by itself
_OTHER = "o"
_MARK = "m"  # takes the class of whatever precedes it
_SHARED_LETTER = "j"  # a letter many scripts use, such as ー or ʼ: joins letters, and nothing else
_FIRST_LETTER, _LAST_LETTER = 0xE000, 0xEFFF  # one symbol per script
_FIRST_DIGIT = 0xF000

_SEGMENT = re.compile(
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
        segments = [word[match.start() : match.end()] for match in _SEGMENT.finditer(classes)]
        if lowercase(word) != word:
            segments = [part for segment in segments for part in split_case(segment)]
        if classes[0] == _ALONE:
            return [BOUNDARY, *segments]
        segments[0] = BOUNDARY + segments[0]
        return segments
