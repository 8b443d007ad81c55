"""Averages group directions as the paper does, and weigh each direction the same."""

from __future__ import annotations

from typing import Any

import pytest

from graftmt.errors import DataError
from graftmt.evaluation.matrix import GROUPS, grouped, groups, label
from graftmt.evaluation.scores import Score, Scores, joined


def scored(direction: str, bleu: float, chrf: float, lines: int = 10) -> Scores:
    source, target = direction.split("-")
    values = {"bleu": bleu, "chrf": chrf, "lines": lines}
    return Scores(Score(metric=metric, value=value, source=source, target=target) for metric, value in values.items())


def averages(*scores: Scores, **options: Any) -> dict[str, dict[str, Any]]:
    return {name: some.averages() for name, some in grouped(joined(scores), **options).items()}


def average(bleu: float, chrf: float, directions: int) -> dict[str, float]:
    return {"bleu": bleu, "chrf": chrf, "directions": directions}


SCORES = [
    scored("fr-en", 40, 60, lines=1000),
    scored("de-en", 30, 50),
    scored("en-fr", 20, 44),
    scored("fr-de", 10, 30),
    scored("de-fr", 14, 31),
    scored("el-fr", 12, 32),
]


def test_averages_of_a_hand_made_example() -> None:
    assert averages(*SCORES) == {
        "to_pivot": average(bleu=35, chrf=55, directions=2),
        "from_pivot": average(bleu=20, chrf=44, directions=1),
        "non_pivot": average(bleu=12, chrf=31, directions=3),
        "all": average(bleu=21, chrf=pytest.approx(247 / 6), directions=6),
    }


def test_another_pivot_groups_otherwise() -> None:
    groups = averages(*SCORES, pivot="fr")
    assert groups["to_pivot"]["directions"] == 3
    assert groups["from_pivot"]["directions"] == 2
    assert groups["non_pivot"]["directions"] == 1


def test_groups_partition_the_directions_and_order_does_not_matter() -> None:
    groups = averages(*SCORES)
    assert sum(groups[name]["directions"] for name in ("to_pivot", "from_pivot", "non_pivot")) == groups["all"]["directions"]
    assert averages(*reversed(SCORES)) == groups


def test_a_group_without_directions_is_left_out() -> None:
    assert set(averages(scored("fr-en", 1, 2))) == {"to_pivot", "all"}
    assert averages() == {}


def test_a_direction_given_twice_is_refused() -> None:
    with pytest.raises(DataError, match="fr-en"):
        averages(scored("fr-en", 1, 2), scored("fr-en", 3, 4))


# With new languages

NEW = [scored("el-en", 5, 25), scored("uk-en", 7, 27), scored("en-uk", 3, 13), scored("fr-uk", 1, 11), scored("el-uk", 9, 19)]


def test_new_languages_have_groups_of_their_own_and_leave_the_others() -> None:
    assert averages(*SCORES, *NEW, new=["el", "uk"]) == {
        "to_pivot": average(bleu=35, chrf=55, directions=2),
        "from_pivot": average(bleu=20, chrf=44, directions=1),
        "non_pivot": average(bleu=12, chrf=30.5, directions=2),
        "new_to_pivot": average(bleu=6, chrf=26, directions=2),
        "new_to_others": average(bleu=12, chrf=32, directions=1),
        "pivot_to_new": average(bleu=3, chrf=13, directions=1),
        "others_to_new": average(bleu=1, chrf=11, directions=1),
        "new_to_new": average(bleu=9, chrf=19, directions=1),
        "all": average(bleu=pytest.approx(151 / 11), chrf=pytest.approx(342 / 11), directions=11),
    }


def test_every_direction_is_in_one_group_and_in_all() -> None:
    languages = ("en", "fr", "de", "el", "uk")
    pairs = [(source, target) for source in languages for target in languages if source != target]
    found = groups(pairs, new=("el", "uk"))
    everything = found.pop("all")
    assert everything == pairs
    assert sorted(pair for members in found.values() for pair in members) == sorted(pairs)
    assert [len(found[name]) for name in GROUPS] == [2, 2, 2, 2, 4, 2, 4, 2]


def test_groups_are_written_as_in_the_paper() -> None:
    assert [label(name) for name in GROUPS] == ["→EN", "←EN", "/EN", "X→EN", "X→/EN", "EN→X", "/EN→X", "X→X"]
    assert (label("new_to_others", "fr"), label("all")) == ("X→/FR", "all")


def test_the_pivot_is_not_new() -> None:
    with pytest.raises(DataError, match="'en' is the pivot"):
        groups([("en", "fr")], new=("en",))
