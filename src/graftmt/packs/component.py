"""What a component of a recipe is: the base class of all kinds, with everything that the rest asks a kind. Layer 3.

A kind is one file in `components/`, or a class of another package that registers it as an entry point of the group
`graftmt.components`. It overrides what it needs; everything else has a default.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from torch import Tensor

from graftmt.errors import ConfigError
from graftmt.text import CodePlacement, Text

if TYPE_CHECKING:
    from graftmt.base import Base
    from graftmt.model import ModelConfig
    from graftmt.packs.composition import Installation
    from graftmt.packs.pack import Beginning
    from graftmt.packs.parts import Setting

Side = Literal["source", "target"]
Stack = Literal["encoder", "decoder"]
Shape = tuple[int, ...]

STACKS: dict[str, Stack] = {"enc": "encoder", "dec": "decoder"}
SHORT: dict[Stack, str] = {stack: short for short, stack in STACKS.items()}
SCOPED = "@trained"
"""After a component: it is used only in directions whose other language the pack was trained with."""

OTHERS = 60
"""Where kinds of other packages stand in a recipe: after ours, before first values and language codes."""


@dataclass(frozen=True)
class Description:
    """A line about a kind for people: one way to write it, what a pack then has of its own, and the sides it is for."""

    form: str
    meaning: str
    sides: str = "both"


@dataclass(frozen=True)
class Export:
    """What becomes of a component in the format of another program."""

    how: Literal["nothing", "weights", "folded", "layers", "impossible"]
    """nothing to export; as weights in their places; folded into other weights; as layers more; not at all."""
    reason: str = ""
    """Why it is impossible, and what to do instead."""


@dataclass(frozen=True)
class Written:
    """A component as it is written in a recipe, and where."""

    recipe: str
    text: str
    """Without its scope."""
    start: int = 0
    """Index of its first character in the recipe."""
    scoped: bool = False
    following: Written | None = None

    def error(self, what: str, at: int = 0) -> ConfigError:
        """An error at character `at` of this component: the recipe, the place and a caret under it."""
        return ConfigError(self.message(what, at))

    def message(self, what: str, at: int = 0) -> str:
        line, start = re.sub(r"\s", " ", self.recipe), self.start + at
        return f"recipe {self.recipe!r}, character {start + 1}: {what}\n  {line}\n  {' ' * start}^"


class Component(ABC):
    """One component of a recipe. Each kind is a frozen dataclass of what can be chosen."""

    # How it is written

    position: ClassVar[int] = OTHERS
    """Where the kind stands in a recipe's canonical form."""
    descriptions: ClassVar[tuple[Description, ...]] = ()
    """What `graftmt recipes` says about the kind; the forms are also what an error expects."""
    missing: ClassVar[str] = ""
    """What to say of a recipe that does not name the kind, where every recipe has to."""

    @classmethod
    @abstractmethod
    def read(cls, written: Written) -> Sequence[Component] | None:
        """The components that a text means, None where it is of another kind; `written.error` for one that is wrong."""

    @abstractmethod
    def __str__(self) -> str:
        """Its canonical form, which `read` reads."""

    @classmethod
    def suggestions(cls, text: str) -> Iterable[str]:
        """What may have been meant by a text that no kind reads."""
        return [description.form for description in cls.descriptions]

    @classmethod
    def canonical(cls, own: Sequence[Self]) -> Sequence[Self]:
        """All components of this kind in one recipe, in one order whatever the order they were written in."""
        return sorted(own, key=str)

    @classmethod
    def names(cls, own: Sequence[Self]) -> list[str]:
        """How these, in canonical order, are written."""
        return [str(component) for component in own]

    @classmethod
    def default(cls) -> Self | None:
        """The one that a recipe has where it names none; most kinds have none."""
        return None

    @property
    def scoped(self) -> bool:
        """Whether it is used in trained directions only; a kind that allows it has a field of this name."""
        return False

    def clash(self, earlier: Component) -> str:
        """Why this cannot stand in a recipe after an earlier one; "" where it can."""
        return "says the same again; leave one of them out." if self == earlier else ""

    # What it means for an architecture

    def side_problem(self, side: Side) -> str:
        """Why a pack of this side cannot have it; "" where it can."""
        return ""

    def tuned_layers(self, config: ModelConfig) -> frozenset[tuple[Stack, int]]:
        """The layers, counted from 0, that the pack has its own copy of, all parameters."""
        return frozenset()

    def check(self, setting: Setting) -> None:
        """Raises where the architecture, or another component of the recipe, does not allow it."""
        return None

    def check_base(self, setting: Setting, base: Base) -> None:
        """The same for what only a base can tell, such as its languages."""
        return None

    def shapes(self, setting: Setting) -> dict[str, Shape]:
        """The tensors that the pack has for it. A name that the base has too stands for the base's parameter."""
        return {}

    def order(self, name: str) -> tuple[int, ...]:
        """Where a tensor stands among all of a pack's. Random first values are drawn in this order."""
        return (self.position,)

    def code_rows(self, setting: Setting) -> int:
        """Rows of the pack's vocabulary that are not in its embedding matrix but in a tensor of this component."""
        return 0

    # What it does

    def zero_shot_cost(self, side: Side) -> str:
        """What it cost, where that was measured, in directions that a pack of this side was not trained in. "": not known."""
        return ""

    @property
    def needs_translations(self) -> bool:
        """Whether its first values are made from aligned text."""
        return False

    def first_value(self, name: str, shape: Shape, beginning: Beginning) -> Tensor:
        """A tensor before training, in fp32 on the CPU. Default: a copy of the base's."""
        return beginning.copy_of(name)

    def install(self, installation: Installation) -> None:
        """Puts the pack's parameters to work in a composition. Default: in the place of the base's of the same names.

        A module that is put in may have a method `folded`, which gives one with the same output and fewer operations:
        it takes its place where a composition is made for inference.
        """
        for name in self.shapes(installation.setting):
            installation.replace(name)

    def export(self, config: ModelConfig) -> Export:
        """What becomes of it in CTranslate2 or Hugging Face."""
        return Export("impossible", f"{self} does not say what it is in another program; translate with graftmt.")


class CodeComponent(Component):
    """The choice of a language code, which every recipe has: `Recipe.code`."""

    own_codes: ClassVar[str]
    """The tensor of codes that the pack has learned, a row for each of its languages."""

    @property
    @abstractmethod
    def is_nearest(self) -> bool:
        """Whether it is still to be found out which of the base's codes it is."""

    @abstractmethod
    def naming(self, language: str) -> Self:
        """The same with the code of this language of the base."""

    @abstractmethod
    def named_as_in(self, codes: Sequence[str]) -> Self:
        """The same with the base's own name for its language, of all those that the base has codes of."""

    @abstractmethod
    def is_own(self, side: Side, placement: CodePlacement) -> bool:
        """Whether a pack brings a row for each of its languages."""

    @abstractmethod
    def rows_of(self, text: Text, number: int, placement: CodePlacement) -> list[int]:
        """The rows of a matrix that are written for the pack's language of this number. First come those of `text`."""
