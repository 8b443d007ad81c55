"""A recipe: what a pack trains, as values that are checked and have one canonical form. Layer 3.

`embed + dec-last-layer + enc-adapters-last(1024)`: `str` gives that form in the paper's own notation (Table 29), of which
`notation` reads any spelling. What it means for an architecture is in `parts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from graftmt.errors import ConfigError

Stack = Literal["encoder", "decoder"]
Layers = tuple[int, ...] | Literal["first", "last", "all"]
"""Layers by number, counted from 1, or by place."""
Initialisation = Literal["overlap", "random", "pieces", "alignment"]
CodeKind = Literal["learned", "none", "fixed", "proxy"]

STACKS: dict[str, Stack] = {"enc": "encoder", "dec": "decoder"}
SHORT: dict[Stack, str] = {stack: short for short, stack in STACKS.items()}
SCOPED = "@trained"
LANGUAGE = re.compile(r"[^\s+:<>]+")
"""What a language's code may be spelt with, so that it can stand in a recipe."""


@dataclass(frozen=True, kw_only=True)
class Adapters:
    """An adapter of bottleneck `dim` after (or, parallel, beside) each of these layers."""

    stack: Stack
    layers: Layers
    dim: int
    parallel: bool = False
    scoped: bool = False
    """`@trained`: only in directions whose other language the pack was trained with, on more than a few lines; the others do
    without it."""

    def __post_init__(self) -> None:
        if self.dim < 1:
            raise ConfigError(f"an adapter's dimension is {self.dim}; expected at least 1.")
        object.__setattr__(self, "layers", _canonical_layers(self.layers))

    def __str__(self) -> str:
        layers = self.layers if isinstance(self.layers, str) else ",".join(map(str, self.layers))
        name = f"{'parallel-' if self.parallel else ''}{SHORT[self.stack]}-adapters-{layers}({self.dim})"
        return f"{name}{SCOPED}" if self.scoped else name


@dataclass(frozen=True, kw_only=True)
class TunedLayers:
    """Layers that the pack has its own copy of, all parameters."""

    stack: Stack
    layers: Layers
    scoped: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", _canonical_layers(self.layers))

    def __str__(self) -> str:
        stack, scope = SHORT[self.stack], SCOPED if self.scoped else ""
        if isinstance(self.layers, str):
            return f"{stack}-all-layers{scope}" if self.layers == "all" else f"{stack}-{self.layers}-layer{scope}"
        return " + ".join(f"{stack}-layer-{number}{scope}" for number in self.layers)


@dataclass(frozen=True, kw_only=True)
class CodeChoice:
    """The language code of a target pack (Table 25): learned from a start, none at all, or one of the base's as it is."""

    kind: CodeKind = "learned"
    language: str = "en"
    """The base's language whose code it starts from (learned) or is (fixed, proxy; proxy also `nearest`); none has none."""

    def __post_init__(self) -> None:
        if self.kind == "none":
            object.__setattr__(self, "language", "")
        elif not LANGUAGE.fullmatch(self.language) or (self.language == "nearest" and self.kind != "proxy"):
            raise ConfigError(f"code:{self.kind}:{self.language} names no language; expected a code such as 'en'.")

    def __str__(self) -> str:
        return f"code:{self.kind}:{self.language}" if self.language else f"code:{self.kind}"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All choices of one pack; its own embeddings it always has. Equal recipes have equal strings."""

    adapters: tuple[Adapters, ...] = ()
    layers: tuple[TunedLayers, ...] = ()
    norms: tuple[Stack, ...] = ()
    """Stacks whose layer norms train."""
    biases: tuple[Stack, ...] = ()
    tied: bool = True
    """Whether the output projection is the target embedding."""
    initialisation: Initialisation = "overlap"
    code: CodeChoice = CodeChoice()

    def __post_init__(self) -> None:
        named: tuple[Sequence[Adapters | TunedLayers], ...] = (self.adapters, self.layers)
        for parts in named:
            for position, part in enumerate(parts):
                if names_a_layer_again(part, parts[:position]):
                    raise ConfigError(f"{part} names a layer that another component of this recipe has named.")
        object.__setattr__(self, "adapters", _canonical_adapters(self.adapters))
        object.__setattr__(self, "layers", _canonical_tuned(self.layers))
        for name in ("norms", "biases"):
            object.__setattr__(self, name, tuple(stack for stack in SHORT if stack in getattr(self, name)))

    @classmethod
    def parse(cls, text: str) -> Recipe:
        """The recipe that a text means; where it means none, the error says at which character and what may stand there."""
        from graftmt.packs.notation import read_recipe  # which makes recipes, and so imports this module

        return read_recipe(text)

    @property
    def scoped(self) -> bool:
        """Whether any component is only for the directions that were trained."""
        return any(part.scoped for part in self.adapters) or any(part.scoped for part in self.layers)

    def shared(self) -> Recipe:
        """Without those components: what all other directions get."""
        adapters = tuple(part for part in self.adapters if not part.scoped)
        return replace(self, adapters=adapters, layers=tuple(part for part in self.layers if not part.scoped))

    def __str__(self) -> str:
        names = ["embed"]
        if not self.tied:
            names.append("non-tied")
        for stack, short in SHORT.items():
            names += [f"{short}-norm"] * (stack in self.norms) + [f"{short}-biases"] * (stack in self.biases)
        names += map(str, self.layers)
        names += _adapter_names(self.adapters)
        if self.initialisation != "overlap":
            names.append(f"init:{self.initialisation}")
        if self.code != CodeChoice():
            names.append(str(self.code))
        return " + ".join(names)


# Canonical values


def _canonical_layers(layers: Layers) -> Layers:
    """Numbers in order, each once; layer 1 alone is `first`."""
    if isinstance(layers, str):
        return layers
    if not layers or min(layers) < 1 or len(set(layers)) < len(layers):
        raise ConfigError(f"layers {', '.join(map(str, layers)) or 'none'}: expected different numbers, counted from 1.")
    return "first" if layers == (1,) else tuple(sorted(layers))


def _numbers(layers: Layers) -> tuple[int, ...]:
    """The layers whose numbers are known without the architecture."""
    return (1,) if layers == "first" else () if isinstance(layers, str) else layers


def names_a_layer_again(part: Adapters | TunedLayers, earlier: Iterable[Adapters | TunedLayers]) -> bool:
    for other in earlier:
        if other.stack == part.stack and (
            "all" in (part.layers, other.layers)
            or part.layers == other.layers
            or set(_numbers(part.layers)) & set(_numbers(other.layers))
        ):
            return True
    return False


def _canonical_adapters(adapters: Iterable[Adapters]) -> tuple[Adapters, ...]:
    """Numbered ones that are alike as one component; encoder first, then by layer."""
    numbers: dict[tuple[Stack, int, bool, bool], tuple[int, ...]] = {}
    result = []
    for part in adapters:
        if _numbers(part.layers):
            key = (part.stack, part.dim, part.parallel, part.scoped)
            numbers[key] = (*numbers.get(key, ()), *_numbers(part.layers))
        else:
            result.append(part)
    result += [
        Adapters(stack=stack, layers=layers, dim=dim, parallel=parallel, scoped=scoped)
        for (stack, dim, parallel, scoped), layers in numbers.items()
    ]
    return tuple(sorted(result, key=_reading_order))


def _canonical_tuned(layers: Iterable[TunedLayers]) -> tuple[TunedLayers, ...]:
    layers = list(layers)
    result = [part for part in layers if not _numbers(part.layers)]
    for stack, scoped in product(SHORT, (False, True)):
        alike = (part for part in layers if part.stack == stack and part.scoped == scoped)
        numbers = [number for part in alike for number in _numbers(part.layers)]
        result += [TunedLayers(stack=stack, layers=tuple(numbers), scoped=scoped)] if numbers else []
    return tuple(sorted(result, key=_reading_order))


def _reading_order(part: Adapters | TunedLayers) -> tuple[bool, bool, tuple[int, ...]]:
    return part.stack == "decoder", part.layers == "last", _numbers(part.layers)


def _adapter_names(adapters: Sequence[Adapters]) -> list[str]:
    """Every layer of both stacks alike is `adapters-all`."""
    if [part.layers for part in adapters] == ["all", "all"]:
        encoder, decoder = adapters
        if replace(encoder, stack="decoder") == decoder:
            return [str(encoder).replace("enc-", "")]
    return list(map(str, adapters))
