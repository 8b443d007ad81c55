"""Lossless inline casing: text is lowercased before BPE, and a marker after a piece says how to undo it.

Layer 1, the lowest file of `text/`. Only characters whose case round-trips one to one take part; the others (İ, ß, ẞ,
ς, the Kelvin sign, ǅ, digits, punctuation) are neutral: kept as they are, next to either case. The classes are those of
Python's Unicode tables, which from one version to the next only gain characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable

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
_SEGMENT = re.compile(
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
    return [text[match.start() : match.end()] for match in _SEGMENT.finditer(classes)]


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
