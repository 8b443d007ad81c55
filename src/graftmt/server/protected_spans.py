"""What must come out of a translation as it went in: variables, addresses, tags. Layer 6."""

from __future__ import annotations

import re
from collections import Counter

PLACEHOLDER = re.compile(
    r"\{\{[^{}\n]{0,80}\}\}|\$?\{[^{}\n]{0,80}\}|%\(\w{1,40}\)[sdif]|(?<![\d\w%])%(?:\d+\$)?[sdif@](?!\w)"
    r"|https?://[^\s<>\"']+[^\s<>\"'.,;:!?)\]]|[\w.+-]+@[\w-]+\.[\w.-]*\w|</?[A-Za-z][^<>\n]{0,80}>"
)


def placeholders(text: str) -> list[str]:
    return PLACEHOLDER.findall(text)


def kept(source: str, translation: str) -> bool:
    """Whether the translation has all placeholders of the source, each as often, in any order."""
    wanted = Counter(placeholders(source))
    return not wanted or Counter(placeholders(translation)) == wanted


def around(text: str) -> tuple[list[str], list[str]]:
    """What stands between placeholders, and the placeholders: n + 1 texts and n placeholders."""
    found = placeholders(text)
    parts: list[str] = []
    rest = text
    for placeholder in found:
        before, _, rest = rest.partition(placeholder)
        parts.append(before)
    return [*parts, rest], found


def spliced(parts: list[str], translations: list[str], found: list[str]) -> str:
    """The translated parts with the placeholders between them; white space next to a placeholder as it was."""
    pieces: list[str] = []
    for index, (part, translation) in enumerate(zip(parts, translations, strict=True)):
        leading = part[: len(part) - len(part.lstrip())]
        trailing = part[len(part.rstrip()) :] if part.strip() else ""
        pieces.append(f"{leading}{translation}{trailing}")
        if index < len(found):
            pieces.append(found[index])
    return "".join(pieces)
