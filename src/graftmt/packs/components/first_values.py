"""`init:…`: where the rows of a pack's embedding matrix start from. The rules are in `packs/initialisation.py`. Layer 3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self, cast, get_args

from torch import Tensor

from graftmt.errors import nearest
from graftmt.model import ModelConfig
from graftmt.packs.component import Component, Description, Export, Written
from graftmt.packs.initialisation import InitialisationMethod, Initialised, initialise
from graftmt.packs.layer_choice import pattern
from graftmt.packs.pack import Beginning

METHODS: tuple[str, ...] = get_args(InitialisationMethod)

_WRITTEN = pattern(r"init:\s*(?P<method>\S*)")
_RANDOM = pattern(r"random[\s-]+embed[\s-]+init")


@dataclass(frozen=True, kw_only=True)
class FirstValues(Component):
    """The rule by which the rows of the pack's matrices get their first values."""

    method: InitialisationMethod = "overlap"

    position = 90
    descriptions = (
        Description("init:alignment", "nothing more; rows start from those of the base's pieces that translate them"),
        Description("init:random", "nothing more; rows start from noise. Also init:pieces; the default is init:overlap"),
    )

    @classmethod
    def read(cls, written: Written) -> Sequence[Component] | None:
        if _RANDOM.fullmatch(written.text):
            return [cls(method="random")]
        if (match := _WRITTEN.fullmatch(written.text)) is None:
            return None
        method = match["method"].lower()
        if method not in METHODS:
            what = (
                f"init:{method} is not known{nearest(method, METHODS) or '.'} Expected init: with one of {', '.join(METHODS)}."
            )
            raise written.error(what, match.start("method"))
        return [cls(method=cast(InitialisationMethod, method))]

    def __str__(self) -> str:
        return f"init:{self.method}"

    @classmethod
    def names(cls, own: Sequence[Self]) -> list[str]:
        return [str(choice) for choice in own if choice != cls()]

    @classmethod
    def suggestions(cls, text: str) -> Iterable[str]:
        return [*(f"init:{method}" for method in METHODS), "random embed init"]

    @classmethod
    def default(cls) -> Self:
        return cls()

    def clash(self, earlier: Component) -> str:
        return "is a second choice of init; leave one of them out." if isinstance(earlier, FirstValues) else ""

    @property
    def needs_translations(self) -> bool:
        return self.method == "alignment"

    def export(self, config: ModelConfig) -> Export:
        return Export("nothing")


def first_rows(beginning: Beginning, weight: Tensor) -> Initialised:
    """Rows for the pack's vocabulary that start from a matrix of the base's; made once for each matrix."""
    key = ("rows", id(weight))
    if key not in beginning.made:
        beginning.made[key] = initialise(
            beginning.tokenizer,
            beginning.base.tokenizer.side(beginning.setting.side),
            weight.detach().float().cpu(),
            method=beginning.setting.recipe.one(FirstValues).method,
            seed=beginning.seed,
            trained_codes=beginning.trained_codes,
            translations=beginning.translations,
        )
    found: Initialised = beginning.made[key]
    return found
