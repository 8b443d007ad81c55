"""Numbers of translations are compared with those of the source and of the reference, however they are written."""

from __future__ import annotations

import pytest

from graftmt.adding.numbers import Numbers, count_numbers
from graftmt.assessment.direction_lines import Evaluation
from graftmt.data import Direction
from graftmt.evaluation import score_direction


def evaluation(*lines: tuple[str, str, str]) -> Evaluation:
    sources, hypotheses, references = map(list, zip(*lines, strict=True))
    scores = score_direction(hypotheses, references, source="el", target="en")
    return Evaluation(Direction("el", "en"), scores, sources, hypotheses, references)


@pytest.mark.parametrize(
    ("source", "hypothesis", "reference", "expected"),
    [
        ("3 μέρες", "3 days", "3 days", (1, 0)),
        ("3 μέρες", "4 days", "3 days", (1, 1)),
        ("3 μέρες", "days", "3 days", (1, 1)),
        ("μέρες", "3 days", "days", (0, 0)),  # nothing to keep; chrF sees what is invented
        ("2. März 1979", "March 2, 1979", "March 2, 1979", (1, 0)),
        ("1.000 км", "1,000 km", "1000 km", (1, 0)),  # as in the source
        ("٣ أيام", "3 days", "3 days", (1, 0)),
        ("τρεις μέρες", "three days", "3 days", (1, 0)),  # as in the source: no figure
        ("17:30", "5:30 p.m.", "5:30 p.m.", (1, 0)),  # as in the reference
        ("9" * 5000, "9" * 5000, "9" * 5000, (1, 0)),
    ],
)
def test_what_counts_as_another_number(source: str, hypothesis: str, reference: str, expected: tuple[int, int]) -> None:
    found = count_numbers([evaluation((source, hypothesis, reference))])
    assert (found.lines, found.wrong) == expected


def test_the_share_is_of_lines_with_a_number() -> None:
    assert count_numbers([]).share == 0.0
    two = evaluation(("1 α", "1 a", "1 a"), ("2 α", "3 a", "2 a"), ("α", "a", "a"))
    assert count_numbers([two, two]) == Numbers(4, 2) and count_numbers([two]).share == 0.5
