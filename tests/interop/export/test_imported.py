"""Imported models of every family, exported to CTranslate2, give the log-probabilities that they have here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from interop.export.native import forced, noisy_pack
from interop.export.other_programs import InCTranslate2, largest_difference
from peers import foreign_tokenizers as made
from peers.foreign_models import MODELS

from graftmt import Base, import_model
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
