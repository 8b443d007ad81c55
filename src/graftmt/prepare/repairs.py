"""Repairs of one text that keep what it says: encoding, control characters, normalisation, white space. Layer 4.

Placeholders and numbers come out as they went in.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Literal, TypeAlias

from graftmt.text.pretokenization import CharacterTable

Normalisation: TypeAlias = Literal["none", "NFC", "NFKC"]

# Code points that text has no use for: controls that are no white space, soft hyphens, byte order marks, interlinear
# annotations, noncharacters and lone surrogates. Joiners and direction marks are not among them: Persian, Hindi, Hebrew and
# emoji need them; nor is the zero-width space, which parts the words of Thai and Khmer.
_UNWANTED = "\x00-\x08\x0e-\x1f\x7f-\x9f\xad\ufeff\ufff9-\ufffb\ufdd0-\ufdef\ud800-\udfff" + "".join(
    chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(17)
)
_FIND_UNWANTED = re.compile(f"[{_UNWANTED}]")

_INSIDE = rf"[^\s{{}}<>{_UNWANTED}]"
PLACEHOLDER = re.compile(
    rf"\$?\{{{{1,2}}{_INSIDE}*\}}{{1,2}}"  # {name}, {0}, {{user}}, ${HOME}
    r"|%(?:\d{1,3}\$|\(\w+\))?[-+#0]{0,4}\d{0,4}(?:\.\d{1,4})?[hlLqjzt]{0,2}[A-Za-z%]"  # %s, %(count)d, %1$s, %.2f, %%
    r"|%\d+"  # Qt's %1
    rf"|</?[A-Za-z]{_INSIDE}*(?: {_INSIDE}+)*>"  # <b>, </a>, <img src="x"/>
    r"|&(?:[A-Za-z][A-Za-z0-9]*|\#[0-9]+|\#[xX][0-9A-Fa-f]+);"  # &nbsp;, &#160;
    rf"|https?://{_INSIDE}+"
)
"""What programs and browsers read, rather than people; white space inside is one plain space, or it is no placeholder.

Repetitions that could overlap are bounded, so that no text takes long.
"""


def _without(character: str) -> str:
    """What an unwanted character becomes: nothing, a space for separators, for C1 controls what Windows means by them."""
    if character in "\x1c\x1d\x1e\x1f\x85":
        return " "
    if "\x80" <= character <= "\x9f":
        return bytes([ord(character)]).decode("cp1252", errors="ignore")
    return "" if _FIND_UNWANTED.match(character) else character


_REPAIRED = CharacterTable(_without)

# Bytes by the characters that Windows-1252 and Latin-1 show for them.
_BYTES = {chr(byte): byte for byte in range(256)} | {
    character: byte for byte in range(0x80, 0xA0) if (character := bytes([byte]).decode("cp1252", errors="ignore"))
}
_MISREAD = re.compile(
    "[\xc2-\xf4][" + re.escape("".join(character for character, byte in _BYTES.items() if 0x80 <= byte < 0xC0)) + "]"
)


def with_right_encoding(text: str) -> str:
    """UTF-8 that someone read as Windows-1252 or Latin-1, read as UTF-8: tamamı for tamamÄ±. Only where all of it is."""
    if not _MISREAD.search(text):
        return text
    try:
        return bytes(_BYTES[character] for character in text).decode("utf-8")
    except (KeyError, UnicodeDecodeError):
        return text


def without_control_characters(text: str) -> str:
    return text.translate(_REPAIRED) if _FIND_UNWANTED.search(text) else text


def normalised(text: str, form: Normalisation) -> str:
    """NFC or NFKC of all but placeholders and, for NFKC, numbers: x² is not x2, and ½ is not 1⁄2."""
    if form == "none" or unicodedata.is_normalized(form, text):
        return text
    parts = _protected(form).split(text)  # what is protected is at the odd places
    return "".join(part if place % 2 else unicodedata.normalize(form, part) for place, part in enumerate(parts))


@cache
def _protected(form: Normalisation) -> re.Pattern[str]:
    numbers = ""
    if form == "NFKC":
        changed = (
            character
            for character in map(chr, range(0x80, 0x20000))
            if unicodedata.category(character)[0] == "N" and not unicodedata.is_normalized("NFKC", character)
        )
        numbers = f"|[{''.join(changed)}]+"
    return re.compile(f"({PLACEHOLDER.pattern}{numbers})")


def with_plain_spaces(text: str) -> str:
    """One plain space wherever there is white space of any kind, and none around the text."""
    return " ".join(text.split())


_WHITE = re.compile(r"[^\S\xa0\x85]+")


def one_line(text: str) -> str:
    """The text with plain spaces, but for what may be mended later: in `Ã` + no-break space, a misread `à`, it is no space."""
    if ("\xa0" in text or "\x85" in text) and with_right_encoding(text) != text:
        return _WHITE.sub(" ", text).strip(" ")
    return " ".join(text.split())


def prose(text: str) -> str:
    """The text without what is not in any language."""
    return PLACEHOLDER.sub(" ", text)
