"""`enc-norm`, `dec-biases` …: all layer norms, or all biases of linear maps, of a stack. Layer 3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Self, cast

from graftmt.model import ModelConfig
from graftmt.packs.component import SHORT, STACKS, Component, Description, Export, Shape, Side, Stack, Written
from graftmt.packs.layer_choice import pattern
from graftmt.packs.parts import Setting, base_parameters

What = Literal["norm", "biases"]

_WRITTEN = pattern(r"(?P<stack>enc|dec)-(?P<what>norm|biases)")


@dataclass(frozen=True, kw_only=True)
class NormsOrBiases(Component):
    """The pack's own value of all norms, or of all biases, of a stack."""

    stack: Stack
    what: What

    position = 10
    descriptions = (
        Description("enc-norm", "weights and biases of all layer norms of the stack", "both; dec-norm: target"),
        Description("enc-biases", "biases of all linear maps of the stack", "both; dec-biases: target"),
    )

    @classmethod
    def read(cls, written: Written) -> Sequence[Component] | None:
        match = _WRITTEN.fullmatch(written.text)
        return [cls(stack=STACKS[match["stack"].lower()], what=cast(What, match["what"].lower()))] if match else None

    def __str__(self) -> str:
        return f"{SHORT[self.stack]}-{self.what}"

    @classmethod
    def suggestions(cls, text: str) -> Iterable[str]:
        return [f"{stack}-{what}" for stack in STACKS for what in ("norm", "biases")]

    @classmethod
    def canonical(cls, own: Sequence[Self]) -> Sequence[Self]:
        return sorted(own, key=lambda one: (one.stack == "decoder", one.what == "biases"))

    def side_problem(self, side: Side) -> str:
        return "the decoder belongs to the target language" if side == "source" and self.stack == "decoder" else ""

    def shapes(self, setting: Setting) -> dict[str, Shape]:
        kind = "norm" if self.what == "norm" else "bias"
        found = (one for one in base_parameters(setting.config) if one.stack == self.stack and one.kind == kind)
        return {parameter.name: parameter.shape for parameter in found}

    def export(self, config: ModelConfig) -> Export:
        return Export("weights")
