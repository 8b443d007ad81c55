"""Whether translations keep the numbers of their text: what chrF hardly sees and a reader minds most. Layer 6."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from graftmt.assessment.direction_lines import Evaluation

_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Numbers:
    """Translations of lines with a number, and how many of them have other numbers."""

    lines: int = 0
    wrong: int = 0

    @property
    def share(self) -> float:
        """Of those that are wrong; 0.0 where no line has a number."""
        return self.wrong / self.lines if self.lines else 0.0


NONE = Numbers()


def count_numbers(evaluations: Iterable[Evaluation]) -> Numbers:
    """A translation is wrong whose numbers are neither those of the source nor those of the reference, in any order."""
    lines = wrong = 0
    for one in evaluations:
        for source, hypothesis, reference in zip(one.sources, one.hypotheses, one.references, strict=True):
            right = (_numbers(source), _numbers(reference))
            if any(right):
                lines += 1
                wrong += _numbers(hypothesis) not in right
    return Numbers(lines, wrong)


def _numbers(text: str) -> list[int]:
    """Runs of digits of any script, in order of size: 1,000 and 1.000 are the same, 2/3 and 3. 2. too."""
    return sorted(int(digits[:18]) for digits in _DIGITS.findall(text))
