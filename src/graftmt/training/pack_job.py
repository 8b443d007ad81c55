"""A pack as a training job: its parameters, and which of them each stage trains in which directions. Layer 4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from graftmt.base import Base
from graftmt.data import Direction
from graftmt.model import Transformer
from graftmt.packs import Composition, Pack
from graftmt.training.pack_directions import pack_directions, scoped_directions
from graftmt.training.run_configuration import PackConfig
from graftmt.training.training_job import Prepared


@dataclass
class PackJob:
    """A pack that is ready to train: its text, its first values and the model that it is a part of."""

    config: PackConfig
    base: Base
    pack: Pack
    composition: Composition
    prepared: Prepared
    shared: Transformer | None = None
    """The model of directions that parts with `@trained` are not for, where these parts begin as something: in a pack that is
    continued. All stages but the last train in it."""

    @property
    def directions(self) -> list[Direction]:
        """Of the first stage."""
        return pack_directions(self.config, self.config.stages[0])

    @property
    def parameters(self) -> Mapping[str, nn.Parameter]:
        return self.pack.parameters

    @property
    def keeps_start(self) -> bool:
        return self.pack.recipe.scoped and self.config.parent is None  # a parent's parts begin as something else

    def _is_last(self, stage: int) -> bool:
        return stage + 1 == len(self.config.stages)

    def directions_of(self, stage: int) -> list[Direction]:
        scoped = self.pack.recipe.scoped and self._is_last(stage)
        return scoped_directions(self.config) if scoped else pack_directions(self.config, self.config.stages[stage])

    def model_of(self, stage: int) -> Transformer:
        return self.composition.model if self._is_last(stage) or self.shared is None else self.shared

    def names_trained(self, stage: int) -> frozenset[str]:
        """The parameters that a stage trains: the last one those for trained directions only, where the pack has any."""
        scoped = self.pack.scoped_names(self.base.model.config)
        return scoped if scoped and self._is_last(stage) else frozenset(self.pack.parameters) - scoped
