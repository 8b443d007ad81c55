"""HTML in text: its tags are taken out and its entities become the characters they stand for. Layer 4.

Only what HTML knows: `<username>`, `<xliff:g id="1">` and `a < b` stay as they are.
"""

from __future__ import annotations

import html
import re

_INLINE = """
    a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark q s samp small span strike strong sub sup time tt
    u var wbr
"""
_BLOCK = """
    address article aside blockquote body br button caption center col colgroup dd details div dl dt fieldset figcaption figure
    footer form frame h1 h2 h3 h4 h5 h6 head header hr html iframe img input label li link main meta nav noscript object ol
    optgroup option p param picture pre script section select style summary table tbody td textarea tfoot th thead title tr ul
    video
"""

# Repetitions are bounded and begin with different characters, so that no text takes long.
_VALUE = r"(?:\"[^\"<>]{0,500}\"|'[^'<>]{0,500}'|[^\s\"'<>=]{1,500})"
_ATTRIBUTES = rf"(?:\s+[A-Za-z_:][\w:.-]{{0,60}}(?:\s{{0,3}}=\s{{0,3}}{_VALUE})?){{0,30}}"


def _tags(names: str) -> re.Pattern[str]:
    return re.compile(rf"</?(?:{'|'.join(names.split())}){_ATTRIBUTES}\s{{0,3}}/?>", re.IGNORECASE)


_INLINE_TAG, _BLOCK_TAG = _tags(_INLINE), _tags(_BLOCK)
_COMMENT = re.compile(r"<!--.{0,2000}?-->|<!\[CDATA\[|\]\]>|<!DOCTYPE[^<>]{0,200}>", re.IGNORECASE | re.DOTALL)
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
ROUNDS = 4
"""`&amp;amp;nbsp;` was escaped three times."""


def without_markup(text: str) -> str:
    """The text that a reader of the page sees: `Obre&amp;nbsp;<b>el</b> fitxer<br/>` → `Obre el fitxer `."""
    if "<" not in text and "&" not in text:
        return text
    for _ in range(ROUNDS):
        before = text
        text = _BLOCK_TAG.sub(" ", _INLINE_TAG.sub("", _COMMENT.sub(" ", text)))
        text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
        if text == before:
            break
    return text


def has_markup(text: str) -> bool:
    return without_markup(text) != text
