"""The rule for names of languages. They come from bases, packs and file names that anyone may have made. Layer 1.

A name that passes can be part of a file name, a recipe, a direction and a message on a terminal without harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from graftmt.errors import LanguageError

LONGEST = 40
"""Characters: three times the longest tag in use."""
_NAME = re.compile(r"[A-Za-z0-9]+(?:[_@-][A-Za-z0-9]+)*")


def is_language_name(name: object) -> bool:
    """Whether this can name a language: en, pt_br, zh-Hans, eng_Latn, ca@valencia."""
    return isinstance(name, str) and len(name) <= LONGEST and _NAME.fullmatch(name) is not None


def check_language_names(names: Iterable[object], where: str) -> None:
    """An error for the first one that breaks the rule; `where` says what the names come from."""
    for name in names:
        if not is_language_name(name):
            shown = repr(name)
            shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
            raise LanguageError(
                f"{where}: {shown} cannot name a language. Expected ASCII letters and digits with single '_', '-' or '@' "
                f"between them, at most {LONGEST} characters, such as en, pt_br, zh-Hans, eng_Latn or ca@valencia."
            )
