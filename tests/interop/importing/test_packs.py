"""Packs on bases that were imported: both sides, combined, with the base unchanged; also where a base goes one way."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from peers import foreign_tokenizers as made

from graftmt import Translator, add
from graftmt.adding.verification import verify
from graftmt.decoding import SearchOptions
from graftmt.errors import LanguageError

QUICK: dict[str, Any] = {"steps": 2, "merges": 60, "test_lines": 3, "beam": 2, "augment": "none", "force": True}
RECIPES = {
    "source": "embed + init:overlap + enc-adapters-last(8)",
    "target": "embed + non-tied + dec-adapters-all(8) + init:alignment",
}


def pairs() -> list[tuple[str, str]]:
    lines = [line for line in made.sample_lines() if line.strip() and len(line) < 60]
    return [(line[::-1], other) for line, other in pairwise(lines)][:80]


@pytest.mark.parametrize(
    "name", ["nllb", *(pytest.param(name, marks=pytest.mark.slow) for name in ("marian", "mbart", "fsmt"))]
)
def test_packs_of_both_sides_are_added_and_combined(name: str, imported: Callable[[str], Any], tmp_path: Path) -> None:
    theirs, base, folder = imported(name)
    partners = {"source": theirs.target, "target": theirs.source}
    packs = [
        add(base, f"x{side[0]}a", pairs(), side=side, partner=partner, recipe=RECIPES[side], run=tmp_path / side, **QUICK)
        for side, partner in partners.items()
    ]
    for pack in packs:
        assert pack.card["initialisation"].get("overlap", 0) > 30  # rows that both vocabularies name alike
    assert packs[1].card["initialisation"].get("alignment", 0) > 0
    translator = Translator(base, packs)
    options = SearchOptions(max_length=5)
    for source, target in (("xsa", theirs.target), (theirs.source, "xta"), ("xsa", "xta")):
        assert len(translator.translate(["Ένα", ""], source=source, target=target, options=options)) == 2
    result = verify(folder, [tmp_path / side / "pack" for side in partners], lines=1, beam=2)
    assert result.base_unchanged
    assert result.pack_directions


def test_a_base_of_one_way_says_what_a_pack_can_be_trained_with(imported: Callable[[str], Any], tmp_path: Path) -> None:
    base = imported("marian").ours
    with pytest.raises(LanguageError, match="does not write en"):
        add(base, "xx", pairs(), partner="en", side="source", run=tmp_path / "a", **QUICK)
    with pytest.raises(LanguageError, match="does not read ru"):
        add(base, "xx", pairs(), partner="ru", side="target", run=tmp_path / "b", **QUICK)
    with pytest.raises(LanguageError, match="as a source"):
        Translator(base).translate(["x"], source="ru", target="en")
