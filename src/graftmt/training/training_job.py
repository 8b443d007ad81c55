"""What one run trains: a base, a pack or a re-trained base. The stages know no other difference. Layer 4."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import nn

from graftmt.data import Direction, TokenizedCorpus
from graftmt.model import Transformer
from graftmt.text import Codec
from graftmt.training.run_configuration import RunConfig
from graftmt.training.validation import Validator


@dataclass
class Prepared:
    """Text made ready: what every stage draws from."""

    codec: Codec
    train: TokenizedCorpus
    validator: Validator | None
    data: str
    """A fingerprint of all the text the run reads, and of whatever else it takes as given."""
    max_length: int
    marks: Mapping[str, str] = field(default_factory=dict)
    """What it takes as given besides text, by name: the base, the pack to continue."""
    fixed: Mapping[Direction, float] = field(default_factory=dict)
    """Directions with a probability of their own, in the stages that have them …"""
    factors: Mapping[Direction, float] = field(default_factory=dict)
    """… and directions drawn N times as often as by temperature alone."""


class TrainingJob(Protocol):
    """A run that is ready: its text, the parameters that it trains, and what each stage does with them. Stages count from 0."""

    @property
    def config(self) -> RunConfig: ...

    @property
    def prepared(self) -> Prepared: ...

    @property
    def parameters(self) -> Mapping[str, nn.Parameter]:
        """All that any stage trains, by name."""

    @property
    def keeps_start(self) -> bool:
        """Whether what a later stage starts from is the first candidate for its best."""

    def directions_of(self, stage: int) -> list[Direction]:
        """What the stage draws line pairs from."""

    def model_of(self, stage: int) -> Transformer:
        """The model in which the stage trains them."""

    def names_trained(self, stage: int) -> Collection[str]:
        """Those of the parameters that the stage trains."""


class WholeModel:
    """A job that trains all parameters of one model in every stage: a base, new or re-trained."""

    keeps_start = False

    def __init__(
        self, config: RunConfig, prepared: Prepared, model: Transformer, directions: Sequence[list[Direction]]
    ) -> None:
        """`directions`: those of each stage."""
        self.config, self.prepared, self.model, self.directions = config, prepared, model, directions
        self.parameters = dict(model.named_parameters())

    def directions_of(self, stage: int) -> list[Direction]:
        return self.directions[stage]

    def model_of(self, stage: int) -> Transformer:
        return self.model

    def names_trained(self, stage: int) -> Collection[str]:
        return self.parameters.keys()
