"""Long text as sentences, and back: what is between sentences is kept byte for byte. Layer 6."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graftmt.server.catalog import LONGEST_CODE
from graftmt.text.languages import is_installed, tag_of_code

LONGEST_SENTENCE = 1000
"""Characters; what is longer is cut at a space, and better at a comma."""
_NO_WORDS = re.compile(r"[\W\d_]*\Z")
"""Numbers and signs alone are the same in every language."""


@dataclass(frozen=True)
class Segment:
    """A sentence at its place in the text, without the white space around it."""

    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def segments(text: str, language: str) -> list[Segment]:
    """The sentences of a text, in order; all else is white space, or has no letters."""
    found: list[Segment] = []
    start = 0
    for line in text.splitlines(keepends=True):
        found += _of_line(line, start, language)
        start += len(line)
    return found


def joined(text: str, parts: Sequence[Segment], translations: Sequence[str]) -> str:
    """The text with each segment replaced, and everything between them as it was."""
    pieces: list[str] = []
    end = 0
    for part, translation in zip(parts, translations, strict=True):
        pieces += [text[end : part.start], translation]
        end = part.end
    return "".join([*pieces, text[end:]])


def _of_line(line: str, start: int, language: str) -> Iterator[Segment]:
    place = start
    for sentence in _split(line, language):
        for piece in _not_too_long(sentence):
            inner = piece.strip()
            if inner and not _NO_WORDS.match(inner):
                yield Segment(place + len(piece) - len(piece.lstrip()), inner)
            place += len(piece)


def _split(line: str, language: str) -> list[str]:
    if not line.strip() or len(line) < 2:
        return [line]
    from sentencex import segment

    found = segment(splitting_code(language), line)
    # What does not add up to the line is no place to cut at.
    return list(found) if "".join(found) == line else [line]


def _not_too_long(sentence: str) -> Iterator[str]:
    while len(sentence) > LONGEST_SENTENCE:
        head = sentence[:LONGEST_SENTENCE]
        cut = max(head.rfind(mark) for mark in (", ", "; ", "، ", "、", "，")) + 1
        if cut < LONGEST_SENTENCE // 4:
            cut = head.rfind(" ") + 1
        cut = cut if cut > LONGEST_SENTENCE // 4 else LONGEST_SENTENCE
        yield sentence[:cut]
        sentence = sentence[cut:]
    yield sentence


def splitting_code(language: str) -> str:
    """The language as the splitter calls it: two letters where there are some, such as `el` for ell_Grek."""
    plain = language[:LONGEST_CODE].replace("-", "_").split("_")[0].lower()
    tag = tag_of_code(language) if is_installed() else None
    return tag.language if tag is not None else plain
