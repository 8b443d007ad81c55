"""`enc-first-layer`, `dec-layer-2`, `dec-all-layers` …: whole layers that the pack has its own copy of. Layer 3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from graftmt.model import ModelConfig
from graftmt.packs.component import SHORT, STACKS, Component, Description, Export, Shape, Side, Stack, Written
from graftmt.packs.layer_choice import NUMBERED, LayerComponent, Layers, pattern, read_layers
from graftmt.packs.parts import Setting, base_parameters

_WRITTEN = pattern(rf"(?P<stack>enc|dec)-(?:(?P<place>first|last)-layer|layer-(?P<layers>{NUMBERED})|all-layers)")
_ALL = pattern(r"all-(?P<stack>enc|dec)-layers")


@dataclass(frozen=True, kw_only=True)
class TunedLayers(LayerComponent):
    """Layers that the pack has its own copy of, all parameters."""

    position = 20
    noun, plural = "a layer", "layers"
    descriptions = (
        Description("enc-first-layer", "all parameters of the first layer; also enc-last-layer", "both; dec-…: target"),
        Description("enc-layer-2", "of one layer by its number", "both; dec-…: target"),
        Description("enc-all-layers", "of all layers", "both; dec-…: target"),
    )

    @classmethod
    def read(cls, written: Written) -> Sequence[Component] | None:
        match = _WRITTEN.fullmatch(written.text) or _ALL.fullmatch(written.text)
        if match is None:
            return None
        groups = match.groupdict()
        place = cast(Layers, (groups.get("place") or "all").lower())
        layers = read_layers(written, match) if groups.get("layers") else place
        return [cls(stack=STACKS[match["stack"].lower()], layers=layers, scoped=written.scoped)]

    def __str__(self) -> str:
        stack = SHORT[self.stack]
        if isinstance(self.layers, str):
            return f"{stack}-all-layers{self.scope}" if self.layers == "all" else f"{stack}-{self.layers}-layer{self.scope}"
        return " + ".join(f"{stack}-layer-{number}{self.scope}" for number in self.layers)

    @classmethod
    def suggestions(cls, text: str) -> Iterable[str]:
        return [f"{stack}-{name}" for stack in STACKS for name in ("first-layer", "last-layer", "layer-1", "all-layers")]

    def clash(self, earlier: Component) -> str:
        return "names a layer a second time; leave one of them out." if self.shares_a_layer_with(earlier) else ""

    def tuned_layers(self, config: ModelConfig) -> frozenset[tuple[Stack, int]]:
        return frozenset((self.stack, index) for index in self.indices(config))

    def shapes(self, setting: Setting) -> dict[str, Shape]:
        chosen = self.tuned_layers(setting.config)
        found = (one for one in base_parameters(setting.config) if (one.stack, one.layer) in chosen)
        return {parameter.name: parameter.shape for parameter in found}

    def zero_shot_cost(self, side: Side) -> str:
        if side == "target" or self.scoped:
            return ""
        costs = {
            "all": "tuning the whole encoder cost 36.6 chrF into languages that were not trained (Greek, 50.6 to 14.0 after "
            "4,000 updates; docs/results/paper-settings).",
            "first": "a first layer tuned without lines in other languages cost nothing on a pre-norm base (Greek, 4,000 "
            "updates; docs/results/paper-settings), and in the paper, on a post-norm one, nearly all of it (41.7 to 10.2). "
            "With --augment 1k-bt it stays.",
        }
        return costs.get(self.layers, "") if isinstance(self.layers, str) else ""

    def export(self, config: ModelConfig) -> Export:
        return Export("weights")
