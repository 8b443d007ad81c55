"""What a recipe means for an architecture: the name and shape of every tensor of a pack. Layer 3."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

import torch
from torch import nn

from graftmt.errors import ConfigError
from graftmt.model import ModelConfig, Transformer
from graftmt.packs.component import Component, Shape, Side, Stack
from graftmt.packs.recipe import Recipe
from graftmt.text import CodePlacement


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A recipe at its place: the architecture, the side and the vocabulary that it is for."""

    recipe: Recipe
    config: ModelConfig
    side: Side
    rows: int = 0
    """Rows of the pack's embedding matrix."""
    languages: int = 1
    """How many the pack is for."""
    code_placement: CodePlacement = "source"

    @cached_property
    def tuned(self) -> dict[tuple[Stack, int], Component]:
        """The layers, counted from 0, that the pack has its own copy of, and the components that say so."""
        found: dict[tuple[Stack, int], Component] = {}
        for component in self.recipe.components:
            for layer in sorted(component.tuned_layers(self.config)):
                found.setdefault(layer, component)
        return found

    def check(self) -> None:
        """That the architecture has what the recipe names, and that it belongs to this side's language."""
        for component in self.recipe.components:
            if problem := component.side_problem(self.side):
                other = "target" if self.side == "source" else "source"
                raise ConfigError(
                    f"recipe {str(self.recipe)!r}: {component} cannot be part of a {self.side} pack, for {problem}. "
                    f"Leave it out, or make a {other} pack."
                )
        for component in self.recipe.components:
            component.check(self)


class OwnTensor(NamedTuple):
    """A tensor of a pack, and the component it belongs to."""

    shape: Shape
    component: Component


def own_tensors(setting: Setting) -> dict[str, OwnTensor]:
    """Every tensor of a pack, in the order in which first values are drawn. Raises where the recipe does not fit."""
    setting.check()
    numbers = {parameter.name: number for number, parameter in enumerate(base_parameters(setting.config))}
    found: dict[str, OwnTensor] = {}
    for component in setting.recipe.components:
        for name, shape in component.shapes(setting).items():
            known = found.setdefault(name, OwnTensor(shape, component))
            assert known.shape == shape, f"{name} has two shapes, of {known.component} and of {component}"

    def place(name: str) -> tuple[int, ...]:
        return (REPLACED, numbers[name]) if name in numbers else found[name].component.order(name)

    return {name: found[name] for name in sorted(found, key=place)}  # a stable sort: otherwise as the components have them


REPLACED = 10
"""Where parameters that stand in the base's place come in `Component.order`; among themselves in the base's order."""


def tensor_shapes(setting: Setting) -> dict[str, Shape]:
    return {name: tensor.shape for name, tensor in own_tensors(setting).items()}


def shapes_of_vocabulary(recipe: Recipe, config: ModelConfig, *, side: Side, rows: int, languages: int = 1) -> dict[str, Shape]:
    """The tensors of a pack whose vocabulary has `rows` rows in all, those of its own language codes included."""
    setting = Setting(recipe=recipe, config=config, side=side, languages=languages)
    codes = sum(component.code_rows(setting) for component in recipe.components)
    return tensor_shapes(Setting(recipe=recipe, config=config, side=side, languages=languages, rows=rows - codes))


@dataclass(frozen=True, kw_only=True)
class BaseParameter:
    """One parameter of a base's encoder or decoder."""

    name: str
    shape: Shape
    stack: Stack
    layer: int | None
    """None for the last norm of a pre-norm stack, which belongs to no layer."""
    kind: Literal["norm", "bias", "weight"]
    """norm: weight or bias of a layer norm; bias, weight: of a linear map."""


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
