"""A recipe: what a pack trains, as a list of components that are checked and have one canonical form. Layer 3.

`embed + dec-last-layer + enc-adapters-last(1024)`: `str` gives that form in the paper's own notation (Table 29), of which
`Recipe.parse` reads any spelling; its errors say where and what may stand there. What it means for an architecture is in
`parts`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from graftmt.errors import ConfigError, nearest
from graftmt.packs.component import SCOPED, CodeComponent, Component, Side, Written
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


_NUMBER = re.compile(r"\(\s*(?P<bracketed>[0-9]{1,9})\s*\)|(?P<bare>[0-9]{1,9})")


class UnknownComponentError(ConfigError):
    """A recipe names a component of no kind that is installed."""

    def __init__(self, message: str, component: str) -> None:
        super().__init__(message)
        self.component = component


def papers_number(text: str) -> int | None:
    """12 of `12` and `(12)`, as the paper calls its models; None of anything else. What that model is, is not known here."""
    match = _NUMBER.fullmatch(text.strip())
    return int(match["bracketed"] or match["bare"]) if match else None


def read_recipe(text: str) -> Recipe:
    """Components joined by `+`, in any order; each kind reads its own spellings."""
    components: list[Component] = []
    for written in _split(text):
        for component in _read(written):
            for earlier in components:
                if clash := component.clash(earlier):
                    raise written.error(f"{written.text!r} {clash}")
            components.append(component)
    present = {type(component) for component in components}
    for kind in kinds():
        if kind.missing and kind not in present:
            raise Written(text, text).error(kind.missing)
    return Recipe(tuple(components))


def expected() -> str:
    """What a recipe may have, as an error says it."""
    forms = [description.form for kind in kinds() for description in kind.descriptions]
    return f"{', '.join(forms)}; also with dec- for enc-, and first, last or 1,2,3 for all"


def _split(text: str) -> list[Written]:
    """The components as they are written, each with the one that follows it."""
    found, start = [], 0
    for part in text.split("+"):
        own = part.strip()
        if not own:
            raise Written(text, "", start).error(f"a component is missing; expected {expected()}.")
        where = start + part.index(own)
        head, at, scope = own.partition("@")
        if at and at + scope.strip().lower() != SCOPED:
            what = f"'@{scope.strip()}' is no scope; write '{SCOPED}', for the directions that were trained."
            raise Written(text, own, where).error(what, len(head))
        found.append(Written(text, head.rstrip(), where, bool(at)))
        start += len(part) + 1
    for position in range(len(found) - 2, -1, -1):
        found[position] = replace(found[position], following=found[position + 1])
    return found


def _read(written: Written) -> list[Component]:
    for kind in kinds():
        found = kind.read(written)
        if found is None:
            continue
        if written.scoped and not all(component.scoped for component in found):
            what = f"{written.text!r} cannot be for trained directions only; '{SCOPED}' stands after {_with_scope()}."
            raise written.error(what)
        return list(found)
    if (number := papers_number(written.text)) is not None:
        what = f"{written.text!r} is a number; write the components of that model, which `graftmt recipes --id {number}` shows."
        raise written.error(what)
    what = f"{written.text!r} is no component{_suggestion(written.text)} Expected {expected()}."
    raise UnknownComponentError(written.message(what), written.text)


def _with_scope() -> str:
    """One way to write each kind that may have a scope."""
    scoped = [kind for kind in kinds() if is_dataclass(kind) and "scoped" in {field.name for field in fields(kind)}]
    return ", ".join(kind.descriptions[0].form for kind in scoped if kind.descriptions)


def _suggestion(text: str) -> str:
    """The nearest component, with the dimension that stands in the text."""
    head, bracket, tail = text.lower().partition("(")
    meant = head.strip() + bracket + tail
    return nearest(meant, [form for kind in kinds() for form in kind.suggestions(meant)]) or "."
