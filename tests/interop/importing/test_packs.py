"""Packs on bases that were imported: both sides, combined, with the base unchanged; also where a base goes one way."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from peers import foreign_tokenizers as made

from graftmt import Translator, add
from graftmt.adding.verification import verify
from graftmt.decoding import SearchOptions
from graftmt.errors import LanguageError
from graftmt.packs.initialisation import OTHER_CASE, initialise
from graftmt.text import Tokenizer, pieces_of, train_subwords
from graftmt.text.pretokenization import TITLE_MARKER, UPPER_MARKER, lowercase

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


@pytest.mark.parametrize("name", ["m2m-100", "nllb"])
def test_rows_start_from_the_same_piece_in_another_case(name: str, imported: Callable[[str], Any]) -> None:
    """Imported vocabularies are cased, and a pack's own is not: their ▁Berlin is its ▁berlin."""
    base = imported(name).ours
    text, weight = base.tokenizer.side("source"), base.model.source_embedding.weight
    pack = Tokenizer(train_subwords({"xx": made.cldr_lines()}, merges=400), ("xx",))
    found = initialise(pack, text, weight, method="overlap", seed=1)
    row_of = {symbol: row for row, symbol in enumerate(text.symbols)}
    by_case: dict[str, set[str]] = {}
    for piece in pieces_of(text):
        by_case.setdefault(lowercase(piece), set()).add(piece)
    for row in pack.piece_rows:
        symbol = pack.symbols[row]
        others = set() if symbol in (UPPER_MARKER, TITLE_MARKER) else by_case.get(symbol, set())
        assert found.rules[row] == ("overlap" if symbol in row_of else OTHER_CASE if others else "random")
        if others:
            assert found.base_rows[row] in {row_of[piece] for piece in others}
            assert torch.equal(found.weight[row], weight[found.base_rows[row]])
    assert found.counts[OTHER_CASE] > 5


def test_a_base_of_one_way_says_what_a_pack_can_be_trained_with(imported: Callable[[str], Any], tmp_path: Path) -> None:
    base = imported("marian").ours
    with pytest.raises(LanguageError, match="does not write en"):
        add(base, "xx", pairs(), partner="en", side="source", run=tmp_path / "a", **QUICK)
    with pytest.raises(LanguageError, match="does not read ru"):
        add(base, "xx", pairs(), partner="ru", side="target", run=tmp_path / "b", **QUICK)
    with pytest.raises(LanguageError, match="as a source"):
        Translator(base).translate(["x"], source="ru", target="en")


def test_a_base_that_cannot_read_the_partner_makes_no_lines_and_says_so(imported: Callable[[str], Any], tmp_path: Path) -> None:
    theirs, base, _ = imported("marian-codes")
    heard: list[str] = []
    quick = {name: value for name, value in QUICK.items() if name != "augment"}
    pack = add(base, "xx", pairs(), partner=theirs.target, side="source", run=tmp_path / "a", say=heard.append, **quick)
    assert "enc-first-layer" not in str(pack.recipe)
    assert any(f"embeddings alone by default: the base does not read {theirs.target}" in line for line in heard)
    with pytest.raises(LanguageError, match=rf"cannot read '{theirs.target}'.*--augment none"):
        add(base, "xx", pairs(), partner=theirs.target, side="source", run=tmp_path / "b", augment="20-bt", **quick)


def test_what_one_side_cannot_do_is_known_before_the_other_is_made(imported: Callable[[str], Any], tmp_path: Path) -> None:
    theirs, base, _ = imported("marian-codes")
    with pytest.raises(LanguageError, match=f"does not read {theirs.target}"):
        add(base, "xx", pairs(), partner=theirs.target, run=tmp_path / "both", **QUICK)
    assert not (tmp_path / "both").exists()
