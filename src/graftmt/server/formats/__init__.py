"""Kinds of text that can be translated with their layout kept: one file each, found by name or by a file's ending. Layer 6."""

from __future__ import annotations

from graftmt.server.formats.format import Parsed as Parsed
from graftmt.server.formats.format import TextFormat as TextFormat
from graftmt.server.formats.html import HtmlFormat
from graftmt.server.formats.plain import PlainFormat
from graftmt.server.formats.subtitles import SubtitleFormat
from graftmt.server.refusals import bad_request

FORMATS: dict[str, TextFormat] = {one.name: one for one in (PlainFormat(), HtmlFormat(), SubtitleFormat())}


def format_named(name: str) -> TextFormat:
    if name not in FORMATS:
        raise bad_request(f"format {name[:40]!r} is not known; known: {', '.join(FORMATS)}.")
    return FORMATS[name]


def format_of_file(name: str) -> TextFormat:
    """By the ending of a file's name."""
    ending = "." + name.rpartition(".")[2].lower() if "." in name else ""
    for one in FORMATS.values():
        if ending in one.endings:
            return one
    known = ", ".join(ending for one in FORMATS.values() for ending in one.endings)
    raise bad_request(f"files of this kind ({ending[:20] or 'no ending'}) cannot be translated; known: {known}.")
