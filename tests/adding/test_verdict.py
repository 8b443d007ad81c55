"""A verdict is on held-out lines with text on both sides, of trained and untrained directions, and says what to do.

Numbers of translations are compared with those of the source and of the reference, however they are written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.adding.verdict import Numbers, Verdict, count_numbers, judge, no_verdict, sample_translations
from graftmt.assessment.direction_lines import Evaluation, evaluate_directions
from graftmt.base import Base
from graftmt.data import Corpus, Direction
from graftmt.decoding import SearchOptions
from graftmt.evaluation import score_direction
from graftmt.packs import Pack
from graftmt.translator import Translator


@pytest.fixture(scope="module")
def base(graft_base: Callable[..., Path]) -> Base:
    return Base.load(graft_base())


@pytest.fixture(scope="module")
def packs(base: Base, train_graft: Callable[..., Pack], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pack]:
    folder = tmp_path_factory.mktemp("verdict")
    return {
        "el": train_graft(folder / "el", base, "source", "embed", steps=2),
        "both": train_graft(folder / "both", base, "target", "embed", languages=("el", "uk"), steps=2),
    }


def scored(verdict: Verdict) -> dict[str, list[str]]:
    """Directions, trained and not."""
    return {
        kind: [name for name, entry in verdict.scores.items() if entry["zero_shot"] == (kind == "zero-shot")]
        for kind in ("trained", "zero-shot")
    }


@pytest.mark.slow
def test_scores_are_those_of_the_translator(base: Base, packs: dict[str, Pack], graft_corpus: Path) -> None:
    test = Corpus.open(graft_corpus, "test")
    verdict = judge(base, packs["el"], test, ["en"], lines=5, beam=1)
    assert scored(verdict) == {"trained": ["el-en"], "zero-shot": ["el-fr", "el-ru"]}
    translator, options = Translator(base, [packs["el"]]), SearchOptions(beam=1)
    for route in (None, "en"):
        for found in evaluate_directions(
            translator, test, [Direction("el", "fr"), Direction("el", "ru")], pairs=5, pivot=route, options=options
        ):
            entry = verdict.scores[str(found.direction)]
            entry = entry["pivot"] if route else entry
            assert entry["bleu"] == round(found.scores.bleu, 2) and entry["chrf"] == round(found.scores.chrf, 2)
    assert "pivot" not in verdict.scores["el-en"]
    assert verdict.facts()["scored_on"] == "test, beam 1"
    assert {sample["direction"] for sample in verdict.samples} == {"el-en", "el-fr", "el-ru"}


@pytest.mark.slow
def test_each_language_of_a_pack_is_judged_with_each_partner(base: Base, packs: dict[str, Pack], graft_corpus: Path) -> None:
    test = Corpus.open(graft_corpus, "test")
    verdict = judge(base, packs["both"], test, ["en", "fr"], lines=2, beam=1)
    assert scored(verdict) == {"trained": ["en-el", "fr-el", "en-uk", "fr-uk"], "zero-shot": ["ru-el", "ru-uk"]}
    few = judge(base, packs["both"], test, ["en"], lines=2, beam=1, others=1)
    assert len(scored(few)["zero-shot"]) == 2  # one for each language
    none = judge(base, packs["both"], test, ["en"], lines=2, beam=1, others=0)
    assert scored(none)["zero-shot"] == []


def test_lines_are_taken_where_there_is_text_on_both_sides(base: Base, packs: dict[str, Pack], tmp_path: Path) -> None:
    texts = {
        "el": ["", "", "κεκε", "λαμα", "κ" * 600],
        "en": ["bada", "dada", "fada", "kada", "lada"],
        "fr": ["pa", "", "", "", ""],
    }
    for language, lines in texts.items():
        (tmp_path / f"test.{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    verdict = judge(base, packs["el"], Corpus.open(tmp_path, "test"), ["en"], lines=2, beam=1)
    assert {name: entry["lines"] for name, entry in verdict.scores.items()} == {"el-en": 2}
    more = judge(base, packs["el"], Corpus.open(tmp_path, "test"), ["en"], lines=9, beam=1)
    assert more.scores["el-en"]["lines"] == 2  # the last one is no sentence


def write_test(folder: Path, **texts: list[str]) -> Corpus:
    for language, lines in texts.items():
        (folder / f"test.{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Corpus.open(folder, "test")


def test_directions_with_long_lines_only_are_left_out(base: Base, packs: dict[str, Pack], tmp_path: Path) -> None:
    corpus = write_test(tmp_path, el=["κε " * 250, "λαμα"], en=["bada", ""], fr=["", "pa"])
    found = judge(base, packs["el"], corpus, ["en"], beam=1)
    assert found is not None
    assert scored(found) == {"trained": [], "zero-shot": ["el-fr"]}
    assert found.words.startswith("No test line is of a trained direction. Zero-shot: ")
    everything = judge(base, packs["el"], corpus, ["en", "fr"], beam=1)
    assert everything is not None and scored(everything) == {"trained": ["el-fr"], "zero-shot": []}


def test_without_a_line_that_can_be_judged_there_is_no_verdict(base: Base, packs: dict[str, Pack], tmp_path: Path) -> None:
    corpus = write_test(tmp_path, el=["κε " * 250] * 3, en=["bada"] * 3)
    assert judge(base, packs["el"], corpus, ["en"], beam=1) is None
    assert f"no line of the test text in {tmp_path} has text on both sides and at most 512 characters" in no_verdict(corpus)
    # The other way round it is the short side that is translated.
    other = write_test(tmp_path, el=["κε " * 250] * 3, en=["bada"] * 3)
    assert judge(base, packs["both"], other, ["en"], beam=1) is not None


def test_entries_name_both_sides(base: Base, packs: dict[str, Pack], graft_corpus: Path) -> None:
    found = judge(base, packs["el"], Corpus.open(graft_corpus, "test"), ["en"], lines=2, beam=1)
    assert found is not None
    assert {name: (entry["source"], entry["target"]) for name, entry in found.scores.items()} == {
        "el-en": ("el", "en"),
        "el-fr": ("el", "fr"),
        "el-ru": ("el", "ru"),
    }


def evaluation(direction: str, count: int) -> Evaluation:
    source, target = direction.split("-")
    lines = [f"{direction} {'x' * (number % 30)} {number}" for number in range(count)]
    return Evaluation(
        Direction(source, target), score_direction(lines, lines, source=source, target=target), lines, lines, lines
    )


@pytest.mark.parametrize("count", [1, 4, 30, 500])
def test_samples_are_different_lines_of_every_direction_in_turn(count: int) -> None:
    samples = sample_translations([evaluation("el-en", count), evaluation("el-fr", count)], 10)
    assert len(samples) == min(10, 2 * count)
    assert len({sample["source"] for sample in samples}) == len(samples)
    assert [sample["direction"] for sample in samples[:2]] == ["el-en", "el-fr"]


def verdict(
    trained: float, zero_shot: float | None = None, pivot: float | None = None, *, lines: int = 200, split: str = "test"
) -> Verdict:
    scores: dict[str, dict[str, Any]] = {"el-fr": {"chrf": trained, "lines": lines, "zero_shot": False}}
    if zero_shot is not None:
        scores["el-ru"] = {"chrf": zero_shot, "lines": 200, "zero_shot": True}
        scores["el-ru"] |= {"pivot": {"through": "fr", "chrf": pivot}} if pivot is not None else {}
    return Verdict(split, 5, scores, [])


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (verdict(80), "Trained directions: chrF 80.0. The test text has no sentences in other languages of the base"),
        (verdict(80, 60), "Trained directions: chrF 80.0. Zero-shot: 60.0."),
        (verdict(80, 60, 70), "Zero-shot: 60.0, and 70.0 through fr: for these, translate with --pivot fr."),
        (verdict(80, 70, 60), "and 60.0 through fr: no pivot is needed."),
        (verdict(80, 70, 70.5), "and 70.5 through fr: either will do, and no pivot is quicker."),
    ],
)
def test_the_words_say_whether_a_pivot_is_better(found: Verdict, words: str) -> None:
    assert words in found.words


def test_the_words_say_so_where_scores_rest_on_few_lines() -> None:
    assert "Scored on" not in verdict(80, lines=100).words
    few = verdict(80, lines=13, split="valid").words
    assert "Scored on 13 lines of the valid text, by which the best checkpoint was chosen too: a rough sign." in few
    assert "Scored on as few as 1 line of the test text: a rough sign." in verdict(80, 60, lines=1).words


def evaluation_of(*lines: tuple[str, str, str]) -> Evaluation:
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
    found = count_numbers([evaluation_of((source, hypothesis, reference))])
    assert (found.lines, found.wrong) == expected


def test_the_share_is_of_lines_with_a_number() -> None:
    assert count_numbers([]).share == 0.0
    two = evaluation_of(("1 α", "1 a", "1 a"), ("2 α", "3 a", "2 a"), ("α", "a", "a"))
    assert count_numbers([two, two]) == Numbers(4, 2) and count_numbers([two]).share == 0.5
