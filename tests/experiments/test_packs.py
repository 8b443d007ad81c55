"""Many packs from one file: the shipped one makes sense, and a small batch trains, scores, composes and is resumable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graftmt.configuration import apply_overrides, from_mapping, load_yaml
from graftmt.experiments.packs import PackBatch, run_packs
from graftmt.packs import Recipe

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "configs" / "docs-packs.yaml"


def test_the_shipped_file_can_be_used() -> None:
    batch = from_mapping(PackBatch, load_yaml(SHIPPED))
    assert len({entry.name for entry in batch.packs}) == len(batch.packs)
    for entry in batch.packs:
        assert str(Recipe.parse(entry.recipe)) == entry.recipe


@pytest.fixture
def small_batch(tmp_path: Path, graft_base, graft_corpus: Path) -> PackBatch:
    values = load_yaml(SHIPPED)
    packs = [
        {"name": "reads", "language": "el", "side": "source", "recipe": "embed"},
        {"name": "writes", "language": "uk", "side": "target", "recipe": "embed + dec-last-layer", "learning_rate": 0.001},
    ]
    changes = [
        f"base={graft_base()}",
        f"corpus={graft_corpus}",
        f"output={tmp_path / 'out'}",
        f"packs={json.dumps(packs)}",
        "base_dtype=fp32",
        "stage.packed=false",
        "compile=false",
        "lines=3",
        "merges=30",
        "zero_shot=[fr, ru]",
        "stage.steps=4",
        "stage.batch_tokens=512",
        "validation.lines=3",
        "device=cpu",
    ]
    return from_mapping(PackBatch, apply_overrides(values, changes))


def test_a_batch_trains_scores_and_composes_and_does_nothing_twice(small_batch: PackBatch) -> None:
    said: list[str] = []
    results = run_packs(small_batch, said.append)
    assert set(results["packs"]) == {"reads", "writes"}
    scores = results["packs"]["reads"]["scores"]
    assert {name: entry["zero_shot"] for name, entry in scores.items()} == {"el-en": False, "el-fr": True, "el-ru": True}
    assert set(results["compositions"]) == {"reads → writes"}
    assert set(results["compositions"]["reads → writes"]) == {"composed", "pivot"}
    stored: dict[str, Any] = json.loads((small_batch.output / "results.json").read_text(encoding="utf-8"))
    assert stored == results
    said.clear()
    assert run_packs(small_batch, said.append)["packs"] == results["packs"]
    assert not said
