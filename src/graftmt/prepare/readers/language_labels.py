"""Which languages are taken from a file, and what the corpus calls them. Layer 4.

A corpus's languages name its files (`train.pt_br.txt`) and directions (`en-pt_br`), so names are letters, digits and _.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from graftmt.data.corpus import NO_LANGUAGES
from graftmt.errors import ConfigError, DataError, LanguageError, nearest
from graftmt.text.languages import code_of_words, is_language_name

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*")
_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(?:[-_](?:[a-z]{2,4}|[0-9]{3})){0,2}", re.IGNORECASE)
# Endings that look like languages and, next to texts, are none.
_OTHER_ENDINGS = NO_LANGUAGES | {
    "bpe",
    "cfg",
    "csv",
    "dev",
    "doc",
    "ids",
    "ini",
    "js",
    "log",
    "pdf",
    "po",
    "py",
    "tar",
    "tmx",
    "xml",
    "zip",
}


def parse_languages(text: str | None) -> dict[str, str] | None:
    """What --languages means: {"en": "en", "fr": "fra_Latn"} for `en,fr=fra_Latn`; None where nothing is asked for."""
    if text is None:
        return None
    asked: dict[str, str] = {}
    for item in (item.strip() for item in text.split(",")):
        name, equals, code = (piece.strip() for piece in item.partition("="))
        name = name if equals else corpus_name(name)
        code = code if equals else item
        if not _is_name(name) or not code or name in asked:
            problem = "is there twice" if name in asked else "cannot be the name of a language"
            raise ConfigError(f"{name!r} in {text!r} {problem}; write names of letters, digits and _, such as en,fr=fra_Latn.")
        asked[name] = code
    return asked


def _is_name(name: str) -> bool:
    """The rule for all names of languages, without hyphens."""
    return is_language_name(name) and _NAME.fullmatch(name) is not None and name.lower() not in NO_LANGUAGES


def corpus_name(code: str) -> str:
    """pt_br for pt-br: a hyphen would not do in a direction."""
    return code.strip().replace("-", "_")


def looks_like_a_language(code: str) -> bool:
    """Whether a file's ending may be a language's code."""
    return _LANGUAGE_CODE.fullmatch(code) is not None and code.lower() not in _OTHER_ENDINGS


def choose_languages(
    found: Iterable[str],
    asked: Mapping[str, str] | None,
    where: str,
    advice: str = "choose and name with --languages, as in en,fr=CODE",
) -> dict[str, str]:
    """The corpus's name → the file's own code, for those asked for or else all; codes match whatever their case and hyphens.
    What a file calls Catalan is ca.

    `advice` is for a code that no language's file can be named by.
    """
    codes = list(found)
    if asked is None:
        asked = {corpus_name(code_of_words(code) or code): code for code in codes}
        if len(asked) < len(codes):
            twice = next(name for name in asked if sum(corpus_name(code_of_words(code) or code) == name for code in codes) > 1)
            raise DataError(f"{where} has the language {twice!r} twice; keep one of the two.")
    known = {_form(code): code for code in reversed(codes)}
    chosen: dict[str, str] = {}
    for name, code in asked.items():
        if not _is_name(name):
            raise DataError(f"{where}: {code!r} is no language's name for a file; {advice}.")
        exact = code if code in codes else known.get(_form(code))
        if exact is None:
            listed = ", ".join(codes[:40]) + (", …" if len(codes) > 40 else "")
            raise LanguageError(f"{where} has no language {code!r}{nearest(code, codes) or ';'} there: {listed or 'none'}.")
        chosen[name] = exact
    if not chosen:
        raise DataError(f"{where} has no languages; is this the right format?")
    return chosen


def _form(code: str) -> str:
    return corpus_name(code).lower()
