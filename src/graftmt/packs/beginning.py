"""What components make the first values of a new pack from. Layer 3."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from graftmt.base import Base
from graftmt.packs.parts import Setting
from graftmt.text import Text


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """A pack whose tensors get their first values, one after the other."""

    base: Base
    setting: Setting
    tokenizer: Text
    """The pack's own."""
    seed: int
    generator: torch.Generator
    """Of all that is drawn at random, in the order of the pack's tensors; rows of embeddings are drawn from the seed."""
    trained_codes: Collection[str] = ()
    """The languages on the other side of the training text, whose code rows will move."""
    translations: Mapping[str, Mapping[str, float]] | None = None
    """Symbol of the pack → symbols of the base that translate it, with weights."""
    card: dict[str, Any] = field(default_factory=dict)
    """What the pack's card will say of its first values."""
    made: dict[Any, Any] = field(default_factory=dict)
    """What one component has made that another one needs too."""

    @cached_property
    def base_parameters(self) -> dict[str, nn.Parameter]:
        return dict(self.base.model.named_parameters())

    def copy_of(self, name: str) -> Tensor:
        """A parameter of the base, in fp32 on the CPU."""
        return self.base_parameters[name].detach().float().cpu().clone()
