"""Imported models of every family, exported to CTranslate2, give the log-probabilities that they have here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.export.native import forced, noisy_pack
from interop.export.other_programs import InCTranslate2, largest_difference
from peers import foreign_tokenizers as made
from peers.foreign_models import MODELS

from graftmt import Base, SearchOptions, Translator, import_model
from graftmt.data import Direction
from graftmt.interop.export.exporting import export
from graftmt.packs import Composition, compose
from graftmt.text import Subwords

NEAR = 1e-4


def difference(composition: Composition, folder: Path, source: str, target: str) -> float:
    lines = [line for line in made.sample_lines() if line.strip() and len(line) < 60][:8]
    expected = forced(composition, source, target, list(zip(lines, reversed(lines), strict=True)))
    return largest_difference(expected, InCTranslate2(composition, target, folder))


QUICK = ("m2m-100", "mbart")


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MODELS])
def test_same_log_probabilities(name: str, tmp_path: Path, graft_subwords: Callable[..., Path]) -> None:
    theirs = MODELS[name](tmp_path / "theirs")
    import_model(theirs.folder, tmp_path / "base")
    base = Base.load(tmp_path / "base")
    assert difference(compose(base, fold=True), tmp_path / "alone", theirs.source, theirs.target) < NEAR
    pack = noisy_pack(base, name, "source", "embed + parallel-enc-adapters-all(4)", Subwords.load(graft_subwords("el")))
    assert difference(compose(base, source=pack, fold=True), tmp_path / "pack", "xx", theirs.target) < NEAR


def test_a_marian_model_goes_to_hugging_face_and_back(tmp_path: Path) -> None:
    """As MarianMTModel, which is read by its card: its text is not OPUS-MT's any more."""
    theirs = MODELS["marian"](tmp_path / "theirs")
    import_model(theirs.folder, tmp_path / "base")
    ours = Translator(tmp_path / "base")
    export(ours, [Direction(theirs.source, theirs.target)], tmp_path / "out", to="hugging-face")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["architectures"] == ["MarianMTModel"]
    import_model(tmp_path / "out", tmp_path / "again")
    again = Translator(tmp_path / "again")
    assert again.directions == ours.directions
    lines = [line for line in made.sample_lines() if line.strip() and len(line) < 60][:8]
    way = {"source": theirs.source, "target": theirs.target, "options": SearchOptions(beam=3, max_length=10), "n_best": 2}
    found, expected = ([one for both in each.translate(lines, **way) for one in both] for each in (again, ours))
    assert [one.text for one in found] == [one.text for one in expected]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=NEAR)
