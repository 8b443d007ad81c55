"""Numbers as a page prints them: their digits, sign and unit, and whether a result agrees with them. Layer 7."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_DIGITS = r"(?P<sign>[+\-−]?)(?P<digits>\d[\d,]*(?:\.\d+)?|\.\d+)"
_PRINTED = re.compile(rf"{_DIGITS}\s*(?P<unit>M|%)?")
# A decimal number in running text; 2.6.0 is a version, and the sign of 1.0-2.0 is none.
_VISIBLE = re.compile(r"(?<![\w.])(?P<sign>[+\-−]?)(?P<digits>\d[\d,]*\.\d+|\.\d+)(?!\d|\.\d)(?:\s?(?P<unit>M)\b)?")
_RANGE = re.compile(r"(?<=\d)[\-−](?=\d)")
SLACK = 0.0006
"""Result files have three digits of a score, so that a half is not told from a little less."""


@dataclass(frozen=True)
class Printed:
    """One number with what decides whether another stands for it."""

    text: str
    sign: str
    digits: str
    """Without commas between thousands, and with a digit before the point."""
    millions: bool = False

    @classmethod
    def parse(cls, text: str) -> Printed | None:
        """All of a text as a number, or None."""
        found = _PRINTED.fullmatch(text.strip())
        return None if found is None else cls._of(found)

    @classmethod
    def _of(cls, found: re.Match[str]) -> Printed:
        digits = found["digits"].replace(",", "")
        digits = f"0{digits}" if digits.startswith(".") else digits
        return cls(found[0].strip(), found["sign"].replace("−", "-"), digits, found["unit"] == "M")

    @property
    def places(self) -> int:
        return len(self.digits.partition(".")[2])

    @property
    def value(self) -> float:
        return (-1 if self.sign == "-" else 1) * float(self.digits) * (1e6 if self.millions else 1)

    def agrees(self, value: float) -> bool:
        """Whether that is printed so, at this precision."""
        half, unit = 0.5 * 10.0**-self.places, 1e6 if self.millions else 1
        return abs(value - self.value) <= unit * (half + min(SLACK, half / 5))

    def written(self, value: float) -> str:
        """A result as this number is written, with a digit more."""
        unit = 1e6 if self.millions else 1
        sign = "+" if self.sign else ""
        return f"{value / unit:{sign},.{self.places + (self.places > 0 or unit > 1)}f}{'M' if self.millions else ''}"

    def covers(self, visible: Printed) -> bool:
        """Whether a number in the text is this one: of a difference, text may also name the size alone."""
        same = (self.digits, self.millions) == (visible.digits, visible.millions)
        return same and (not visible.sign or (visible.sign == "-") == (self.sign == "-"))


def visible_numbers(text: str) -> Iterator[tuple[int, Printed]]:
    """The decimal numbers of a text that is read, and where each begins."""
    plain = _RANGE.sub(" ", text)
    for found in _VISIBLE.finditer(plain):
        yield found.start(), Printed._of(found)
