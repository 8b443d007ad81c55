"""The paper's rows: recipes that parse and have as many parameters as the paper prints."""

from __future__ import annotations

import pytest

from graftmt.errors import ConfigError
from graftmt.experiments.paper import ROWS, TOTALS, Row, agrees, row, totals
from graftmt.packs.recipe import Recipe

CONTRADICTIONS = {36, 37}
by_id = pytest.mark.parametrize("entry", ROWS, ids=lambda entry: str(entry.id))


def test_every_incremental_row_is_there_once() -> None:
    assert [entry.id for entry in ROWS] == [*range(7, 38), *range(46, 50), *range(51, 57), *range(61, 67)]


@by_id
def test_the_recipe_is_canonical(entry: Row) -> None:
    assert str(Recipe.parse(entry.recipe)) == entry.recipe


@by_id
def test_parameters_agree_to_the_printed_digits(entry: Row) -> None:
    document = entry.document()
    assert document["agrees"] == (None if entry.id > 60 else entry.id not in CONTRADICTIONS)
    assert (document["paper_parameters"] is None) == (entry.id > 60)
    if entry.id in CONTRADICTIONS:
        assert "contradicts" in document["note"]


@by_id
def test_what_the_paper_calls_the_row_leads_to_its_recipe(entry: Row) -> None:
    """(30) + adapters-all (d=90) is the recipe of row 30 and that; what is said of data or languages is no component."""
    start, plus, more = entry.model.name.partition(" + ")
    number = start.split()[0].strip("()")
    text = row(int(number)).recipe if number.isdigit() else start
    if plus and not any(word in more for word in ("lines per lang", "multi-aligned", "{EL")):
        text += " + " + more
    assert str(Recipe.parse(text)) == entry.recipe
    if number.isdigit():
        assert (row(int(number)).side, row(int(number)).model.corpus) == (entry.side, entry.model.corpus)


def test_a_row_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"no incremental model \(38\)"):
        row(38)


@pytest.mark.parametrize(
    ("printed", "computed", "expected"),
    [
        ("2.13M", 2_125_824, True),
        ("2.13M", 2_124_000, False),
        ("8.30M", 8_300_032, True),
        ("193M", 193_499_999, True),
        ("193M", 193_600_000, False),
    ],
)
def test_agreement_is_to_the_printed_digits(printed: str, computed: int, expected: bool) -> None:
    assert agrees(printed, computed) is expected


def test_whole_models_agree_too() -> None:
    assert [total["paper_parameters"] for total in totals()] == ["80.2M", "35.7M", "255M", "193M"]
    assert all(total["agrees"] for total in totals())
    assert len(TOTALS) == 4
