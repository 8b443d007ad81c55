"""What a recipe means for an architecture: the tensors a pack has, and what cannot be."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from graftmt.errors import ConfigError
from graftmt.model import ModelConfig, Transformer
from graftmt.packs.parts import Setting, tensor_shapes
from graftmt.packs.recipe import Recipe

POST = ModelConfig(model_dim=16, ffn_dim=24, heads=2, encoder_layers=6, decoder_layers=6, norm="post")
PRE = ModelConfig(model_dim=16, ffn_dim=24, heads=2, encoder_layers=2, decoder_layers=3, norm="pre")


def shapes(text: str, config: ModelConfig = POST, side: str = "target", rows: int = 10, codes: int = 0):
    """Without a code unless `codes` says so: then each of so many languages has one."""
    text = text if codes else f"{text} + code:none"
    return tensor_shapes(Setting(recipe=Recipe.parse(text), config=config, side=side, rows=rows, languages=codes))


def replaced(text: str, config: ModelConfig = POST, side: str = "target") -> list[str]:
    """The pack's tensors that stand in the place of the base's."""
    return [name for name in shapes(text, config, side) if ".layers." in name or name.split(".")[1] == "norm"]


def adapters(text: str, stack: str) -> dict[int, tuple[int, bool]]:
    """Layer, counted from 0 → the adapter's dimension, and whether it is parallel."""
    found = shapes(text)
    layers = [int(name.split(".")[2]) for name in found if name.startswith(f"{stack}.adapters.") and "down.weight" in name]
    names = {layer: f"{stack}.adapters.{layer}." for layer in layers}
    return {layer: (found[f"{name}down.weight"][0], f"{name}norm.weight" not in found) for layer, name in names.items()}


@pytest.fixture(scope="module", params=[POST, PRE], ids=["post", "pre"])
def model(request: pytest.FixtureRequest) -> Transformer:
    with torch.device("meta"):
        return Transformer.build(request.param, 8)


@pytest.mark.parametrize("side", ["source", "target"])
def test_embeddings_alone_are_one_matrix_and_the_codes(side: str) -> None:
    assert shapes("embed", side=side) == {"embedding.weight": (10, 16)}
    codes = {"code.weight": (2, 16)} if side == "target" else {}
    assert shapes("embed", side=side, codes=2) == {"embedding.weight": (10, 16), **codes}


def test_an_untied_output_has_a_matrix_of_its_own() -> None:
    assert shapes("embed + non-tied") == {"embedding.weight": (10, 16), "output.weight": (10, 16)}


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_all_layers_are_all_parameters_of_a_stack_but_its_last_norm(model: Transformer, stack: str) -> None:
    found = replaced(f"embed + {stack[:3]}-all-layers", model.config)
    assert list(found) == [name for name, _ in model.named_parameters() if name.startswith(f"{stack}.layers.")]


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_norms_and_biases_are_those_of_norms_and_of_linear_maps(model: Transformer, stack: str) -> None:
    def of(kind: type[nn.Module], leaves: tuple[str, ...]) -> set[str]:
        modules = [name for name, module in model.named_modules() if isinstance(module, kind) and name.startswith(stack)]
        return {f"{name}.{leaf}" for name in modules for leaf in leaves}

    norms = replaced(f"embed + {stack[:3]}-norm", model.config)
    biases = replaced(f"embed + {stack[:3]}-biases", model.config)
    assert set(norms) == of(nn.LayerNorm, ("weight", "bias"))
    assert set(biases) == of(nn.Linear, ("bias",))
    assert (f"{stack}.norm.weight" in norms) == (model.config.norm == "pre")


def test_replaced_parameters_have_the_bases_names_shapes_and_order_each_once(model: Transformer) -> None:
    text = "embed + enc-norm + enc-biases + dec-biases + enc-first-layer + dec-last-layer"
    found = replaced(text, model.config)
    base = {name: tuple(value.shape) for name, value in model.named_parameters()}
    assert list(found) == [name for name in base if name in set(found)]
    pack = shapes(text, model.config)
    assert {name: pack[name] for name in found} == {name: base[name] for name in found}
    assert list(pack) == ["embedding.weight", *found]


def test_first_last_and_numbers_are_layers_from_zero() -> None:
    assert list(adapters("embed + enc-adapters-first(4)", "encoder")) == [0]
    assert list(adapters("embed + dec-adapters-last(4)", "decoder")) == [5]
    found = adapters("embed + enc-adapters-2,6(4) + parallel-enc-adapters-first(8)", "encoder")
    assert found == {0: (8, True), 1: (4, False), 5: (4, False)}
    assert list(found) == [0, 1, 5]
    assert all(name.startswith("decoder.layers.1.") for name in replaced("embed + dec-layer-2"))


def test_a_serial_adapter_has_a_norm_and_a_parallel_one_has_none() -> None:
    linear = {"down.weight": (4, 16), "down.bias": (4,), "up.weight": (16, 4), "up.bias": (16,)}
    serial = {"norm.weight": (16,), "norm.bias": (16,), **linear}
    for text, own in (("enc-adapters-2(4)", serial), ("parallel-enc-adapters-2(4)", linear)):
        expected = {"embedding.weight": (10, 16)} | {f"encoder.adapters.1.{name}": shape for name, shape in own.items()}
        assert shapes(f"embed + {text}") == expected


def test_a_tuned_layer_has_no_adapter_of_its_own_pack() -> None:
    text = "embed + dec-last-layer + adapters-all(4)"
    assert (list(adapters(text, "encoder")), list(adapters(text, "decoder"))) == ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4])


def test_norms_of_a_tuned_layer_add_only_those_of_the_others() -> None:
    def count(text: str) -> int:
        return sum(map(math.prod, shapes(text, PRE).values())) - 160

    both = count("embed + enc-first-layer + enc-norm")
    norms_of_one_layer = 2 * 2 * 16
    assert both == count("embed + enc-first-layer") + count("embed + enc-norm") - norms_of_one_layer


@pytest.mark.parametrize(
    ("text", "side", "words"),
    [
        ("embed + enc-adapters-9(4)", "source", "has no layer 9; expected 1 to 6"),
        ("embed + enc-adapters-1,7(4)", "source", "has no layer 7; expected 1 to 6"),
        ("embed + dec-layer-7", "target", "the base's decoder has no layer 7"),
        ("embed + dec-last-layer", "source", "the decoder belongs to the target language"),
        ("embed + dec-adapters-all(4)", "source", "the decoder belongs to the target language"),
        ("embed + adapters-all(4)", "source", "enc-adapters-all on this side"),
        ("embed + dec-norm", "source", "the decoder belongs to the target language"),
        ("embed + non-tied", "source", "the output projection belongs to the target language"),
        ("embed + dec-last-layer + dec-adapters-last(4)", "target", "decoder layer 6, which the pack tunes as a whole"),
        ("embed + enc-layer-2 + enc-adapters-2,3(4)", "source", "encoder layer 2, which the pack tunes as a whole"),
        ("embed + enc-adapters-6(4) + enc-adapters-last(4)", "source", "a second adapter on encoder layer 6"),
        ("embed + enc-all-layers + enc-adapters-all(4)", "source", "leaves none for adapters"),
    ],
)
def test_what_the_architecture_or_the_side_does_not_have_is_an_error(text: str, side: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        shapes(text, side=side)
    assert words in str(caught.value)
