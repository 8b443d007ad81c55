"""LoRA: a zero start, W + α/r · B A, updates of two packs that add up, folding, and all else that a component does."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from graftmt.base import Base
from graftmt.errors import ConfigError
from graftmt.model import ModelConfig, named_size
from graftmt.packs import Pack, Recipe, compose, create_pack, load_pack, save_pack
from graftmt.packs.component import Export
from graftmt.packs.components.lora import LowRank, LowRankUpdates, UpdatedLinear
from graftmt.packs.parts import Setting, shapes_of_vocabulary, tensor_shapes
from graftmt.text import Subwords
from graftmt.translator import Translator

MakePack = Callable[..., Pack]
Look = Callable[..., Any]

PRE = ModelConfig(model_dim=16, ffn_dim=24, heads=2, encoder_layers=2, decoder_layers=3, norm="pre")
ATTENTION = ("query", "key", "value", "output")


def shapes(text: str, side: Any = "target") -> dict[str, tuple[int, ...]]:
    setting = Setting(recipe=Recipe.parse(text), config=PRE, side=side, rows=10)
    return {name: shape for name, shape in tensor_shapes(setting).items() if ".lora." in name}


# Notation


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("embed + enc-lora-all(16)", "embed + enc-lora-all(16)"),
        ("embed + DEC-LORA-last ( r = 4 )", "embed + dec-lora-last(4)"),
        ("embed + enc-lora-{3,1,2} (rank=16)", "embed + enc-lora-1,2,3(16)"),
        ("embed + enc-lora-1(4) + enc-lora-3(4)", "embed + enc-lora-1,3(4)"),
        ("embed + enc-lora-first(4) + enc-lora-3(4, alpha=8)", "embed + enc-lora-first(4) + enc-lora-3(4, alpha=8)"),
        ("embed + lora-all(16, alpha=16)", "embed + lora-all(16)"),
        ("embed + dec-lora-all(16,alpha=32) + enc-lora-all(16, alpha = 32)", "embed + lora-all(16, alpha=32)"),
        ("enc-lora-all(2)@trained + enc-adapters-all(3) + embed", "embed + enc-adapters-all(3) + enc-lora-all(2)@trained"),
    ],
)
def test_spellings_have_one_canonical_form(written: str, canonical: str) -> None:
    assert str(Recipe.parse(written)) == canonical
    assert Recipe.parse(canonical) == Recipe.parse(written)


@pytest.mark.parametrize(
    ("text", "character", "words"),
    [
        ("embed + enc-lora-all", 9, "'enc-lora-all(16)'"),
        ("embed + enc-lora-all(0)", 22, "rank"),
        ("embed + enc-lora-all(4, alpha=0)", 31, "alpha"),
        ("embed + lora-last(4)", 9, "enc-lora-last or dec-lora-last"),
        ("embed + enc-lora-2,2(4)", 20, "a second time"),
        ("embed + enc-lora-all(4) + enc-lora-2(8)", 27, "second update"),
        ("embed + enc-lorra-all(4)", 9, "did you mean 'enc-lora-all(4)'?"),
    ],
)
def test_an_error_says_where(text: str, character: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Recipe.parse(text)
    assert f"character {character}: " in str(caught.value) and words in str(caught.value)


@pytest.mark.parametrize("changes", [{"rank": 0}, {"rank": 4, "alpha": -1}, {"rank": 4, "layers": (0,)}])
def test_values_are_checked_too(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        LowRankUpdates(**{"stack": "encoder", "layers": "all", **changes})


# Tensors


def test_every_map_of_attention_and_ffn_has_an_update() -> None:
    maps = {f"self_attention.{name}": (16, 16) for name in ATTENTION} | {"ffn.up": (24, 16), "ffn.down": (16, 24)}
    expected = {
        f"encoder.lora.{layer}.{name}.{own}.weight": shape
        for layer in range(2)
        for name, (height, width) in maps.items()
        for own, shape in (("down", (3, width)), ("up", (height, 3)))
    }
    assert shapes("embed + enc-lora-all(3)", "source") == expected
    decoder = shapes("embed + dec-lora-last(3)")
    assert {name.split(".")[2] for name in decoder} == {"2"}
    assert {f"decoder.lora.2.cross_attention.{name}.up.weight" for name in ATTENTION} <= decoder.keys()
    assert len(decoder) == 2 * (4 + 4 + 2)


def test_encoder_comes_before_decoder_and_layers_in_order() -> None:
    places = [tuple(name.split(".")[:3:2]) for name in shapes("embed + dec-lora-all(2) + enc-lora-2(3) + enc-lora-1(2)")]
    assert places == sorted(places, key=lambda place: (place[0] == "decoder", place[1]))


def test_layers_that_are_tuned_whole_are_skipped() -> None:
    found = shapes("embed + dec-layer-2 + lora-all(3)")
    assert {name.split(".")[2] for name in found if name.startswith("decoder")} == {"0", "2"}


@pytest.mark.parametrize(
    ("text", "side", "words"),
    [
        ("embed + enc-lora-9(4)", "source", "no layer 9"),
        ("embed + dec-lora-all(4)", "source", "target language"),
        ("embed + lora-all(4)", "source", "enc-lora-all on this side"),
        ("embed + enc-first-layer + enc-lora-1,2(4)", "source", "encoder layer 1"),
        ("embed + enc-all-layers + enc-lora-all(4)", "source", "leaves none"),
        ("embed + enc-lora-2(4) + enc-lora-last(4)", "source", "encoder layer 2"),
        ("embed + dec-layer-2@trained + dec-lora-all(4)", "target", "@trained"),
    ],
)
def test_what_the_architecture_or_the_side_does_not_have_is_an_error(text: str, side: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        shapes(text, side)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("lora", "other", "side"),
    [
        ("embed + enc-lora-all(57)", "embed + enc-adapters-all(512)", "source"),
        ("embed + lora-all(39)", "embed + dec-last-layer + enc-adapters-last(1024)", "target"),
    ],
)
def test_the_rows_of_our_tables_have_as_many_parameters(lora: str, other: str, side: Any) -> None:
    """Models (12) and (31) of the paper, on a Transformer Base."""
    config = named_size("base", norm="post")
    counts = [
        sum(map(math.prod, shapes_of_vocabulary(Recipe.parse(text), config, side=side, rows=4152).values()))
        for text in (lora, other)
    ]
    assert counts[0] == pytest.approx(counts[1], rel=0.003)


# Values


def fresh(base: Base, side: Any, recipe: str, subwords: Path, language: str = "el") -> Pack:
    recipe_ = Recipe.parse(recipe)
    return create_pack(base, side=side, languages=[language], recipe=recipe_, subwords=Subwords.load(subwords))


def test_it_begins_as_nothing(any_base: Base, graft_subwords: Callable[..., Path], outputs: Look) -> None:
    for side, text, direction in (("source", "enc-lora-all(3)", ("el", "fr")), ("target", "lora-all(3)", ("en", "el"))):
        plain, updated = (
            compose(any_base, **{side: fresh(any_base, side, recipe, graft_subwords("el"))})  # type: ignore[arg-type]
            for recipe in ("embed", f"embed + {text}")
        )
        assert outputs(updated, *direction).same_as(outputs(plain, *direction))


def test_a_begins_as_torch_begins_a_linear_map_and_b_as_zero(base: Base, graft_subwords: Callable[..., Path]) -> None:
    pack = fresh(base, "source", "embed + enc-lora-all(8)", graft_subwords("el"))
    for name, parameter in pack.parameters.items():
        if name.endswith("up.weight"):
            assert not parameter.any()
        elif name.endswith("down.weight"):
            bound = parameter.shape[1] ** -0.5
            assert parameter.abs().max() <= bound and float(parameter.detach().std()) == pytest.approx(
                bound / math.sqrt(3), rel=0.25
            )


def by_hand(base: Base, packs: list[Pack], scale: float, name: str) -> Tensor:
    """W + α/r · B A for the map of this name, as PEFT merges it."""
    weight = base.model.get_parameter(f"{name}.weight").detach().clone()
    for pack in packs:
        own = name.replace(".layers.", ".lora.")
        if f"{own}.up.weight" in pack.parameters:
            weight += scale * pack.parameters[f"{own}.up.weight"].detach() @ pack.parameters[f"{own}.down.weight"].detach()
    return weight


@pytest.mark.parametrize(("text", "scale"), [("(4)", 1.0), ("(4, alpha=8)", 2.0), ("(4, alpha=1)", 0.25)])
def test_the_weights_are_w_plus_alpha_over_r_times_b_a(base: Base, make_pack: MakePack, text: str, scale: float) -> None:
    source = make_pack(base, "source", f"embed + enc-lora-all{text}")
    target = make_pack(base, "target", f"embed + lora-all{text}", "uk", seed=2)
    folded, apart = (compose(base, source=source, target=target, fold=fold).model for fold in (True, False))
    for path, module in apart.named_modules():
        if type(module) is not UpdatedLinear:
            continue
        assert len(module.updates) == (2 if path.startswith("encoder") else 1)
        expected, found = by_hand(base, [source, target], scale, path), folded.get_submodule(path)
        assert type(found) is nn.Linear
        torch.testing.assert_close(found.weight, expected)
        x = torch.randn(3, expected.shape[1])
        torch.testing.assert_close(module(x), nn.functional.linear(x, expected, found.bias))
    assert sum(type(module) is UpdatedLinear for module in apart.modules()) == 3 * 6 + 3 * 10


@pytest.mark.slow
def test_folding_changes_no_output_and_keeps_no_update(any_base: Base, make_pack: MakePack, outputs: Look) -> None:
    source = make_pack(any_base, "source", "embed + enc-norm + enc-lora-1,2(3, alpha=6) + parallel-enc-adapters-all(4)")
    target = make_pack(any_base, "target", "embed + dec-last-layer + lora-all(3)", "uk", seed=2)
    for packs in ({"source": source}, {"target": target}, {"source": source, "target": target}):
        direction = ("el" if "source" in packs else "en", "uk" if "target" in packs else "fr")
        apart, folded = (compose(any_base, **packs, fold=fold) for fold in (False, True))  # type: ignore[arg-type]
        one, other = outputs(apart, *direction), outputs(folded, *direction)
        assert (one.scores - other.scores).abs().max() < 1e-5 * max(1.0, float(one.scores.abs().max()))
        assert [[h.tokens for h in row] for row in one.beam] == [[h.tokens for h in row] for row in other.beam]
        assert not {type(module) for module in folded.model.modules()} & {LowRank, UpdatedLinear}
        # Without folding no weight of the base is copied.
        memory = {p.untyped_storage().data_ptr() for p in any_base.model.parameters()}
        own = {p.data_ptr() for pack in packs.values() for p in pack.parameters.values()}
        for name, parameter in apart.model.named_parameters():
            assert parameter.untyped_storage().data_ptr() in memory or parameter.data_ptr() in own, name


@pytest.mark.slow
def test_packs_of_other_recipes_go_with_it(base: Base, make_pack: MakePack, outputs: Look) -> None:
    """Also one that tunes the layer whose maps it updates: the update is added to that pack's weights."""
    source = make_pack(base, "source", "embed + enc-lora-all(3)")
    for recipe in (
        "embed",
        "embed + enc-adapters-all(4)",
        "embed + dec-last-layer + enc-adapters-last(4)",
        "embed + enc-layer-2",
    ):
        target = make_pack(base, "target", recipe, "uk", seed=2)
        both = compose(base, source=source, target=target)
        seen = outputs(both, "el", "uk")
        assert seen.scores.isfinite().all()
        folded = outputs(compose(base, source=source, target=target, fold=True), "el", "uk")
        torch.testing.assert_close(folded.scores, seen.scores, rtol=1e-4, atol=1e-4)
        for side, pack in (("source", source), ("target", target)):
            other = make_pack(base, side, str(pack.recipe), *pack.languages, seed=5)
            packs = {"source": source, "target": target, side: other}
            assert not torch.equal(outputs(compose(base, **packs), "el", "uk").scores, seen.scores)


@pytest.mark.parametrize("fold", [False, True])
def test_steps_give_what_whole_lines_give(any_base: Base, make_pack: MakePack, fold: bool) -> None:
    model = compose(any_base, target=make_pack(any_base, "target", "embed + lora-all(3)"), fold=fold).model
    source, target = torch.tensor([[5, 9, 12, 7, 2]]), torch.tensor([[2, 5, 9, 12]])
    with torch.inference_mode():
        state = model.start(*model.encode(source), beam=1, capacity=4)
        steps = [model.step(target[:, [position]], state) for position in range(4)]
        torch.testing.assert_close(torch.stack(steps, dim=1), model(source, target), rtol=1e-4, atol=1e-5)


# Training, storage, use


def test_training_moves_its_parameters_and_nothing_else(
    tmp_path: Path, graft_base: Callable[..., Path], train_graft: Callable[..., Pack], outputs: Look
) -> None:
    base = Base.load(graft_base())
    before = {name: parameter.detach().clone() for name, parameter in base.model.named_parameters()}
    pack = train_graft(tmp_path / "run", base, "target", "embed + dec-layer-2 + lora-all(3)", steps=4)
    assert all(torch.equal(parameter, before[name]) for name, parameter in base.model.named_parameters())
    moved = {name for name, parameter in pack.parameters.items() if name.endswith("up.weight") and parameter.any()}
    assert {name for name in pack.parameters if ".lora." in name and name.endswith("up.weight")} <= moved
    now = outputs(compose(base, target=pack), "en", "el")
    for path in (tmp_path / "run" / "pack", tmp_path / "el.graftpack"):
        if not path.exists():
            assert save_pack(pack, path, base.model.config) == pack.fingerprint
        stored = load_pack(path)
        assert (stored.recipe, list(stored.parameters)) == (pack.recipe, list(pack.parameters))
        assert outputs(compose(base, target=stored), "en", "el").same_as(now)
    folded, apart = (Translator(base, [pack], fold=fold) for fold in (True, False))
    lines = ["bada kofe gelo", "lako"]
    assert folded.translate(lines, source="en", target="el") == apart.translate(lines, source="en", target="el")


def test_with_a_scope_other_directions_are_those_of_the_pack_without_it(base: Base, make_pack: MakePack, outputs: Look) -> None:
    pack = make_pack(base, "source", "embed + enc-lora-all(3)@trained")
    pack.partners = ("en",)
    assert {name for name in pack.parameters if ".lora." in name} == pack.scoped_names(base.model.config)
    assert pack.for_partner("en", base.model.config) is pack
    other = pack.for_partner("fr", base.model.config)
    assert str(other.recipe) == "embed"
    plain = make_pack(base, "source", "embed")
    with torch.no_grad():
        plain.parameters["embedding.weight"].copy_(pack.parameters["embedding.weight"])
    assert outputs(compose(base, source=other), "el", "fr").same_as(outputs(compose(base, source=plain), "el", "fr"))


def test_it_is_exported_as_weights() -> None:
    assert LowRankUpdates(stack="encoder", layers="all", rank=4).export(PRE) == Export("folded")
