"""Whole directions are translated as their lines are, each by its route."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.assessment import scoring_pool
from graftmt.assessment.direction_lines import direction_lines, evaluate_directions, with_sentences
from graftmt.base import Base
from graftmt.data import Corpus, Direction
from graftmt.decoding import SearchOptions
from graftmt.errors import DataError
from graftmt.packs import Pack
from graftmt.translator import Translator

OPTIONS = SearchOptions(beam=2, n_best=2, max_length=6)


@pytest.fixture(scope="module")
def translator(
    graft_base: Callable[..., Path], train_graft: Callable[..., Pack], tmp_path_factory: pytest.TempPathFactory
) -> Translator:
    """With packs that are trained for a moment, so that each does something of its own."""
    base, folder = Base.load(graft_base()), tmp_path_factory.mktemp("directions")
    greek = train_graft(folder / "el", base, "source", "embed + enc-adapters-all(4)", languages=("el",), steps=5)
    ukrainian = train_graft(folder / "uk", base, "target", "embed + parallel-dec-adapters-all(4)", languages=("uk",), steps=5)
    return Translator(base, [greek, ukrainian])


def test_directions_are_evaluated_by_route(translator: Translator, graft_corpus: Path) -> None:
    corpus = Corpus.open(graft_corpus, "test")
    directions = [Direction("el", "en"), Direction("en", "fr"), Direction("el", "uk")]
    direct = evaluate_directions(translator, corpus, directions, lines=4, options=OPTIONS)
    pivoted = evaluate_directions(translator, corpus, directions, lines=4, options=OPTIONS, pivot="en")
    for direction, found, other in zip(directions, direct, pivoted, strict=True):
        assert found.sources == other.sources == corpus.texts([direction.source], 4)[direction.source]
        assert found.references == corpus.texts([direction.target], 4)[direction.target]
        options: dict[str, Any] = {"source": direction.source, "target": direction.target, "options": OPTIONS}
        assert found.hypotheses == translator.translate(found.sources, **options)
        assert other.hypotheses == translator.translate(found.sources, pivot="en", **options)


def test_processes_of_their_own_give_the_same_scores(
    translator: Translator, graft_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, directions = Corpus.open(graft_corpus, "test"), [Direction("el", "en"), Direction("en", "fr")]
    alone = evaluate_directions(translator, corpus, directions, lines=4, options=OPTIONS)
    monkeypatch.setattr(scoring_pool, "FEWEST_LINES", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert evaluate_directions(translator, corpus, directions, lines=4, options=OPTIONS) == alone


def test_lines_that_are_all_too_long_are_not_said_to_be_missing(translator: Translator, tmp_path: Path) -> None:
    for language, line in {"el": "κε " * 250, "en": "bada", "fr": ""}.items():
        (tmp_path / f"test.{language}.txt").write_text(f"{line}\n" * 3, encoding="utf-8")
    corpus, directions = Corpus.open(tmp_path, "test"), [Direction("el", "en"), Direction("en", "el"), Direction("el", "fr")]
    assert with_sentences(corpus, [*directions, Direction("el", "ru")]) == [Direction("en", "el")]
    with pytest.raises(DataError, match=r"no line of el-en .*\b512\b"):
        direction_lines(corpus, directions[:1], pairs=2)
    with pytest.raises(DataError, match=r"no line .*el-fr\."):
        direction_lines(corpus, directions[2:], pairs=2)
    assert len(direction_lines(corpus, directions[:1])[0].sources) == 3  # where all lines are asked for, these are too
