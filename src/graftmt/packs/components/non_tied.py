"""`non-tied`: an output projection apart from the embedding. Layer 3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from graftmt.model import ModelConfig
from graftmt.model.embeddings import Projection
from graftmt.packs.component import Component, Description, Export, Shape, Side, Written
from graftmt.packs.components.embed import OUTPUT, OUTPUT_BIAS, embedding_of_side
from graftmt.packs.components.first_values import first_rows
from graftmt.packs.composition import Installation
from graftmt.packs.pack import Beginning
from graftmt.packs.parts import Setting


@dataclass(frozen=True)
class NonTied(Component):
    """A projection of its own to the pack's vocabulary."""

    position = 1
    descriptions = (Description("non-tied", "an output projection apart from the embedding", "target"),)

    @classmethod
    def read(cls, written: Written) -> Sequence[Component] | None:
        return [cls()] if written.text.lower() == "non-tied" else None

    def __str__(self) -> str:
        return "non-tied"

    def side_problem(self, side: Side) -> str:
        return "the output projection belongs to the target language" if side == "source" else ""

    def shapes(self, setting: Setting) -> dict[str, Shape]:
        return {OUTPUT: (setting.rows, setting.config.model_dim)}

    def first_value(self, name: str, shape: Shape, beginning: Beginning) -> Tensor:
        output, embedding = beginning.base.model.projection.weight, embedding_of_side(beginning)
        return first_rows(beginning, embedding if output is embedding else output).weight.clone()

    def install(self, installation: Installation) -> None:
        own = installation.parameters
        installation.model.projection = Projection(own[OUTPUT], own.get(OUTPUT_BIAS))

    def export(self, config: ModelConfig) -> Export:
        return Export("weights")
