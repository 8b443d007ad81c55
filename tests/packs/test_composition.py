"""A composition is a value: it shares every tensor of base and packs, and puts each where it belongs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from graftmt.base import Base
from graftmt.errors import CheckpointError, ConfigError, GraftError, LanguageError
from graftmt.packs import Composition, Pack, compose
from graftmt.packs.components.adapters import AdaptedFeedForward, ParallelAdapter
from graftmt.text import END_ID
from graftmt.translator import Translator

SOURCES = ("embed", "embed + enc-first-layer", "embed + enc-adapters-all(4)", "embed + enc-norm + enc-biases")
TARGETS = (
    "embed",
    "embed + dec-last-layer",
    "embed + dec-last-layer + enc-adapters-last(4)",
    "embed + adapters-all(4)",
    "embed + non-tied + dec-adapters-all(4)",
    "embed + code:none",
)
MakePack = Callable[..., Pack]
Look = Callable[..., Any]


def storages(tensors: Any) -> set[int]:
    return {tensor.untyped_storage().data_ptr() for tensor in tensors}


def test_without_packs_it_is_the_base(any_base: Base, outputs: Look) -> None:
    composition = compose(any_base)
    plain = Composition(any_base.model, any_base.tokenizer, None, None)
    for direction in (("en", "fr"), ("ru", "en")):
        assert outputs(composition, *direction).same_as(outputs(plain, *direction))
    assert composition.model is not any_base.model


@pytest.mark.parametrize(("source", "target"), [*product(SOURCES, TARGETS), (None, TARGETS[2]), (SOURCES[1], None)])
def test_no_tensor_is_copied(base: Base, make_pack: MakePack, source: str | None, target: str | None) -> None:
    packs = {
        "source": make_pack(base, "source", source, "el") if source else None,
        "target": make_pack(base, "target", target, "uk") if target else None,
    }
    model = compose(base, **packs).model
    own = {name: parameter for pack in packs.values() if pack for name, parameter in pack.parameters.items()}
    pack_tensors = {id(parameter) for pack in packs.values() if pack for parameter in pack.parameters.values()}
    used = {id(parameter): parameter for parameter in model.parameters()}
    assert pack_tensors <= used.keys()
    shared = [parameter for key, parameter in used.items() if key not in pack_tensors]
    assert storages(shared) <= storages(base.model.parameters())
    assert not any(parameter.requires_grad for parameter in shared)
    # Every parameter of the base that no pack replaces is there.
    embeddings = {base.model.source_embedding.weight} if source and target else set()
    for name, parameter in base.model.named_parameters():
        if name not in own and parameter not in embeddings:
            assert parameter.untyped_storage().data_ptr() in storages(shared), name


def test_base_and_other_compositions_go_on_undisturbed(base: Base, make_pack: MakePack, outputs: Look) -> None:
    before = outputs(compose(base), "en", "fr")
    modes = [module.training for module in base.model.modules()]
    source, target = make_pack(base, "source", SOURCES[1]), make_pack(base, "target", TARGETS[2], "uk")
    alone = compose(base, source=source)
    seen = outputs(alone, "el", "en")
    both = compose(base, source=source, target=target)
    both.model.train()
    both.model.set_dropout(0.5)
    assert [module.training for module in base.model.modules()] == modes
    assert not any(module.p for module in base.model.modules() if isinstance(module, torch.nn.Dropout))
    assert outputs(alone, "el", "en").same_as(seen)
    assert outputs(compose(base), "en", "fr").same_as(before)


# Adapters


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_source_adapters_come_before_target_adapters(graft_base: Callable[..., Path], make_pack: MakePack, norm: str) -> None:
    base = Base.load(graft_base(norm))
    source = make_pack(base, "source", "embed + enc-adapters-all(4)")
    target = make_pack(base, "target", "embed + adapters-all(5)", "uk", seed=2)
    plain = compose(base, source=make_pack(base, "source", "embed"))  # the same seed: the same embeddings

    def adapter(pack: Pack, stack: str, layer: int, x: Tensor) -> Tensor:
        own = {name: pack.parameters[f"{stack}.adapters.{layer}.{name}"] for name in ADAPTER}
        hidden = torch.nn.functional.layer_norm(x, x.shape[-1:], own["norm.weight"], own["norm.bias"])
        hidden = (hidden @ own["down.weight"].T + own["down.bias"]).relu()
        return x + hidden @ own["up.weight"].T + own["up.bias"]

    def encode(*order: Pack) -> Tensor:
        """By hand, with the base's own layers."""
        x = plain.model.positions(plain.model.source_embedding(tokens) * plain.model.scale)
        for number, layer in enumerate(base.model.encoder.layers):
            x = layer(x, None)
            for pack in order:
                x = adapter(pack, "encoder", number, x)
        return x if base.model.encoder.norm is None else base.model.encoder.norm(x)

    tokens = torch.tensor([[*source.tokenizer.encode("καλο μενα ροπε"), END_ID]])
    with torch.inference_mode():
        source.parameters["embedding.weight"].copy_(plain.source.parameters["embedding.weight"])  # type: ignore[union-attr]
        memory, _ = compose(base, source=source, target=target).model.encode(tokens)
        torch.testing.assert_close(memory, encode(source, target))
        assert not torch.allclose(memory, encode(target, source), atol=1e-3)
        alone, _ = compose(base, source=source).model.encode(tokens)
        torch.testing.assert_close(alone, encode(source))


ADAPTER = ("norm.weight", "norm.bias", "down.weight", "down.bias", "up.weight", "up.bias")


@pytest.mark.parametrize(
    "recipe", ["embed + adapters-all(4)", "embed + parallel-adapters-all(4)", "embed + dec-last-layer + adapters-all(4)"]
)
@pytest.mark.parametrize("fold", [False, True])
def test_adapted_decoders_step_as_they_read_whole_lines(any_base: Base, make_pack: MakePack, recipe: str, fold: bool) -> None:
    composition = compose(any_base, target=make_pack(any_base, "target", recipe), fold=fold)
    model, codec = composition.model, composition.codec
    lines = ["bada kofe", "fofe bage"]
    source = torch.tensor(
        [[*codec.source_prefix("en", "el"), *codec.source_tokenizer("en").encode(line)[:4], END_ID] for line in lines]
    )
    prefix = codec.decoder_prefix("el")
    target = torch.tensor([[*prefix, *codec.target_tokenizer("el").encode(line)[:5]] for line in ("καλο μενα", "ροπε λαπο")])
    with torch.inference_mode():
        whole = model(source, target)
        memory, mask = model.encode(source)
        state = model.start(memory, mask, beam=1, capacity=target.shape[1])
        steps = [model.step(target[:, : len(prefix)], state)]
        steps += [model.step(target[:, [position]], state) for position in range(len(prefix), target.shape[1])]
    torch.testing.assert_close(torch.stack(steps, dim=1), whole[:, len(prefix) - 1 :], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_folding_changes_no_output(graft_base: Callable[..., Path], make_pack: MakePack, outputs: Look, norm: str) -> None:
    base = Base.load(graft_base(norm))
    source = make_pack(base, "source", "embed + enc-norm + enc-biases + parallel-enc-adapters-all(4)")
    target = make_pack(base, "target", "embed + dec-last-layer + parallel-adapters-all(3)", "uk")
    for packs in ({"source": source}, {"target": target}, {"source": source, "target": target}):
        direction = ("el" if "source" in packs else "en", "uk" if "target" in packs else "fr")
        plain, folded = (compose(base, **packs, fold=fold) for fold in (False, True))
        one, other = outputs(plain, *direction), outputs(folded, *direction)
        assert (one.scores - other.scores).abs().max() < 1e-5
        assert [[h.tokens for h in row] for row in one.beam] == [[h.tokens for h in row] for row in other.beam]
        # No adapters are left to compute.
        kinds = {type(module) for module in folded.model.modules()}
        assert not kinds & {AdaptedFeedForward, ParallelAdapter}


# Language codes


def code_vector(composition: Composition, source: str, target: str) -> Tensor | None:
    """What stands before the source text, as the encoder sees it."""
    prefix = composition.codec.source_prefix(source, target)
    return composition.model.source_embedding(torch.tensor(prefix))[0] if prefix else None


def row_of(base: Base, language: str) -> Tensor:
    return base.model.source_embedding.weight[base.tokenizer.vocabulary.code(language)]


def test_a_learned_code_is_the_packs_own_row(base: Base, make_pack: MakePack) -> None:
    source = make_pack(base, "source", "embed", "el", "uk")
    target = make_pack(base, "target", "embed", "el", "uk")
    codes = target.parameters["code.weight"]
    alone, both = compose(base, target=target), compose(base, source=source, target=target)
    for number, language in enumerate(("el", "uk")):
        assert torch.equal(code_vector(alone, "en", language), codes[number])  # type: ignore[arg-type]
    assert torch.equal(code_vector(both, "uk", "el"), codes[0])  # type: ignore[arg-type]
    assert torch.equal(code_vector(both, "el", "uk"), codes[1])  # type: ignore[arg-type]
    # All other rows are those of the matrix in use.
    rows = torch.arange(len(source.tokenizer))
    assert torch.equal(both.model.source_embedding(rows), source.parameters["embedding.weight"][rows])
    rows = torch.arange(len(base.tokenizer))
    assert torch.equal(alone.model.source_embedding(rows), base.model.source_embedding.weight[rows])


def test_a_source_pack_has_its_own_copy_of_the_bases_codes(base: Base, make_pack: MakePack) -> None:
    source = make_pack(base, "source", "embed")
    for language in base.languages:
        own = source.parameters["embedding.weight"][source.tokenizer.vocabulary.code(language)]
        assert torch.equal(code_vector(compose(base, source=source), "el", language), own)  # type: ignore[arg-type]
        assert not torch.equal(own, row_of(base, language))


def test_code_none_is_no_code_at_all(any_base: Base, make_pack: MakePack) -> None:
    target = make_pack(any_base, "target", "embed + code:none", "uk")
    source = make_pack(any_base, "source", "embed")
    for composition, language in (
        (compose(any_base, target=target), "en"),
        (compose(any_base, source=source, target=target), "el"),
    ):
        if any_base.tokenizer.code_placement == "source":
            assert composition.codec.source_prefix(language, "uk") == []
        assert composition.codec.decoder_prefix("uk") == [END_ID]
        assert composition.model.target_embedding.weight is target.parameters["embedding.weight"]
    assert "code.weight" not in target.parameters


@pytest.mark.parametrize("code", ["code:fixed:en", "code:proxy:ru"])
def test_fixed_and_proxy_are_rows_of_the_matrix_in_use(base: Base, make_pack: MakePack, code: str) -> None:
    language = code.rpartition(":")[2]
    target, source = make_pack(base, "target", f"embed + {code}", "uk"), make_pack(base, "source", "embed")
    assert torch.equal(code_vector(compose(base, target=target), "fr", "uk"), row_of(base, language))  # type: ignore[arg-type]
    both = compose(base, source=source, target=target)
    own = source.parameters["embedding.weight"][source.tokenizer.vocabulary.code(language)]
    assert torch.equal(code_vector(both, "el", "uk"), own)  # type: ignore[arg-type]


@pytest.mark.parametrize("code", ["code:learned:fr", "code:fixed:fr", "code:none"])
def test_codes_at_the_decoder_belong_to_both_sides(graft_base: Callable[..., Path], make_pack: MakePack, code: str) -> None:
    base = Base.load(graft_base("pre", "decoder"))
    source, target = make_pack(base, "source", f"embed + {code}"), make_pack(base, "target", f"embed + {code}", "uk", seed=2)
    both = compose(base, source=source, target=target)
    for found, pack, embedding in (
        (both.codec.source_prefix("el", "uk"), source, both.model.source_embedding),
        (both.codec.decoder_prefix("uk")[1:], target, both.model.target_embedding),
    ):
        if code == "code:none":
            assert found == []
            continue
        expected = pack.parameters["code.weight"][0] if "learned" in code else row_of(base, "fr")
        assert torch.equal(embedding(torch.tensor(found))[0], expected)
    # A base's language beside a pack keeps the base's code.
    alone = compose(base, target=target)
    assert alone.codec.source_prefix("fr", "uk") == [base.tokenizer.vocabulary.code("fr")]
    assert compose(base, source=source).codec.decoder_prefix("fr") == base.tokenizer.decoder_prefix("fr")


def test_every_row_that_a_codec_names_is_in_its_matrix(any_base: Base, make_pack: MakePack) -> None:
    for source_code, target_code in product(("learned:en", "fixed:en", "none"), repeat=2):
        written = any_base.tokenizer.code_placement == "decoder"
        source = make_pack(any_base, "source", f"embed + code:{source_code}" if written else "embed", "el", "uk")
        target = make_pack(any_base, "target", f"embed + code:{target_code}", "el", "uk")
        both = compose(any_base, source=source, target=target)
        for direction in (("el", "uk"), ("uk", "el")):
            both.model.source_embedding(torch.tensor(both.codec.source_prefix(*direction), dtype=torch.long))
            both.model.target_embedding(torch.tensor(both.codec.decoder_prefix(direction[1])))
        assert max(both.codec.forbidden) < len(both.model.projection.weight)


def test_a_code_is_never_translated_into(any_base: Base, make_pack: MakePack) -> None:
    target = make_pack(any_base, "target", "embed", "uk")
    codec = compose(any_base, target=target).codec
    assert {target.tokenizer.vocabulary.code(language) for language in target.tokenizer.languages} <= set(codec.forbidden)


# Combinations


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize(
    ("source", "target"),
    [
        (source, target)
        for source in ("embed", "embed + enc-first-layer", "embed + enc-adapters-all(4)")
        for target in ("embed + dec-last-layer", "embed + dec-last-layer + enc-adapters-last(4)")
    ],
)
def test_the_combinations_of_the_paper_compose(
    graft_base: Callable[..., Path], make_pack: MakePack, outputs: Look, norm: str, source: str, target: str
) -> None:
    """Tables 4 and 7."""
    base = Base.load(graft_base(norm))
    packs = {"source": make_pack(base, "source", source), "target": make_pack(base, "target", target, "uk", seed=2)}
    both = outputs(compose(base, **packs), "el", "uk")
    assert both.scores.isfinite().all() and all(row for row in both.beam)
    for side in packs:  # each pack has its part in what comes out
        other = make_pack(base, side, str(packs[side].recipe), *packs[side].languages, seed=3)
        assert not torch.equal(outputs(compose(base, **{**packs, side: other}), "el", "uk").scores, both.scores)


def test_several_languages_on_both_sides(any_base: Base, make_pack: MakePack, outputs: Look) -> None:
    source, target = (
        make_pack(any_base, "source", "embed", "el", "uk"),
        make_pack(any_base, "target", "embed", "el", "uk", seed=2),
    )
    both = compose(any_base, source=source, target=target)
    for one, other in (("el", "uk"), ("uk", "el")):
        assert both.codec.source_tokenizer(one) is source.tokenizer
        assert both.codec.target_tokenizer(other) is target.tokenizer
        assert outputs(both, one, other).scores.shape[-1] == len(target.tokenizer)
    first, second = (outputs(both, source, target, ["καλο μενα"] * 3).beam for source, target in (("el", "uk"), ("uk", "el")))
    assert [row[0].score for row in first] != [row[0].score for row in second]  # the codes differ, and nothing else does


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("embed + enc-first-layer", "embed + enc-first-layer"),
        ("embed + enc-norm", "embed + enc-last-layer"),
        ("embed + enc-all-layers", "embed + dec-last-layer + enc-biases"),
        ("embed + enc-layer-2", "embed + enc-all-layers"),
    ],
)
def test_two_packs_for_one_parameter_are_an_error(base: Base, make_pack: MakePack, source: str, target: str) -> None:
    packs = make_pack(base, "source", source), make_pack(base, "target", target, "uk")
    with pytest.raises(ConfigError, match=r"el \(source\) and uk \(target\) .*encoder.*--pivot"):
        compose(base, source=packs[0], target=packs[1])


def test_an_adapter_of_one_pack_goes_with_a_tuned_layer_of_the_other(base: Base, make_pack: MakePack, outputs: Look) -> None:
    source = make_pack(base, "source", "embed + enc-last-layer")
    target = make_pack(base, "target", "embed + enc-adapters-last(4)", "uk")
    assert outputs(compose(base, source=source, target=target), "el", "uk").scores.isfinite().all()


# What cannot be composed


def test_a_pack_for_the_other_side_is_refused(base: Base, make_pack: MakePack) -> None:
    with pytest.raises(ConfigError, match=r"el \(source\) .*target pack"):
        compose(base, target=make_pack(base, "source"))
    with pytest.raises(ConfigError, match="for the target side"):
        compose(base, source=make_pack(base, "target"))


def test_a_pack_of_another_base_is_refused(base: Base, graft_base: Callable[..., Path], make_pack: MakePack) -> None:
    other = Base.load(graft_base("post"))
    with pytest.raises(CheckpointError, match=rf"made for the base {other.fingerprint[:16]}…"):
        compose(base, source=make_pack(other))
    unstored = Base(base.model, base.tokenizer)
    with pytest.raises(GraftError, match=r"never stored.*base\.save"):
        compose(unstored, source=make_pack(base))


def test_a_pack_for_a_language_of_the_base_is_refused(base: Base, make_pack: MakePack) -> None:
    pack = replace(make_pack(base, "source"), languages=("en",))  # whoever made it gave it a fingerprint that fits
    with pytest.raises(LanguageError, match=r"en \(source\) .*the base has"):
        compose(base, source=pack)
    with pytest.raises(LanguageError, match="which the base has"):
        Translator(base, [pack])


@pytest.mark.parametrize("layers", [2, 4])
def test_a_pack_of_another_architecture_that_names_this_base_is_refused(
    base: Base, graft_base: Callable[..., Path], make_pack: MakePack, layers: int
) -> None:
    other = Base.load(graft_base("pre", "source", encoder_layers=layers))
    pack = replace(make_pack(other, "source", "embed + enc-adapters-all(4)"), base=base.fingerprint)
    with pytest.raises(CheckpointError, match="names this base as its own"):
        compose(base, source=pack)
    fewer = Base.load(graft_base("pre", "source", ("en", "fr")))
    pack = replace(make_pack(fewer, "source"), base=base.fingerprint)
    with pytest.raises(CheckpointError, match="names this base as its own"):
        compose(base, source=pack)


def test_a_language_that_a_composition_does_not_have_is_refused(base: Base, make_pack: MakePack) -> None:
    codec = compose(
        base, source=make_pack(base, "source", "embed", "el"), target=make_pack(base, "target", "embed", "uk")
    ).codec
    for ask in (
        lambda: codec.source_tokenizer("uk"),
        lambda: codec.source_tokenizer("en"),  # its rows are not those of the pack's matrix
        lambda: codec.target_tokenizer("el"),
        lambda: codec.source_prefix("el", "fr"),
        lambda: codec.source_prefix("fr", "uk"),
        lambda: codec.decoder_prefix("fr"),
    ):
        with pytest.raises(LanguageError, match=r"is not known here as (source|target).*known: (el|uk)"):
            ask()
    with pytest.raises(LanguageError, match=r"did you mean 'en'.*known: en, fr, ru"):
        compose(base, target=make_pack(base, "target")).codec.source_tokenizer("eng")
