"""The proof holds for every kind of pack, and a base that was touched anywhere fails it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from graftmt.adding.verification import verify
from graftmt.base import Base
from graftmt.errors import GraftError
from graftmt.packs import Pack
from graftmt.translator import Translator


@pytest.fixture(scope="module", params=["source", "decoder"])
def folder(request: pytest.FixtureRequest, graft_base: Callable[..., Path]) -> Path:
    return graft_base("pre", request.param)


@pytest.fixture(scope="module")
def packs(folder: Path, train_graft: Callable[..., Pack], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pack]:
    runs, base = tmp_path_factory.mktemp("verification"), Base.load(folder)
    recipes = {
        "layer": ("source", "embed + enc-first-layer", ("el",)),
        "parallel": ("source", "embed + parallel-enc-adapters-all(4)", ("el",)),
        "two": ("target", "embed + enc-first-layer + dec-last-layer", ("el", "uk")),
    }
    return {
        name: train_graft(runs / name, base, side, recipe, languages=languages, steps=2)
        for name, (side, recipe, languages) in recipes.items()
    }


@pytest.mark.slow
def test_packs_leave_the_base_as_it_was_and_all_that_can_be_used_are(folder: Path, packs: dict[str, Pack]) -> None:
    found = verify(folder, packs, lines=2, beam=2)
    assert found.base_unchanged
    assert found.to_dict()["base_unchanged"] is True
    assert found.packs == ("layer", "parallel", "two")
    assert found.fingerprint == Base.load(folder).fingerprint
    # Two packs with a first encoder layer of their own do not go together; el to el is no direction.
    assert found.pack_directions == ("el-en", "el-en", "en-el", "en-uk", "el-uk")
    assert found.directions == ("en-fr", "fr-ru", "ru-en")
    assert found.lines == 6


def test_lines_are_those_given_where_there_are_some(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    translate = Translator.translate_requests

    def hear(self: Translator, requests: Any, *arguments: Any) -> Any:
        seen.extend(request.line for request in requests)
        return translate(self, requests, *arguments)

    monkeypatch.setattr(Translator, "translate_requests", hear)
    verify(folder, [], texts={"en": ["", "bada", "dada", "fada"]}, lines=2, beam=1)
    assert seen[:2] == ["bada", "dada"]
    assert all(line.strip() for line in seen)
    assert len(set(seen)) == 4  # two are made up for the other languages


def test_a_base_in_memory_is_looked_at_where_it_is(graft_base: Callable[..., Path]) -> None:
    base = Base.load(graft_base())
    assert verify(base, [], lines=1, beam=1) == verify(graft_base(), [], lines=1, beam=1)
    assert verify(Base.load(graft_base(), dtype="bf16"), [], lines=1, beam=1).base_unchanged
    with torch.no_grad():
        base.model.source_embedding.weight[unused_row(base)] += 1
    found = verify(base, [], lines=1, beam=1)
    assert found.stored_unchanged and not found.resident_unchanged and not found.base_unchanged


def test_what_was_never_stored_and_what_is_no_base_cannot_be_verified(graft_base: Callable[..., Path]) -> None:
    base = Base.load(graft_base())
    base.folder = None
    with pytest.raises(GraftError, match=r"never stored.*base\.save"):
        verify(base, [])
    with pytest.raises(GraftError, match="the base is"):
        verify(Translator(base), [])  # type: ignore[arg-type]


def unused_row(base: Base) -> int:
    """Of a piece in a script that the text below is not in."""
    return next(row for row, symbol in enumerate(base.tokenizer.vocabulary.symbols) if "б" in symbol)


@pytest.mark.parametrize(
    ("what", "kept"),
    [
        (lambda base: base.model.encoder.layers[0].ffn.up.weight, {"stored_unchanged"}),
        # A row that no text here uses: the outputs are the same, the bytes are not.
        (lambda base: base.model.source_embedding.weight[unused_row(base)], {"stored_unchanged", "outputs_identical"}),
    ],
)
def test_a_base_that_is_touched_while_packs_are_used_fails(
    graft_base: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, what: Callable[[Base], torch.Tensor], kept: set[str]
) -> None:
    translate = Translator.translate_requests
    calls: list[int] = []

    def touch(self: Translator, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            with torch.no_grad():
                what(self.base).add_(0.01)
        return translate(self, *arguments)

    monkeypatch.setattr(Translator, "translate_requests", touch)
    folder = graft_base(embeddings="separate")
    found = verify(folder, [], texts={name: ["bada"] for name in ("en", "fr", "ru")}, lines=1, beam=1)
    assert not found.base_unchanged
    looks = {name: getattr(found, name) for name in ("stored_unchanged", "resident_unchanged", "outputs_identical")}
    assert {name for name, fine in looks.items() if fine} == kept
