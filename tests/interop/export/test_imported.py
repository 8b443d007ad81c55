"""Imported models of every family, exported to CTranslate2, give the log-probabilities that they have here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ctranslate2
import pytest
import torch
from interop.export.native import forced
from peers import foreign_tokenizers as made
from peers.foreign_models import MODELS

from graftmt import Base, import_model
from graftmt.interop.export.plain_model import plain_model
from graftmt.interop.export.row_names import row_names
from graftmt.interop.export.targets.ctranslate2 import write_model
from graftmt.packs import Composition, Recipe, compose, create_pack
from graftmt.text import Subwords

NEAR = 1e-4


def difference(composition: Composition, folder: Path, source: str, target: str) -> float:
    lines = [line for line in made.sample_lines() if line.strip() and len(line) < 60][:8]
    expected = forced(composition, source, target, list(zip(lines, reversed(lines), strict=True)))
    folder.mkdir()
    write_model(composition, folder)
    model = plain_model(composition.model)
    sources = row_names(composition, "source", len(model.encoder.embedding))
    targets = row_names(composition, "target", len(model.decoder.embedding))
    found = ctranslate2.Translator(str(folder), intra_threads=1).score_batch(
        [[sources[row] for row in line.source] for line in expected],
        [[targets[row] for row in (*line.prefix[1:], *line.target[:-1])] for line in expected],
    )
    return max(
        abs(own - other)
        for line, theirs in zip(expected, found, strict=True)
        for own, other in zip(line.log_probabilities, theirs.log_probs[len(line.prefix) - 1 :], strict=True)
    )


QUICK = ("m2m-100", "mbart")


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MODELS])
def test_same_log_probabilities(name: str, tmp_path: Path, graft_subwords: Callable[..., Path]) -> None:
    theirs = MODELS[name](tmp_path / "theirs")
    import_model(theirs.folder, tmp_path / "base")
    base = Base.load(tmp_path / "base")
    assert difference(compose(base, fold=True), tmp_path / "alone", theirs.source, theirs.target) < NEAR
    code = {"nllb": " + code:learned:eng_Latn", "mbart": " + code:learned:en_XX"}.get(name, "")
    recipe, subwords = Recipe.parse("embed + parallel-enc-adapters-all(4)" + code), Subwords.load(graft_subwords("el"))
    pack = create_pack(base, side="source", languages=("xx",), recipe=recipe, subwords=subwords)
    with torch.no_grad():
        for parameter in pack.parameters.values():
            parameter += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    assert difference(compose(base, source=pack, fold=True), tmp_path / "pack", "xx", theirs.target) < NEAR
