"""All scores are rows of one table, which is asked for parts and means."""

from __future__ import annotations

import pytest

from graftmt.evaluation.scores import Score, Scores, joined


def rows(direction: str, **values: float | None) -> Scores:
    source, target = direction.split("-")
    return Scores(Score(metric=name, value=value, source=source, target=target) for name, value in values.items())


TABLE = joined(
    [
        rows("el-en", bleu=30.0, chrf=60.0, off_target=None, lines=5).labelled(set="test", job="a"),
        rows("el-fr", bleu=20.0, chrf=50.0, off_target=0.5, lines=4).labelled(set="test", job="a"),
        rows("el-en", bleu=10.0, chrf=40.0, lines=9).labelled(set="valid", job="a"),
    ]
)


def test_parts_of_the_table() -> None:
    assert TABLE.sets == ["test", "valid"]
    assert TABLE.directions == ["el-en", "el-fr"]
    assert TABLE.select(set="valid").chrf == 40.0
    assert TABLE.select(set="test", directions=["el-fr"]).bleu == 20.0
    assert joined(TABLE.by_pair().values()).select(directions=["el-en"]) == TABLE.select(directions=["el-en"])


def test_means_are_of_what_is_known() -> None:
    test = TABLE.select(set="test")
    assert test.averages() == {"bleu": 25.0, "chrf": 55.0, "directions": 2, "off_target": 0.5}
    assert TABLE.select(set="valid").averages() == {"bleu": 10.0, "chrf": 40.0, "directions": 1}
    assert test.share("off_target") == 0.5
    assert Scores().share("chrf") is None


def test_figures_for_a_file_are_rounded_where_that_is_asked_for() -> None:
    found = rows("el-en", chrf=12.3456, lines=3.0, off_target=None).figures({"chrf": 1, "off_target": 2})
    assert found == {"chrf": pytest.approx(12.3), "lines": 3, "off_target": None}
    assert isinstance(found["lines"], int)
