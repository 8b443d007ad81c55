"""The paper's ways to augment are read as it writes them, and the lines they mean are chosen as it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftmt.augmentation.line_choice import Plan, Spec, make_plan, spread
from graftmt.data import Corpus
from graftmt.errors import ConfigError, DataError, LanguageError

LINES = 200


@pytest.mark.parametrize(
    ("text", "canonical", "title"),
    [
        ("multi-aligned", "multi-aligned", "multi-aligned"),
        ("multi-aligned-bt", "multi-aligned-bt", "multi-aligned (BT)"),
        ("EL multi-aligned (BT)", "multi-aligned-bt", "multi-aligned (BT)"),
        ("+ multi-aligned", "multi-aligned", "multi-aligned"),
        ("1000", "1000", "1k lines per lang"),
        ("1k", "1000", "1k lines per lang"),
        ("1k-bt", "1000-bt", "1k lines per lang (BT)"),
        ("1k (BT)", "1000-bt", "1k lines per lang (BT)"),
        ("1K lines per lang (BT)", "1000-bt", "1k lines per lang (BT)"),
        ("100 lines per lang (BT)", "100-bt", "100 lines per lang (BT)"),
        ("20k lines per language", "20000", "20k lines per lang"),
        ("1,500", "1500", "1500 lines per lang"),
        ("1.5k bt", "1500-bt", "1500 lines per lang (BT)"),
        ("  2m ", "2000000", "2000k lines per lang"),
    ],
)
def test_specs_are_read_as_people_and_the_paper_write_them(text: str, canonical: str, title: str) -> None:
    spec = Spec.parse(text, ["el"])
    assert (str(spec), spec.title) == (canonical, title)
    assert Spec.parse(str(spec)) == Spec.parse(spec.title) == spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("multi-alinged", "did you mean 'multi-aligned'"),
        ("1000 words", "expected multi-aligned, multi-aligned-bt, N or N-bt"),
        ("", "is not known"),
        ("bt", "is not known"),
        ("-5", "is not known"),
        ("0", "whole number from 1"),
        ("1.5", "whole number from 1"),
        ("UK multi-aligned", "is of 'uk', but what is added is el"),
    ],
)
def test_other_specs_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Spec.parse(text, ["el"])


Make = Callable[..., Plan]


@pytest.fixture
def plan(tmp_path: Path) -> Make:
    """`plan("100-bt", el=[…], en=[…], fr=[…])`: texts by language; el, en and fr in 200 different lines unless given."""

    def make(spec: str, *, new: Sequence[str] = ("el",), languages: Sequence[str] = ("fr", "de"), **options: Any) -> Plan:
        texts = {name: [f"{name} {n}" for n in range(LINES)] for name in (*new, "en", "fr", "de")}
        texts |= {name: options.pop(name) for name in list(options) if name in (*texts, "uk")}
        for language, lines in texts.items():
            if lines is not None:
                (tmp_path / f"train.{language}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        corpus = Corpus.open(tmp_path, "train")
        values = {"new": new, "pivot": "en", "languages": languages, "named": False, "seed": 1, **options}
        return make_plan(Spec.parse(spec), corpus, **values)

    return make


@pytest.mark.parametrize("spec", ["20", "20-bt"])
def test_n_lines_of_each_language_spread_over_the_corpus(plan: Make, spec: str) -> None:
    made = plan(spec)
    for language in ("fr", "de"):
        lines = made.lines(language)
        assert len(lines) == 20
        assert list(lines // (LINES // 20)) == list(range(20))  # one of each stretch
    assert made.kept.all()
    assert made.pairs("fr", made.chosen["fr"]) == {"el-fr": 20}


def test_the_choice_depends_on_the_seed_and_the_languages_alone(plan: Make) -> None:
    made = plan("50-bt")
    again = plan("50-bt", languages=("de",))
    other = plan("50-bt", seed=2)
    assert np.array_equal(made.chosen["de"], again.chosen["de"])
    assert not np.array_equal(made.chosen["de"], made.chosen["fr"])
    assert not np.array_equal(made.chosen["de"], other.chosen["de"])


def test_real_lines_are_those_that_have_text_also_without_the_pivot(plan: Make) -> None:
    french = [f"fr {n}" if n % 2 else "" for n in range(LINES)]
    english = [f"en {n}" if n < 100 else "" for n in range(LINES)]
    made = plan("10", fr=french, en=english, languages=("fr",))
    lines = made.lines("fr")
    assert len(lines) == 10
    assert (lines % 2 == 1).all()
    assert (lines >= 100).any()
    assert list(np.flatnonzero(made.kept)) == sorted({*range(100), *lines.tolist()})


def test_translated_lines_are_those_that_have_the_pivot(plan: Make) -> None:
    english = [f"en {n}" if n % 3 == 0 else " " for n in range(LINES)]
    made = plan("30-bt", en=english, fr=None, de=None)
    assert all((made.lines(language) % 3 == 0).all() for language in ("fr", "de"))


def test_a_text_is_chosen_once(plan: Make) -> None:
    english = [f"en {n % 40}" for n in range(LINES)]
    made = plan("1000-bt", en=english, fr=None, de=None)
    assert list(made.lines("fr")) == list(range(40))
    assert made.repeated == LINES - 40
    assert made.notes[0] == "el-fr: 40 lines, not 1,000: the corpus has no more different ones"
    assert made.kept.all()  # the pairs with the pivot are all there nevertheless
    pairs = plan("1000", el=["a", "b"] * 100, fr=["x", "x", "y", "z"] * 50, languages=("fr",))
    assert len(pairs.lines("fr")) == 4


def test_multi_aligned_takes_all_real_lines(plan: Make) -> None:
    greek = [f"el {n}" if n % 2 else "" for n in range(LINES)]
    french = [f"fr {n % 7}" if n % 5 == 0 else "" for n in range(LINES)]
    made = plan("multi-aligned", el=greek, fr=french)
    assert list(made.lines("fr")) == [n for n in range(LINES) if n % 2 and n % 5 == 0]
    assert made.pairs("de", made.chosen["de"]) == {"el-de": LINES // 2}
    assert int(made.kept.sum()) == LINES // 2


def test_multi_aligned_back_translated_takes_as_many_lines_as_are_real(plan: Make) -> None:
    french = [f"fr {n}" if n < 60 else "" for n in range(LINES)]
    made = plan("multi-aligned-bt", fr=french)
    assert len(made.lines("fr")) == 60
    assert made.lines("fr").max() > 180  # as many, but not the same
    assert len(made.lines("de")) == LINES


def test_each_new_language_gets_its_lines_and_a_line_of_both_counts_for_both(plan: Make) -> None:
    ukrainian = [f"uk {n}" if n >= 150 else "" for n in range(LINES)]
    made = plan("40-bt", new=("el", "uk"), uk=ukrainian)
    pairs = made.pairs("fr", made.chosen["fr"])
    assert pairs["uk-fr"] == 40
    assert 40 <= pairs["el-fr"] <= 80
    assert made.with_pivot == {"el": LINES, "uk": 50}


def test_languages_without_lines_are_noted_or_refused(plan: Make) -> None:
    empty = [""] * LINES
    made = plan("multi-aligned", fr=empty)
    assert made.languages == ("de",)
    assert "nothing for fr" in made.notes[0] and "1k-bt" in made.notes[0]
    with pytest.raises(LanguageError, match=r"no lines .* el and in fr"):
        plan("10", fr=empty, named=True)
    with pytest.raises(LanguageError, match="translates as many lines as it has; to translate a number of them"):
        plan("multi-aligned-bt", fr=empty, languages=("fr",))


def test_texts_that_do_not_fit_are_refused(plan: Make) -> None:
    with pytest.raises(DataError, match=r"no line .* el and in en"):
        plan("10-bt", en=[""] * LINES)
    with pytest.raises(DataError, match="different numbers of lines"):
        plan("10", fr=["a"], languages=("fr",))


@given(st.integers(0, 300), st.integers(0, 300), st.text(max_size=3))
def test_spread_chooses_different_lines_in_order(total: int, count: int, seed: str) -> None:
    lines = np.arange(total, dtype=np.int64) * 3
    chosen = spread(lines, count, seed)
    assert len(chosen) == min(count, total)
    assert (np.diff(chosen) > 0).all()
    assert set(chosen.tolist()) <= set(lines.tolist())
    assert np.array_equal(chosen, spread(lines, count, seed))
