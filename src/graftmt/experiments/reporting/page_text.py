"""A Markdown page as paragraphs with the decimal numbers that a reader sees and the comments that stand for them. Layer 7."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from graftmt.errors import DataError
from graftmt.experiments.reporting.page_claims import ClaimError, Comment, parse_comment
from graftmt.experiments.reporting.printed_numbers import Printed, visible_numbers
from graftmt.files import LARGEST_TEXT, read_limited

_PIECES = re.compile(
    r"^[ ]{0,3}(?P<fence>`{3,}|~{3,})[^\n]*\n(?:.*?\n)??[ ]{0,3}(?P=fence)[`~]*[ \t]*$"  # a block of code
    r"|^[ ]{0,3}(?:`{3,}|~{3,})[^`\n]*\n.*\Z"  # one that nothing closes
    r"|(?P<ticks>`+)(?!`)[^\n]*?(?:\n(?!\s*\n)[^\n]*?)*?(?<!`)(?P=ticks)(?!`)"  # code within a sentence
    r"|<!--(?P<comment>.*?)-->|(?P<open><!--)",
    re.DOTALL | re.MULTILINE,
)
_UNSEEN = re.compile(
    r"(?<=\])\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)"  # where a link leads
    r"|(?<=\])\[[^\]\n]*\]|^[ ]{0,3}\[[^\]\n]+\]:[^\n]*"  # links by reference
    r"|</?[a-zA-Z][^<>\n]*>|\bhttps?://[^\s<>)]+",
    re.MULTILINE,
)
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_MARK = "\x00"
"""Stands for a comment, which is looked up by its position."""


@dataclass
class Block:
    """A paragraph, an item of a list, a table or a heading, up to the comments after it."""

    numbers: list[tuple[int, Printed]] = field(default_factory=list)
    """Line → the number."""
    comments: list[Comment] = field(default_factory=list)
    exempt: bool = False
    is_heading: bool = False
    is_table: bool = False


@dataclass(frozen=True)
class Page:
    path: Path
    blocks: list[Block]
    problems: list[tuple[int, ClaimError]]
    """Line → a comment that is not understood."""

    @classmethod
    def read(cls, path: Path) -> Page:
        try:
            text = read_limited(path, LARGEST_TEXT).decode().replace("\r\n", "\n").replace(_MARK, " ")
        except FileNotFoundError:
            raise DataError(f"there is no page {path}; check the path.") from None
        except (OSError, ValueError) as error:
            raise DataError(f"the page {path} cannot be read ({error}); give a Markdown file in UTF-8.") from None
        return cls(path, *_parsed(text))


def _parsed(text: str) -> tuple[list[Block], list[tuple[int, ClaimError]]]:
    comments: dict[int, Comment | None] = {}
    problems: list[tuple[int, ClaimError]] = []

    def masked(found: re.Match[str]) -> str:
        blank = re.sub(r"[^\n]", " ", found[0])
        line = text.count("\n", 0, found.start()) + 1
        if found["open"]:
            problems.append((line, ClaimError("the comment that begins here has no end; expected `-->`.")))
        if found["comment"] is None:
            return blank
        comments[found.start()], wrong = parse_comment(found["comment"], line)
        problems.extend(wrong)
        return _MARK + blank[1:]

    seen = _UNSEEN.sub(lambda found: re.sub(r"[^\n\x00]", " ", found[0]), _PIECES.sub(masked, text))
    reader = _Reader(comments)
    position = 0
    for number, line in enumerate(seen.split("\n"), 1):
        reader.line(line, number, position)
        position += len(line) + 1
    return reader.blocks, problems


class _Reader:
    """Goes through the lines of a page whose code and links are blank."""

    def __init__(self, comments: dict[int, Comment | None]) -> None:
        self.comments = comments
        self.blocks: list[Block] = [Block()]
        self.exempt = False
        self.ended = True
        """Whether what comes next is another block."""
        self.in_list = False

    def line(self, line: str, number: int, position: int) -> None:
        if not line.strip():
            self.ended = True
            return
        heading, item, table = _HEADING.match(line), _ITEM.match(line), line.lstrip().startswith("|")
        if line.startswith(("    ", "\t")) and not self.in_list and self.ended and _MARK not in line:
            return  # a block of code
        if heading:
            self.exempt = False
        if item or heading or table != self.blocks[-1].is_table:
            self.ended = True
        self.in_list = bool(item) or (self.in_list and (not self.ended or line.startswith((" ", "\t"))))
        for index, part in enumerate(line.split(_MARK)):
            if index:
                self._comment(self.comments[position - 1])
            if part.strip():
                self._text(part, number, bool(heading), table)
            position += len(part) + 1
        if heading:
            self.ended = True

    def _text(self, part: str, number: int, heading: bool, table: bool) -> None:
        if self.ended:
            self.blocks.append(Block(exempt=self.exempt, is_heading=heading, is_table=table))
            self.ended = False
        self.blocks[-1].numbers += [(number, printed) for _, printed in visible_numbers(part)]

    def _comment(self, comment: Comment | None) -> None:
        if comment is None:
            return
        self.ended = True
        self.blocks[-1].comments.append(comment)
        if comment.exempts:
            self.exempt = True
            self.blocks[-1].exempt |= self.blocks[-1].is_heading
