"""A composition as a CTranslate2 model gives the same log-probabilities, for everything that a pack can have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from interop.export.native import forced, recipes_of_tables, searched, source_rows
from interop.export.other_programs import InCTranslate2, largest_difference

from graftmt.errors import ExportError
from graftmt.interop.export.row_names import row_names
from graftmt.interop.export.targets.ctranslate2 import write_model
from graftmt.packs import Composition

LINES = {
    "en": ["bada kofe gelo", "lako", "fofe bage dalo kebo dafo", "Gelo, 7 dafo!"],
    "fr": ["pazi tura sipu", "vuta", "zipa ruti savu pita zuri", "pazi"],
    "el": ["καλο μενα ροπε", "λαπο", "νορε κεμα πολα ρανε μεκο", "ΡΟΠΕ 12 Μένα — fada 漢"],
    "uk": ["банії гізу", "зажу", "нубі вага жузі баву гана", "Зажу"],
}
Composed = Callable[..., Composition]
NEAR = 1e-4
MIXED = [
    ("embed + enc-adapters-all(4)", "embed + adapters-all(4) + non-tied"),
    ("embed + enc-lora-all(2) + enc-first-layer", "embed + dec-lora-1,3(2, alpha=4) + parallel-adapters-all(3)"),
    ("embed + parallel-enc-adapters-2(5)", "embed + code:none"),
    ("embed", "embed + dec-last-layer + code:proxy:ru"),
    ("embed + enc-norm + enc-biases", ""),
    ("", "embed + non-tied + dec-adapters-all(4)"),
    ("", ""),
]
PRE_NORM = [{}, {"placement": "decoder"}, {"embeddings": "separate", "output_bias": True}]
POST_NORM = [{"norm": "post"}, {"norm": "post", "placement": "decoder", "embeddings": "tied-target", "activation": "gelu"}]


def names_of(folder: Path, side: str) -> list[str]:
    path = folder / f"{side}_vocabulary.json"
    names: list[str] = json.loads((path if path.exists() else folder / "shared_vocabulary.json").read_text(encoding="utf-8"))
    return names


def difference(composition: Composition, folder: Path) -> float:
    source, target = "el" if composition.source else "en", "uk" if composition.target else "fr"
    expected = forced(composition, source, target, list(zip(LINES[source], LINES[target], strict=False)))
    program = InCTranslate2(composition, target, folder)
    assert (program.sources, program.targets) == (names_of(folder, "source"), names_of(folder, "target"))
    return largest_difference(expected, program)


@pytest.mark.parametrize("base", PRE_NORM, ids=str)
@pytest.mark.parametrize("recipes", MIXED, ids=" | ".join)
def test_same_log_probabilities_pre_norm(composed: Composed, tmp_path: Path, base: Any, recipes: Any) -> None:
    assert difference(composed(*recipes, **base), tmp_path) < NEAR


@pytest.mark.parametrize("base", POST_NORM, ids=str)
@pytest.mark.parametrize("recipes", MIXED[1:5], ids=" | ".join)
def test_same_log_probabilities_post_norm(composed: Composed, tmp_path: Path, base: Any, recipes: Any) -> None:
    assert difference(composed(*recipes, **base), tmp_path) < NEAR


def test_a_source_code_that_is_lent(composed: Composed, tmp_path: Path) -> None:
    composition = composed("embed + code:fixed:fr", "embed + code:fixed:en", placement="decoder")
    assert difference(composition, tmp_path) < NEAR


@pytest.mark.slow
@pytest.mark.parametrize("placement", ["source", "decoder"])
def test_every_recipe_of_tables_2_and_3(composed: Composed, tmp_path: Path, placement: str) -> None:
    recipes = recipes_of_tables()
    for number, recipe in enumerate((*recipes["source"], *recipes["target"])):
        pair = (recipe, "embed") if recipe in recipes["source"] else ("embed", recipe)
        assert difference(composed(*pair, placement=placement), tmp_path / str(number)) < NEAR, recipe


@pytest.mark.parametrize("activation", ["gelu", "silu"])
def test_adapters_with_relu_among_other_activations(composed: Composed, tmp_path: Path, activation: str) -> None:
    composition = composed("embed + enc-adapters-all(4)", "embed + adapters-all(4)", activation=activation)
    assert difference(composition, tmp_path) < NEAR


def test_serial_adapters_after_post_norm_layers_are_refused(composed: Composed, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"enc-adapters-all\(4\).*parallel"):
        write_model(composed("embed + enc-adapters-all(4)", "", norm="post"), tmp_path)
    assert not any(tmp_path.iterdir())


def test_greedy_search_finds_the_same(composed: Composed, tmp_path: Path) -> None:
    """Log-probabilities are compared above; this is about what surrounds them: prefix, start and end, forbidden rows."""
    composition = composed("embed + enc-adapters-all(4)", "embed + dec-last-layer", placement="decoder")
    expected = searched(composition, "el", "uk", LINES["el"], beam=1, max_length=8)
    rows = [source_rows(composition, "el", "uk", line) for line in LINES["el"]]
    assert InCTranslate2(composition, "uk", tmp_path).greedy(rows, 8) == expected


def test_rows_have_different_names(composed: Composed) -> None:
    composition = composed("embed", "embed + code:fixed:en", placement="decoder")
    names = row_names(composition, "target", len(composition.codec.text_of("target")) + 1)
    assert len(set(names)) == len(names) and names[-1] == "<lang:uk>" and "<lang:en>" in names


@pytest.mark.parametrize("quantization", ["float16", "bfloat16", "int8", "int8_float32"])
def test_quantised_models_are_smaller_and_close(composed: Composed, tmp_path: Path, quantization: str) -> None:
    composition = composed("embed + enc-adapters-all(4)", "embed + non-tied")
    sizes = {}
    for name in ("float32", quantization):
        (tmp_path / name).mkdir()
        write_model(composition, tmp_path / name, name)
        sizes[name] = (tmp_path / name / "model.bin").stat().st_size
    assert sizes[quantization] < 0.75 * sizes["float32"]
    before = [parameter.clone() for parameter in composition.model.parameters()]
    assert all((one == other).all() for one, other in zip(before, composition.model.parameters(), strict=True))
