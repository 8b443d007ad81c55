"""Components on some layers of a stack: which ones, how that is written, and what they may share a layer with. Layer 3."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self, cast

from graftmt.errors import ConfigError
from graftmt.model import ModelConfig
from graftmt.packs.component import SCOPED, SHORT, STACKS, Component, Side, Stack, Written
from graftmt.packs.parts import Setting

Layers = tuple[int, ...] | Literal["first", "last", "all"]
"""Layers by number, counted from 1, or by place."""

NUMBER = "[0-9]{1,9}"
_NUMBERS = rf"{NUMBER}(?:\s*,\s*{NUMBER})*"
NUMBERED = rf"{_NUMBERS}|\{{\s*{_NUMBERS}\s*\}}"
PLACES = ("first", "last", "all")
NAMED = rf"(?P<layers>{'|'.join(PLACES)}|{NUMBERED})"
"""A regular expression for layers, by place or by number."""


@dataclass(frozen=True, kw_only=True)
class LayerComponent(Component):
    """A component that is on some layers of one stack."""

    stack: Stack
    layers: Layers
    scoped: bool = False
    """`@trained`: only in directions whose other language the pack was trained with, on more than a few lines; the others do
    without it."""

    noun: ClassVar[str]
    """What it is called: "an adapter"."""
    plural: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", _canonical_layers(self.layers))

    @property
    def layer_names(self) -> str:
        return self.layers if isinstance(self.layers, str) else ",".join(map(str, self.layers))

    @property
    def scope(self) -> str:
        return SCOPED if self.scoped else ""

    def side_problem(self, side: Side) -> str:
        return "the decoder belongs to the target language" if side == "source" and self.stack == "decoder" else ""

    def clash(self, earlier: Component) -> str:
        second = f"puts a second {self.noun.partition(' ')[2]} on a layer of the {self.stack}; a pack has one per layer."
        return second if self.shares_a_layer_with(earlier) else ""

    def shares_a_layer_with(self, other: Component) -> bool:
        """As far as that is known without the architecture."""
        if type(other) is not type(self):
            return False
        assert isinstance(other, LayerComponent)
        return self.stack == other.stack and (
            "all" in (self.layers, other.layers)
            or self.layers == other.layers
            or not _numbers(self.layers).isdisjoint(_numbers(other.layers))
        )

    @classmethod
    def canonical(cls, own: Sequence[Self]) -> Sequence[Self]:
        """Numbered ones that are alike as one component; encoder first, then by layer."""
        numbered: dict[Self, set[int]] = {}
        for component in own:
            if numbers := _numbers(component.layers):
                numbered.setdefault(replace(component, layers="all"), set()).update(numbers)
        joined = [component for component in own if not _numbers(component.layers)]
        joined += [replace(alike, layers=tuple(numbers)) for alike, numbers in numbered.items()]
        return sorted(joined, key=lambda one: (one.stack == "decoder", one.layers == "last", sorted(_numbers(one.layers))))

    def indices(self, config: ModelConfig) -> tuple[int, ...]:
        """Its layers, counted from 0."""
        count = config.encoder_layers if self.stack == "encoder" else config.decoder_layers
        if isinstance(self.layers, str):
            return {"first": (0,), "last": (count - 1,), "all": tuple(range(count))}[self.layers]
        if self.layers[-1] > count:
            raise ConfigError(f"{self}: the base's {self.stack} has no layer {self.layers[-1]}; expected 1 to {count}.")
        return tuple(number - 1 for number in self.layers)


@dataclass(frozen=True, kw_only=True)
class AddedToLayers(LayerComponent):
    """Something that is added to layers, which the pack then does not tune as a whole."""

    def free_indices(self, setting: Setting) -> tuple[int, ...]:
        """Its layers, counted from 0, without those that the pack tunes as a whole."""
        return tuple(index for index in self.indices(setting.config) if (self.stack, index) not in setting.tuned)

    def check(self, setting: Setting) -> None:
        recipe = f"recipe {str(setting.recipe)!r}"
        alike = setting.recipe.all(type(self))
        for index in self.indices(setting.config):
            tuned = setting.tuned.get((self.stack, index))
            if tuned is not None and tuned.scoped and not self.scoped:
                # Without its scoped components a recipe must be a part of what it is with them.
                raise ConfigError(
                    f"{recipe}: {tuned} takes the place of {self.noun} of {self} in some directions only; "
                    f"leave the layer out of the {self.plural}, or write {self}{SCOPED}."
                )
            if tuned is not None and self.layers != "all":
                # With "all" it has none there. Row 34: dec-last-layer + adapters-all(90) is 7.36M with 11 adapters, not 12.
                raise ConfigError(
                    f"{recipe}: {self} is on {self.stack} layer {index + 1}, which the pack tunes as a whole; leave out one of "
                    "the two."
                )
            for other in alike[: alike.index(self)]:
                if other.stack == self.stack and index in other.free_indices(setting):
                    second = f"a second {self.noun.partition(' ')[2]}"
                    raise ConfigError(
                        f"{recipe}: {self} is {second} on {self.stack} layer {index + 1}; a pack has one per layer."
                    )
        if not any(other.free_indices(setting) for other in alike):
            raise ConfigError(f"{recipe}: every layer is tuned as a whole, which leaves none for {self.plural}.")

    @classmethod
    def names(cls, own: Sequence[Self]) -> list[str]:
        """Every layer of both stacks alike is written without a stack."""
        if [component.layers for component in own] == ["all", "all"]:
            encoder, decoder = own
            if replace(encoder, stack="decoder") == decoder:
                return [str(encoder).replace(f"{SHORT['encoder']}-", "")]
        return [str(component) for component in own]


# Reading


def pattern(text: str) -> re.Pattern[str]:
    """A regular expression that takes upper and lower case alike, as all of a recipe does."""
    return re.compile(text, re.IGNORECASE)


def read_layers(written: Written, match: re.Match[str]) -> Layers:
    """The layers in the group `layers` of a match."""
    text = match["layers"].lower()
    if text in PLACES:
        return cast(Layers, text)
    numbers: list[int] = []
    for number in re.finditer(NUMBER, text):
        at = match.start("layers") + number.start()
        if int(number[0]) < 1:
            raise written.error(f"layer {number[0]}; expected a number from 1 on.", at)
        if int(number[0]) in numbers:
            raise written.error(f"layer {number[0]} stands here a second time; leave one of them out.", at)
        numbers.append(int(number[0]))
    return tuple(numbers)


def read_stacks(written: Written, match: re.Match[str], layers: Layers, name: str) -> list[Stack]:
    """The stack in the group `stack` of a match; both where none is written and all layers are meant."""
    if match["stack"]:
        return [STACKS[match["stack"].lower()]]
    if layers != "all":
        hint = " or ".join(f"{short}-{name}-{match['layers']}" for short in STACKS)
        raise written.error(f"{written.text!r} does not say in which stack; write {hint}.")
    return list(STACKS.values())


def _canonical_layers(layers: Layers) -> Layers:
    """Numbers in order, each once; layer 1 alone is `first`."""
    if isinstance(layers, str):
        return layers
    if not layers or min(layers) < 1 or len(set(layers)) < len(layers):
        raise ConfigError(f"layers {', '.join(map(str, layers)) or 'none'}: expected different numbers, counted from 1.")
    return "first" if layers == (1,) else tuple(sorted(layers))


def _numbers(layers: Layers) -> frozenset[int]:
    """The layers whose numbers are known without the architecture."""
    if isinstance(layers, str):
        return frozenset({1} if layers == "first" else ())
    return frozenset(layers)
