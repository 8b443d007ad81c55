"""Subtitles (SubRip): numbers and times stay, the lines of a cue are one text, wrapped again into as many lines. Layer 6."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

_CUE = re.compile(
    r"(?P<head>[ \t]*\d+[ \t]*\r?\n[ \t]*\d+:\d\d:\d\d[,.]\d+[ \t]*-->[^\n]*\n)(?P<text>(?:(?![ \t]*\r?\n)[^\n]+(?:\n|\Z))*)"
)


@dataclass(frozen=True)
class Cue:
    start: int
    end: int
    lines: tuple[str, ...]
    newline: str
    ends_line: bool

    def wrapped(self, text: str) -> str:
        count = len(self.lines)
        width = -(-len(text) // count) + 6
        lines = textwrap.wrap(text, width) if count > 1 else [text]
        return self.newline.join(lines) + (self.newline if self.ends_line else "")


@dataclass(frozen=True)
class Subtitles:
    content: str
    cues: tuple[Cue, ...]

    @property
    def blocks(self) -> list[str]:
        return [" ".join(cue.lines) for cue in self.cues]

    def rebuild(self, translations: Sequence[str]) -> str:
        pieces: list[str] = []
        end = 0
        for cue, translation in zip(self.cues, translations, strict=True):
            pieces += [self.content[end : cue.start], cue.wrapped(translation)]
            end = cue.end
        return "".join([*pieces, self.content[end:]])


class SubtitleFormat:
    name = "srt"
    endings = (".srt",)
    media_type = "application/x-subrip; charset=utf-8"

    def parse(self, content: str) -> Subtitles:
        cues = []
        for found in _CUE.finditer(content):
            text = found["text"]
            lines = tuple(line.strip() for line in text.splitlines())
            if any(lines):
                newline = "\r\n" if "\r\n" in found["head"] else "\n"
                cues.append(Cue(found.start("text"), found.end("text"), lines, newline, text.endswith("\n")))
        return Subtitles(content, tuple(cues))
