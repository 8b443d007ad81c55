"""Same seeds, same packs: what version 0.1.0 made of these recipes, written down before components were one file each.

`same_packs.json` has, for each recipe, its canonical form and, by base and side, a digest of names and shapes in order and
sums over the first values and over what compositions of the pack give. Sums rather than hashes: other processors round
otherwise.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from graftmt.base import Base
from graftmt.packs import Recipe, compose, create_pack
from graftmt.text import Subwords

KNOWN: dict[str, Any] = json.loads(Path(__file__).with_name("same_packs.json").read_text(encoding="utf-8"))
BASES = ("pre-source", "post-decoder")


def checksum(tensor: Tensor) -> float:
    """A mean with other weights for each place, so that it shows what was exchanged."""
    flat = tensor.detach().double().flatten()
    return float((flat * torch.cos(torch.arange(len(flat), dtype=torch.double))).mean())


def facts(text: str, side: str, base: Base, subwords: Subwords) -> list[Any]:
    """Of a new pack: names and shapes, first values, scores of a composition before and after folding."""
    pack = create_pack(
        base,
        side=side,  # type: ignore[arg-type]
        languages=("el",),
        recipe=Recipe.parse(text),
        subwords=subwords,
        seed=3,
        trained_codes=["en"],
        translations={"▁κ": {"▁b": 1.0}},
    )
    names = "\n".join(f"{name} {tuple(tensor.shape)}" for name, tensor in pack.parameters.items())
    first = sum(number * checksum(tensor) for number, tensor in enumerate(pack.parameters.values(), 1))
    generator = torch.Generator().manual_seed(7)
    source, target = torch.tensor([[5, 9, 12, 7, 2], [6, 8, 2, 1, 1]]), torch.tensor([[2, 5, 9, 12], [2, 6, 8, 7]])
    with torch.no_grad():
        for parameter in pack.parameters.values():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
        models = [compose(base, **{side: pack}, fold=fold).model for fold in (False, True)]  # type: ignore[arg-type]
        scores = [checksum(model(source, target)) for model in models]
    return [hashlib.sha256(names.encode()).hexdigest()[:16], round(first, 6), *(round(score, 6) for score in scores)]


@pytest.fixture(scope="module")
def bases(graft_base: Callable[..., Path]) -> dict[str, Base]:
    return {name: Base.load(graft_base(*name.split("-"), encoder_layers=6, decoder_layers=6)) for name in BASES}


@pytest.mark.parametrize("text", KNOWN)
def test_a_recipe_makes_the_same_pack_as_before(text: str, bases: dict[str, Base], graft_subwords: Callable[..., Path]) -> None:
    expected = dict(KNOWN[text])
    assert str(Recipe.parse(text)) == expected.pop("canonical")
    subwords = Subwords.load(graft_subwords("el"))
    assert expected
    for case, (digest, *sums) in expected.items():
        name, _, side = case.rpartition(" ")
        found = facts(text, side, bases[name], subwords)
        assert found[0] == digest, case
        assert found[1:] == pytest.approx(sums, abs=3e-5), case
