"""`enc-lora-all(16)`, `lora-all(16, alpha=32)` …: a low-rank update of each linear map of a layer (Hu et al., 2021). Layer 3.

W becomes W + α/r · B A, with A (r, in) and B (out, r), for the maps of attention and FFN. A is stored as `down`, B as `up`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graftmt.errors import ConfigError
from graftmt.model import ModelConfig
from graftmt.model.known_parts import known_part
from graftmt.model.layers import linear_map
from graftmt.packs.component import SHORT, STACKS, Component, Description, Export, Shape, Side, Written
from graftmt.packs.composition import Installation
from graftmt.packs.layer_choice import NAMED, NUMBER, AddedToLayers, pattern, read_layers, read_stacks
from graftmt.packs.pack import Beginning
from graftmt.packs.parts import Setting, base_parameters

_WRITTEN = pattern(
    rf"(?:(?P<stack>enc|dec)-)?lora-{NAMED}"
    rf"(?:\s*\(\s*(?:r(?:ank)?\s*=\s*)?(?P<rank>{NUMBER})\s*(?:,\s*alpha\s*=\s*(?P<alpha>{NUMBER})\s*)?\))?"
)


@dataclass(frozen=True, kw_only=True)
class LowRankUpdates(AddedToLayers):
    """An update of rank `rank` for each linear map of these layers, multiplied by alpha / rank."""

    rank: int
    alpha: int = 0
    """Default: the rank."""

    position = 40
    noun, plural = "an update", "updates"
    descriptions = (
        Description(
            "enc-lora-all(16)",
            "an update of rank 16 for each linear map of attention and FFN; also (16, alpha=32)",
            "both; dec-…: target",
        ),
        Description("lora-all(16)", "the same on all layers of both stacks", "target"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank < 1 or self.alpha < 0:
            raise ConfigError(f"LoRA of rank {self.rank} and alpha {self.alpha}; expected at least 1.")
        object.__setattr__(self, "alpha", self.alpha or self.rank)

    @classmethod
    def read(cls, written: Written) -> Sequence[Component] | None:
        match = _WRITTEN.fullmatch(written.text)
        if match is None:
            return None
        layers = read_layers(written, match)
        stacks = read_stacks(written, match, layers, "lora")
        rank, alpha = _number(written, match, "rank"), _number(written, match, "alpha")
        if rank is None:
            raise written.error(f"{written.text!r} has no rank; write {written.text + '(16)'!r} for one of 16.")
        return [cls(stack=stack, layers=layers, rank=rank, alpha=alpha or rank, scoped=written.scoped) for stack in stacks]

    def __str__(self) -> str:
        alpha = "" if self.alpha == self.rank else f", alpha={self.alpha}"
        return f"{SHORT[self.stack]}-lora-{self.layer_names}({self.rank}{alpha}){self.scope}"

    @classmethod
    def suggestions(cls, text: str) -> Iterable[str]:
        _, bracket, tail = text.partition("(")
        heads = [f"{stack}-lora-{layers}" for stack in STACKS for layers in ("first", "last", "all", "1,2,3")]
        return [head + (bracket + tail or "(16)") for head in (*heads, "lora-all")]

    def side_problem(self, side: Side) -> str:
        problem = super().side_problem(side)
        return f"{problem} (lora-all is enc-lora-all on this side)" if problem else ""

    def shapes(self, setting: Setting) -> dict[str, Shape]:
        shapes: dict[str, Shape] = {}
        for path, (height, width) in self._maps(setting).items():
            shapes |= {f"{_own(path)}.down.weight": (self.rank, width), f"{_own(path)}.up.weight": (height, self.rank)}
        return shapes

    def order(self, name: str) -> tuple[int, ...]:
        return self.position, self.stack == "decoder", int(name.split(".")[2])

    def first_value(self, name: str, shape: Shape, beginning: Beginning) -> Tensor:
        """As in PEFT: A as torch begins a linear map, B zero, so that the update begins as nothing."""
        if name.endswith("up.weight"):
            return torch.zeros(shape)
        return nn.init.kaiming_uniform_(torch.empty(shape), a=math.sqrt(5), generator=beginning.generator)

    def zero_shot_cost(self, side: Side) -> str:
        if self.scoped or self.stack == "decoder":
            return ""
        if side == "source":
            return (
                "encoder LoRA cost 15.6 chrF into languages that were not trained (Greek, 50.6 to 35.1 after 4,000 updates; "
                "docs/results/paper-settings)."
            )
        if self.layers != "all":
            return ""
        return (
            "LoRA in all layers cost 3.3 chrF from languages that were not trained (Greek, 49.7 against 53.0 with the default "
            "recipe after 4,000 updates; docs/results/paper-settings)."
        )

    def install(self, installation: Installation) -> None:
        """Around each map, whatever holds its weight; a second pack's update is added to the first one's."""
        for path, (height, width) in self._maps(installation.setting).items():
            update = installation.filled(LowRank, f"{_own(path)}.", width, height, self.rank, self.alpha / self.rank)
            parent, _, name = path.rpartition(".")
            holder = installation.modules[parent]
            updated = getattr(holder, name)
            if type(updated) is not UpdatedLinear:
                updated = UpdatedLinear(updated)
                setattr(holder, name, updated)
            updated.updates.append(update)

    def export(self, config: ModelConfig) -> Export:
        return Export("folded")

    def _maps(self, setting: Setting) -> dict[str, Shape]:
        """The base's linear maps that it updates, by path, with the shapes of their weights."""
        chosen = set(self.free_indices(setting))
        return {
            parameter.name.removesuffix(".weight"): parameter.shape
            for parameter in base_parameters(setting.config)
            if parameter.kind == "weight" and parameter.stack == self.stack and parameter.layer in chosen
        }


def _own(path: str) -> str:
    """`encoder.layers.0.ffn.up` → `encoder.lora.0.ffn.up`"""
    return path.replace(".layers.", ".lora.", 1)


def _number(written: Written, match: re.Match[str], name: str) -> int | None:
    if match[name] is None:
        return None
    if int(match[name]) < 1:
        raise written.error(f"the {name} of LoRA is {match[name]}; expected at least 1, such as (16).", match.start(name))
    return int(match[name])


@known_part
class LowRank(nn.Module):
    """scale · up(down(x)), the update alone."""

    def __init__(self, width: int, height: int, rank: int, scale: float) -> None:
        super().__init__()
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, height, bias=False)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return self.up(self.down(x)) * self.scale  # type: ignore[no-any-return]


@known_part
class UpdatedLinear(nn.Module):
    """A linear map and the updates of one or two packs. It has no `weight`: nobody can take that and leave out the rest."""

    def __init__(self, linear: nn.Module) -> None:
        super().__init__()
        self.linear = linear
        self.updates = nn.ModuleList()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.linear(x)
        for update in self.updates:
            result = result + update(x)
        return result

    @torch.no_grad()
    def folded(self) -> nn.Module:
        """One linear map with the sum of all weights, added up in fp32: nothing more to compute, and a copy of the weight."""
        if type(self.linear) is not nn.Linear:
            return self  # something of its own, whose weight alone does not say what it computes
        total = self.linear.weight.float()
        for update in self.updates:
            assert isinstance(update, LowRank)
            total = total + update.scale * (update.up.weight.float() @ update.down.weight.float())
        return linear_map(total.to(self.linear.weight.dtype), self.linear.bias)
