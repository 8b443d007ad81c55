"""What a recipe means for an architecture: which of the base's parameters a pack has its own value of, what it adds, and the
name and shape of every tensor. Layer 3."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch
from torch import nn

from graftmt.errors import ConfigError
from graftmt.model import ModelConfig, Transformer
from graftmt.packs.recipe import Adapters, Layers, Recipe, Stack, TunedLayers

Side = Literal["source", "target"]


@dataclass(frozen=True, kw_only=True)
class AdapterPart:
    dim: int
    parallel: bool


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a pack has besides its embeddings; layers are counted from 0 here."""

    encoder_adapters: dict[int, AdapterPart]
    decoder_adapters: dict[int, AdapterPart]
    replaced: tuple[str, ...]
    """The base's parameters that the pack has its own value of: names of `Transformer.named_parameters()`, in that order."""
    tied: bool


def resolve(recipe: Recipe, config: ModelConfig, side: Side) -> Parts:
    """Checks that the architecture has what the recipe names, and that it belongs to this side's language."""
    if recipe.scoped:
        _check_scopes(recipe, config)
    if side == "source":
        _check_source(recipe)
    tuned = {(part.stack, index) for part in recipe.layers for index in _indices(part, config)}
    adapters: dict[Stack, dict[int, AdapterPart]] = {"encoder": {}, "decoder": {}}
    for part in recipe.adapters:
        for index in _indices(part, config):
            if (part.stack, index) in tuned:
                if part.layers == "all":
                    continue  # row 34: dec-last-layer + adapters-all(90) is 7.36M with 11 adapters, not 12
                raise ConfigError(
                    f"recipe {str(recipe)!r}: {part} is on {part.stack} layer {index + 1}, which the pack tunes as a whole; "
                    "leave out one of the two."
                )
            if index in adapters[part.stack]:
                what = f"{part} is a second adapter on {part.stack} layer {index + 1}; a pack has one a layer."
                raise ConfigError(f"recipe {str(recipe)!r}: {what}")
            adapters[part.stack][index] = AdapterPart(dim=part.dim, parallel=part.parallel)
    if recipe.adapters and not any(adapters.values()):
        raise ConfigError(f"recipe {str(recipe)!r}: every layer is tuned as a whole, which leaves none for adapters.")
    return Parts(
        encoder_adapters=dict(sorted(adapters["encoder"].items())),
        decoder_adapters=dict(sorted(adapters["decoder"].items())),
        replaced=tuple(
            parameter.name
            for parameter in base_parameters(config)
            if (parameter.stack, parameter.layer) in tuned
            or (parameter.kind == "norm" and parameter.stack in recipe.norms)
            or (parameter.kind == "bias" and parameter.stack in recipe.biases)
        ),
        tied=recipe.tied,
    )


def tensor_shapes(parts: Parts, config: ModelConfig, *, side: Side, rows: int, codes: int) -> dict[str, tuple[int, ...]]:
    """Every tensor of a pack. `rows` are those of the embedding matrix; learned `codes` have a matrix of their own."""
    dim = config.model_dim
    shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (rows, dim)}
    if side == "target" and not parts.tied:
        shapes["output.weight"] = (rows, dim)
    if side == "target" and config.output_bias:
        shapes["output.bias"] = (rows,)
    if codes:
        shapes["code.weight"] = (codes, dim)
    replaced = set(parts.replaced)
    shapes |= {parameter.name: parameter.shape for parameter in base_parameters(config) if parameter.name in replaced}
    for stack, adapters in (("encoder", parts.encoder_adapters), ("decoder", parts.decoder_adapters)):
        for index, adapter in adapters.items():
            own: dict[str, tuple[int, ...]] = {} if adapter.parallel else {"norm.weight": (dim,), "norm.bias": (dim,)}
            own |= {"down.weight": (adapter.dim, dim), "down.bias": (adapter.dim,)}
            own |= {"up.weight": (dim, adapter.dim), "up.bias": (dim,)}
            shapes |= {f"{stack}.adapters.{index}.{name}": shape for name, shape in own.items()}
    return shapes


@dataclass(frozen=True, kw_only=True)
class BaseParameter:
    """One parameter of a base's encoder or decoder."""

    name: str
    shape: tuple[int, ...]
    stack: Stack
    layer: int | None
    """None for the last norm of a pre-norm stack, which belongs to no layer."""
    kind: Literal["norm", "bias", "weight"]
    """norm: weight or bias of a layer norm; bias: of a linear map."""


@lru_cache(maxsize=32)
def base_parameters(config: ModelConfig) -> tuple[BaseParameter, ...]:
    """All of both stacks in the model's order, from a model without memory."""
    with torch.device("meta"):
        model = Transformer.build(config, config.padding_id + 1)
    norms = {name for name, module in model.named_modules() if isinstance(module, nn.LayerNorm)}
    result = []
    for name, value in model.named_parameters():
        module, _, leaf = name.rpartition(".")
        path = name.split(".")
        if path[0] == "encoder" or path[0] == "decoder":
            result.append(
                BaseParameter(
                    name=name,
                    shape=tuple(value.shape),
                    stack="encoder" if path[0] == "encoder" else "decoder",
                    layer=int(path[2]) if path[1] == "layers" else None,
                    kind="norm" if module in norms else "bias" if leaf == "bias" else "weight",
                )
            )
    return tuple(result)


def _indices(part: Adapters | TunedLayers, config: ModelConfig) -> tuple[int, ...]:
    """Its layers, from 0."""
    count = config.encoder_layers if part.stack == "encoder" else config.decoder_layers
    places: dict[Layers, tuple[int, ...]] = {"first": (0,), "last": (count - 1,), "all": tuple(range(count))}
    if isinstance(part.layers, str):
        return places[part.layers]
    if part.layers[-1] > count:
        raise ConfigError(f"{part}: the base's {part.stack} has no layer {part.layers[-1]}; expected 1 to {count}.")
    return tuple(number - 1 for number in part.layers)


def _check_scopes(recipe: Recipe, config: ModelConfig) -> None:
    """Without its scoped components a recipe must be a part of what it is with them."""
    for layers in recipe.layers:
        for adapters in recipe.adapters:
            same = layers.stack == adapters.stack and set(_indices(layers, config)) & set(_indices(adapters, config))
            if same and layers.scoped and not adapters.scoped:
                raise ConfigError(
                    f"recipe {str(recipe)!r}: {layers} takes the place of an adapter of {adapters} in some directions only; "
                    f"leave the layer out of the adapters, or write {adapters}@trained."
                )


def _check_source(recipe: Recipe) -> None:
    """A source language has the encoder; decoder and output belong to the language that is translated into."""
    named: list[Adapters | TunedLayers] = [*recipe.layers, *recipe.adapters]
    decoder = [str(part) for part in named if part.stack == "decoder"]
    decoder += ["dec-norm"] * ("decoder" in recipe.norms) + ["dec-biases"] * ("decoder" in recipe.biases)
    reasons = [(name, "the decoder belongs to the target language") for name in decoder]
    if not recipe.tied:
        reasons.append(("non-tied", "the output projection belongs to the target language"))
    if reasons:
        name, reason = reasons[0]
        raise ConfigError(
            f"recipe {str(recipe)!r}: {name} cannot be part of a source pack, for {reason}. "
            "Leave it out (adapters-all is enc-adapters-all on this side), or make a target pack."
        )
