"""A pack is judged by the base's own scores, or by its own where there are none, and never above a plain copy."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from graftmt.adding.judgement import NO_ROOM, SIZE_CURVES, Judgement, expected_gain, is_still_improving, judged
from graftmt.adding.verdict import NO_NUMBERS, Numbers, Verdict
from graftmt.packs import Recipe, Side


def judgement(
    chrf: float,
    *,
    own: float | None = None,
    copying: float = 5.0,
    costly: str = "embed",
    pairs: int = 2000,
    several: bool = False,
    improving: bool = False,
    side: Side = "source",
    lines: int = 100,
    numbers: Numbers = NO_NUMBERS,
    own_numbers: Numbers = NO_NUMBERS,
    out_of_step: float = 0.0,
) -> Judgement:
    entry = {"source": "el", "target": "en", "bleu": 1.0, "chrf": chrf, "lines": lines, "zero_shot": False, "few_lines": False}
    directions = ("fr-en",) if own else ()
    counts = {"numbers": numbers, "own_numbers": own_numbers}
    verdict = Verdict("test", 5, {"el-en": entry}, [], copying=copying, own=own, own_directions=directions, **counts)
    known: dict[str, Any] = {
        "costly": Recipe.parse(costly).components,
        "several": several,
        "still_improving": improving,
        "out_of_step": out_of_step,
    }
    found = judged(verdict, side, pairs, **known)
    assert found is not None
    return found


@pytest.mark.parametrize(("share", "level"), [(0.95, "excellent"), (0.8, "usable"), (0.5, "poor"), (0.3, "unusable")])
@pytest.mark.parametrize("own", [35.0, 60.0, 90.0])
def test_the_bases_own_directions_are_the_standard(own: float, share: float, level: str) -> None:
    assert judgement(share * own, own=own).level == level


@pytest.mark.parametrize(("chrf", "level"), [(95, "usable"), (45, "usable"), (25, "poor"), (10, "unusable")])
def test_without_them_the_score_alone_counts_and_nothing_is_excellent(chrf: float, level: str) -> None:
    assert judgement(chrf).level == level
    assert judgement(chrf, own=12.0).level == level  # a base that cannot translate this text is no standard
    assert "translates this text badly" in judgement(chrf, own=12.0).headline
    assert chrf < 20 or "no two languages of the base to compare with" in judgement(chrf).headline


@pytest.mark.parametrize(("wrong", "level"), [(2, "excellent"), (20, "usable"), (30, "poor")])
def test_numbers_that_come_out_as_others_lower_the_level(wrong: int, level: str) -> None:
    found = judgement(95, own=95, numbers=Numbers(80, wrong))
    assert found.level == level
    assert (f"wrong in {wrong} of the 80" in found.headline) == (level != "excellent")


def test_a_base_that_gets_them_wrong_too_is_the_standard_and_a_few_are_chance() -> None:
    assert judgement(95, own=95, numbers=Numbers(80, 20), own_numbers=Numbers(50, 12)).level == "excellent"
    assert judgement(95, own=95, numbers=Numbers(4, 4)).level == "excellent"


def test_text_that_was_out_of_step_comes_first_of_all_advice() -> None:
    assert "34% of the text was out of step" in judgement(45, own=60, out_of_step=0.34).advice[0]
    assert not any("out of step" in words for words in judgement(45, own=60).advice)


def test_a_line_or_two_say_nothing() -> None:
    found = judgement(100, own=80, lines=1)
    assert found.level == "unknown" and not found.advice
    assert "1 line was scored" in found.headline and "--test" in found.headline
    assert judgement(100, own=80, lines=20).level == "excellent"


@pytest.mark.parametrize("own", [None, 55.0])
def test_what_is_no_better_than_a_copy_is_unusable(own: float | None) -> None:
    found = judgement(52.0, own=own, copying=51.0)
    assert found.level == "unusable" and not found.is_usable
    assert "no better than leaving the text as it is" in found.headline


def test_advice_says_how_much_more_text_brought_and_where_that_is_from() -> None:
    poor = judgement(30.0, own=60.0, pairs=1000)
    assert "twice the 1,000 line pairs" in poor.advice[0] and "docs-reading.md" in poor.advice[0]
    assert not judgement(60.0, own=60.0, pairs=1000).advice
    assert "more than was measured" in judgement(30.0, own=60.0, pairs=500_000).advice[0]


def test_where_there_is_no_room_nobody_is_told_to_find_more_text() -> None:
    """Without a standard no pack is excellent, whatever its score."""
    for own in (None, 12.0):
        found = judgement(99.9, own=own, pairs=3800, improving=True)
        assert found.level == "usable" and not found.advice
        below = judgement(NO_ROOM - 0.1, own=own, pairs=3800, improving=True)
        assert ["More text" in words for words in below.advice] == [True, False] and "--steps" in below.advice[1]
    wrong = judgement(99.9, own=99.9, pairs=3800, numbers=Numbers(80, 20))
    assert wrong.level == "usable" and not any("More text" in words for words in wrong.advice)


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_curve_is_what_was_measured_and_more_text_never_hurts(side: str) -> None:
    curve = SIZE_CURVES[side]  # type: ignore[index]
    for (fewer, low), (more, high) in itertools.pairwise(curve):
        assert expected_gain(side, fewer, more) == pytest.approx(high - low)  # type: ignore[arg-type]
    for pairs in (50, 300, 5_000, 50_000, 200_000):
        assert expected_gain(side, pairs, 2 * pairs) >= 0  # type: ignore[arg-type]


def test_what_another_recipe_costs_in_other_directions_is_named() -> None:
    for part in ("enc-adapters-all(64)", "enc-lora-all(16)", "enc-first-layer", "enc-all-layers"):
        advice = judgement(50, own=60, costly=f"embed + {part}").advice
        assert sum(words.startswith("Zero-shot: ") for words in advice) == 1
    assert not any("Zero-shot" in words for words in judgement(50, own=60).advice)


@pytest.mark.parametrize("side", ["source", "target"])
def test_costs_that_were_measured_with_one_language_say_so_to_a_pack_with_several(side: Side) -> None:
    for several in (False, True):
        advice = judgement(50, own=60, costly="embed + adapters-all(64)", side=side, several=several).advice
        (cost,) = (words for words in advice if words.startswith("Zero-shot: "))
        assert cost.endswith("which this pack had.") == several


def test_every_part_of_a_recipe_names_its_own_cost_once() -> None:
    recipe = "embed + enc-first-layer + enc-adapters-2(64) + enc-adapters-3(32) + enc-lora-4(8)"
    advice = judgement(50, own=60, costly=recipe).advice
    costs = [words for words in advice if words.startswith("Zero-shot: ")]
    assert [any(part in words for words in costs) for part in ("first layer", "adapters", "LoRA")] == [True] * 3
    assert len(costs) == 3


def test_a_target_pack_is_told_of_what_was_measured_for_its_side() -> None:
    def costs(recipe: str) -> list[str]:
        advice = judgement(50, own=60, costly=recipe, side="target").advice
        return [words for words in advice if words.startswith("Zero-shot: ")]

    assert [len(costs(f"embed + {part}")) for part in ("lora-all(16)", "adapters-all(64)")] == [1, 1]
    assert "LoRA in all layers cost 3.3 chrF from languages" in costs("embed + lora-all(16)")[0]
    assert costs("embed + dec-last-layer + dec-lora-first(16) + enc-adapters-last(64)") == []


def test_what_is_for_trained_directions_alone_costs_the_others_nothing() -> None:
    for part in ("enc-adapters-all(64)@trained", "enc-lora-all(16)@trained", "enc-all-layers@trained"):
        advice = judgement(50, own=60, costly=f"embed + {part}").advice
        assert not any("Zero-shot" in words for words in advice)


def test_training_that_was_still_improving_is_told() -> None:
    falling = [{"loss": loss} for loss in (4.0, 3.0, 2.5)]
    assert is_still_improving(falling)
    assert not is_still_improving([*falling, {"loss": 2.6}])
    assert not is_still_improving(falling[:2])
    assert any("--steps" in words for words in judgement(30, own=60, improving=True).advice)
