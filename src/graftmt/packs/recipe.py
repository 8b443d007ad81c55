"""A recipe: what a pack trains, as a list of components that are checked and have one canonical form. Layer 3.

`embed + dec-last-layer + enc-adapters-last(1024)`: `str` gives that form in the paper's own notation (Table 29), of which
`notation` reads any spelling. What it means for an architecture is in `parts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from graftmt.errors import ConfigError
from graftmt.packs.code_component import CodeComponent
from graftmt.packs.component import Component, Side
from graftmt.packs.registry import Kind, kinds

if TYPE_CHECKING:
    from graftmt.base import Base

C = TypeVar("C", bound=Component)


@dataclass(frozen=True)
class Recipe:
    """All choices of one pack. Components may be given in any order; equal recipes have equal strings.

    What every pack has is among the components, also where it was not given: `Recipe()` is `embed`.
    """

    components: tuple[Component, ...] = ()

    def __post_init__(self) -> None:
        given = list(self.components)
        for position, component in enumerate(given):
            for earlier in given[:position]:
                if clash := component.clash(earlier):
                    raise ConfigError(f"{component} {clash}")
        present = {type(component) for component in given}
        given += [default for kind in kinds() if kind not in present and (default := kind.default()) is not None]
        result: list[Component] = []
        for kind, own in _by_kind(given):
            result += kind.canonical(own)
        object.__setattr__(self, "components", tuple(result))

    @classmethod
    def parse(cls, text: str) -> Recipe:
        """The recipe that a text means; where it means none, the error says at which character and what may stand there."""
        from graftmt.packs.notation import read_recipe  # which makes recipes, and so imports this module

        if not isinstance(text, str):
            raise ConfigError(
                f"the recipe is {text!r}; expected a text such as 'embed + enc-first-layer'. `graftmt recipes` lists some. "
                "Numbers are recipes to `add` alone, which knows the side."
            )
        return read_recipe(text)

    def all(self, kind: type[C]) -> tuple[C, ...]:
        """Its components of one kind."""
        return tuple(component for component in self.components if type(component) is kind)

    def one(self, kind: type[C]) -> C:
        """The component of a kind that every recipe has exactly one of."""
        (component,) = self.all(kind)
        return component

    def having(self, component: Component) -> Recipe:
        """The same with this component in the place of all others of its kind."""
        kept = (other for other in self.components if type(other) is not type(component))
        return Recipe((*kept, component))

    @property
    def code(self) -> CodeComponent:
        """How the pack's language is named to the model."""
        return next(component for component in self.components if isinstance(component, CodeComponent))

    def with_codes_of(self, base: Base, side: Side) -> Recipe:
        """The same with the base's own name for the language whose code is taken."""
        matrix = base.tokenizer.layout.code_matrix(side)
        return self if matrix is None else self.having(self.code.named_as_in(base.tokenizer.side(matrix).languages))

    @property
    def scoped(self) -> bool:
        """Whether any component is only for the directions that were trained."""
        return any(component.scoped for component in self.components)

    def shared(self) -> Recipe:
        """Without those components: what all other directions get."""
        return Recipe(tuple(component for component in self.components if not component.scoped))

    @property
    def needs_translations(self) -> bool:
        """Whether first values are made from aligned text."""
        return any(component.needs_translations for component in self.components)

    def __str__(self) -> str:
        return " + ".join(name for kind, own in _by_kind(self.components) for name in kind.names(own))


def _by_kind(components: Sequence[Component]) -> list[tuple[Kind, list[Component]]]:
    """The components of each kind, in the order of the canonical form."""

    def place(component: Component) -> tuple[int, str, str]:
        kind = type(component)
        return kind.position, kind.__module__, kind.__name__

    return [(type(own[0]), own) for own in (list(group) for _, group in groupby(sorted(components, key=place), key=place))]
