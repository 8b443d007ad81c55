"""Chinese words with spaces between them, by Jieba, as the paper segmented its Chinese text; and the way back. Layer 4.

Spaces are put between two CJK characters only. Next to Latin letters, digits and the like the text stays as its author wrote
it: subwords never cross scripts or kinds of characters anyway, and so the way back is exact but for one thing: a space that
was between two CJK characters in the first place does not come back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from graftmt.errors import DataError, GraftError, LanguageError
from graftmt.prepare.detector import detector_code
from graftmt.prepare.source import Line, Source

# Ideographs with their extensions, radicals and strokes; kana, bopomofo; CJK punctuation and full-width forms.
_CJK = (
    "\u2e80-\u2fdf\u2ff0-\u2fff\u3001-\u303f\u3040-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff01-\uffee"
    "\U00020000-\U0003ffff"
)
_ONE_CJK = re.compile(f"[{_CJK}]")
_SPACES_BETWEEN = re.compile(f"(?<=[{_CJK}])\\s+(?=[{_CJK}])")


def segment(text: str) -> str:
    """Words separated by spaces.

    >>> segment("我们在学习机器翻译。")
    '我们 在 学习 机器翻译 。'
    >>> segment("他有2台iPhone手机")
    '他 有2台iPhone手机'
    """
    pieces: list[str] = []
    for word in _words(normalise(text)):
        if pieces and _ONE_CJK.match(word) and _ONE_CJK.match(pieces[-1][-1]):
            pieces.append(" ")
        pieces.append(word)
    return "".join(pieces)


def desegment(text: str) -> str:
    """Without the spaces between CJK characters; those next to anything else stay.

    >>> desegment("他 有2台 iPhone 手机 。")
    '他有2台 iPhone 手机。'
    """
    return _SPACES_BETWEEN.sub("", normalise(text))


def normalise(text: str) -> str:
    """Single spaces, none at the ends: what every corpus folder holds."""
    return " ".join(text.split())


def is_chinese(language: str) -> bool:
    """zh, zh_cn, zh-Hant, zho_Hans, cmn …"""
    return detector_code(language) == "zh"


def segmented(source: Source, languages: Sequence[str] | None = None) -> Source:
    """The source with these languages segmented; default: all that are Chinese."""
    _jieba()  # says at once where it is not installed
    return _changed(source, languages, segment, "segmented")


def desegmented(source: Source, languages: Sequence[str] | None = None) -> Source:
    """The way back."""
    return _changed(source, languages, desegment, "without spaces between words")


def _changed(source: Source, languages: Sequence[str] | None, change: Callable[[str], str], how: str) -> Source:
    chosen = [name for name in source.languages if is_chinese(name)] if languages is None else list(languages)
    for name in chosen:
        if name not in source.languages:
            raise LanguageError(f"{source.name} has no language {name!r}; it has {', '.join(source.languages)}.")
    if not chosen:
        raise LanguageError(
            f"{source.name} has no Chinese to segment; it has {', '.join(source.languages)}. Name the language."
        )
    places = [name in chosen for name in source.languages]

    def read() -> Iterator[Line]:
        for number, line in enumerate(source, 1):
            if len(line) != len(places):
                raise DataError(f"{source.name}, line {number}: {len(line)} texts for {len(places)} languages.")
            yield tuple(change(text) if chosen else text for text, chosen in zip(line, places, strict=True))

    return Source(f"{source.name}, {how}", source.languages, read)


def _words(text: str) -> list[str]:
    """What Jieba finds, which together are the text; where they are not, the text as it is."""
    words = [word for word in _jieba().cut(text) if word] if text else []
    return words if "".join(words) == text else [text]


@cache
def _jieba() -> Any:
    """One of our own, which no other's word list changes; its dictionary is read in a second and kept in a cache."""
    try:
        import jieba
    except ImportError:
        raise GraftError("segmenting Chinese needs Jieba: pip install 'graftmt[chinese]'.") from None
    jieba.setLogLevel("WARNING")
    return jieba.Tokenizer()
