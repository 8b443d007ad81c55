"""Plain text: one block, kept as it is but for its sentences. Layer 6."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Plain:
    content: str

    @property
    def blocks(self) -> list[str]:
        return [self.content]

    def rebuild(self, translations: Sequence[str]) -> str:
        return translations[0]


class PlainFormat:
    name = "text"
    endings = (".txt", ".md")
    media_type = "text/plain; charset=utf-8"

    def parse(self, content: str) -> Plain:
        return Plain(content)
