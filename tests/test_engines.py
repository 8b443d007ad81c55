"""int8 on a CPU: made once for what compositions share, near the model it was made from, which it leaves alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from graftmt.base import Base, fingerprint, parameters
from graftmt.decoding import SearchOptions, int8
from graftmt.decoding.int8 import Int8Linear, Int8Weights
from graftmt.errors import ConfigError
from graftmt.model import ModelConfig, Transformer
from graftmt.model.embeddings import Projection
from graftmt.packs import Pack, Recipe, create_pack
from graftmt.text import Subwords
from graftmt.translation_requests import Request
from graftmt.translator import Translator

WIDE = {"model_dim": 64, "ffn_dim": 128, "heads": 2}


@pytest.fixture(autouse=True)
def every_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of test models are far too small to gain from int8."""
    monkeypatch.setattr(int8, "SMALLEST", 1)


@pytest.fixture(scope="module")
def base(graft_base: Callable[..., Path]) -> Base:
    return Base.load(graft_base(**WIDE))


@pytest.fixture(scope="module")
def packs(base: Base, graft_subwords: Callable[..., Path]) -> list[Pack]:
    def make(side: str, language: str, recipe: str) -> Pack:
        subwords = Subwords.load(graft_subwords(language))
        return create_pack(base, side=side, languages=[language], recipe=Recipe.parse(recipe), subwords=subwords)  # type: ignore[arg-type]

    return [
        make("source", "el", "embed + enc-adapters-all(4)"),
        make("source", "uk", "embed + enc-lora-all(4)"),
        make("target", "uk", "embed + dec-last-layer"),
    ]


def linears(model: Transformer) -> list[nn.Module]:
    return [module for module in model.modules() if isinstance(module, nn.Linear | Projection | Int8Linear)]


def test_the_model_that_is_given_stays_as_it_is(base: Base) -> None:
    before = fingerprint(parameters(base.model), base.model.config, base.tokenizer)
    small = Int8Weights().model(base.model)
    assert all(isinstance(module, Int8Linear) for module in linears(small))
    assert not any(isinstance(module, Int8Linear) for module in linears(base.model))
    assert fingerprint(parameters(base.model), base.model.config, base.tokenizer) == before == base.fingerprint


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_what_comes_out_is_near(graft_base: Callable[..., Path], norm: str) -> None:
    model = Base.load(graft_base(norm, **WIDE)).model
    small = Int8Weights().model(model)
    source, target = torch.randint(5, 60, (4, 9)), torch.randint(5, 60, (4, 7))
    with torch.inference_mode():
        right, near = model(source, target), small(source, target)
    assert not torch.equal(right, near)
    assert (right - near).std() < 0.1 * right.std()


def test_compositions_share_what_the_base_has(base: Base, packs: list[Pack]) -> None:
    translator = Translator(base, packs, dtype="int8")
    assert translator.engine.how == "int8"
    models = [translator.searcher(translator.composition(*pair)).model for pair in (("en", "fr"), ("el", "fr"), ("en", "uk"))]  # type: ignore[attr-defined]
    first = models[0].encoder.layers[0].self_attention.query
    assert isinstance(first, Int8Linear) and first is models[2].encoder.layers[0].self_attention.query
    assert any(module is first for module in models[1].modules())  # below its adapters
    last = [model.decoder.layers[-1].ffn.up for model in models]
    assert last[0] is last[1] and last[0] is not last[2]  # the pack's own layer
    folded = translator.searcher(translator.composition("uk", "fr")).model.encoder.layers[0].self_attention.query  # type: ignore[attr-defined]
    assert isinstance(folded, Int8Linear) and folded is not first


def test_it_translates_with_packs_from_several_directions(base: Base, packs: list[Pack]) -> None:
    lines = {"en": ["bada kofe gelo", "", "fofe"], "el": ["καλο μενα", "λαπο"]}
    wanted = [Request(line, *pair) for pair in (("en", "fr"), ("el", "uk"), ("el", "en")) for line in lines[pair[0]]]
    options = SearchOptions(beam=3, max_length=6, n_best=2)
    found = Translator(base, packs, dtype="int8").translate_requests(wanted, options)
    assert [len(each) for each in found] == [2, 1, 2, 2, 2, 2, 2]
    assert Translator(base, packs, dtype="int8").translate_requests(wanted, options) == found


def test_small_matrices_stay_as_they_are(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8, "SMALLEST", 64 * 128)
    small = Int8Weights().model(base.model)
    layer = small.decoder.layers[0]
    assert isinstance(layer.ffn.up, Int8Linear) and isinstance(layer.self_attention.query, nn.Linear)
    Translator(base, dtype="int8").translate(["bada"] * 8, source="en", target="fr")  # the others are packed for the search


def test_a_subclass_with_a_forward_of_its_own_stays(base: Base) -> None:
    class Doubled(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 2 * super().forward(x)

    model = Transformer.build(ModelConfig(**WIDE, encoder_layers=1, decoder_layers=1), 50).eval()  # type: ignore[arg-type]
    model.encoder.layers[0].ffn.up = Doubled(64, 128)
    assert type(Int8Weights().model(model).encoder.layers[0].ffn.up) is Doubled


def test_what_it_is_not_for(base: Base, graft_base: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    half = Base.load(graft_base(**WIDE), dtype="bf16")
    with pytest.raises(ConfigError, match="fp32 on a CPU"):
        Translator(half, dtype="int8")
    elsewhere = Base.load(base.folder or "")
    elsewhere.model.to("meta")  # stands for a GPU
    with pytest.raises(ConfigError, match="CPU"):
        Translator(elsewhere, dtype="int8")
    with monkeypatch.context() as patch:
        patch.setattr(type(torch.backends.quantized), "supported_engines", [], raising=False)
        with pytest.raises(ConfigError, match="kernels"):
            Translator(base, dtype="int8")


def test_the_command(graftmt: Any, base: Base) -> None:
    found = graftmt(
        "translate", "-b", str(base.folder), "-s", "en", "-t", "fr", "--dtype", "int8", "--max-length", "5", stdin=b"bada\n\n"
    )
    assert found.code == 0 and len(found.stdout.splitlines()) == 2
