"""`enc-adapters-all(512)`, `parallel-adapters-all(64)` …: small bottlenecks after a layer (serial, the paper's) or next to its
FFN (parallel). Layer 3.

Each wrapper has the signature of what it wraps, so that it can stand in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graftmt.errors import ConfigError
from graftmt.model import ModelConfig
from graftmt.model.attention import Attention, PackedMemory, Packing
from graftmt.model.known_parts import known_part
from graftmt.model.layers import ACTIVATIONS, DecoderLayer, EncoderLayer, FeedForward, LayerCache, linear_map
from graftmt.model.plain_layers import PlainLayer
from graftmt.packs.component import SHORT, STACKS, Component, Description, Export, Shape, Side, Written
from graftmt.packs.composition import Installation
from graftmt.packs.layer_choice import NAMED, NUMBER, AddedToLayers, pattern, read_layers, read_stacks
from graftmt.packs.pack import Beginning
from graftmt.packs.parts import Setting

NEARLY_ZERO = 1e-3
"""The spread of an adapter's last weights before training: the adapter begins as almost nothing."""

_WRITTEN = pattern(
    rf"(?P<parallel>parallel-)?(?:(?P<stack>enc|dec)-)?(?P<inner>parallel-)?(?:adapters?|adapt|ad)-{NAMED}"
    rf"(?:\s*\(\s*(?:d(?:im)?\s*=\s*)?(?P<dim>{NUMBER})\s*\)|\s+d(?:im)?\s*=\s*(?P<bare>{NUMBER}))?"
)


@dataclass(frozen=True, kw_only=True)
class Adapters(AddedToLayers):
    """An adapter of bottleneck `dim` after (or, parallel, next to the FFN of) each of these layers."""

    dim: int
    parallel: bool = False

    position = 30
    noun, plural = "an adapter", "adapters"
    descriptions = (
        Description("enc-adapters-all(512)", "after each layer x + up(ReLU(down(norm(x)))), 512 wide", "both; dec-…: target"),
        Description("adapters-all(64)", "the same on all layers of both stacks", "target"),
        Description(
            "parallel-enc-adapters-all(64)", "up(f(down(x))) added to each FFN, f its activation", "both; dec-…: target"
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim < 1:
            raise ConfigError(f"an adapter's dimension is {self.dim}; expected at least 1.")

    @classmethod
    def read(cls, written: Written) -> Sequence[Component] | None:
        match = _matched(written)
        if match is None:
            return None
        layers = read_layers(written, match)
        stacks = read_stacks(written, match, layers, "adapters")
        dim, parallel = _dimension(written, match), bool(match["parallel"] or match["inner"])
        return [cls(stack=stack, layers=layers, dim=dim, parallel=parallel, scoped=written.scoped) for stack in stacks]

    def __str__(self) -> str:
        side = "parallel-" if self.parallel else ""
        return f"{side}{SHORT[self.stack]}-adapters-{self.layer_names}({self.dim}){self.scope}"

    @classmethod
    def suggestions(cls, text: str) -> Iterable[str]:
        """With the dimension that stands in the text."""
        _, bracket, tail = text.partition("(")
        heads = [f"{stack}-adapters-{layers}" for stack in STACKS for layers in ("first", "last", "all", "1,2,3")]
        heads.append("adapters-all")
        return [f"{parallel}{head}{bracket + tail or '(512)'}" for parallel in ("", "parallel-") for head in heads]

    def side_problem(self, side: Side) -> str:
        problem = super().side_problem(side)
        return f"{problem} (adapters-all is enc-adapters-all on this side)" if problem else ""

    def shapes(self, setting: Setting) -> dict[str, Shape]:
        width = setting.config.model_dim
        own: dict[str, Shape] = {} if self.parallel else {"norm.weight": (width,), "norm.bias": (width,)}
        own |= {"down.weight": (self.dim, width), "down.bias": (self.dim,)}
        own |= {"up.weight": (width, self.dim), "up.bias": (width,)}
        indices = self.free_indices(setting)
        return {f"{self.stack}.adapters.{index}.{name}": shape for index in indices for name, shape in own.items()}

    def order(self, name: str) -> tuple[int, ...]:
        """By stack and layer, whichever component says so."""
        return self.position, self.stack == "decoder", int(name.split(".")[2])

    def first_value(self, name: str, shape: Shape, beginning: Beginning) -> Tensor:
        """Norms as usual, the first map random as usual, the last one nearly zero."""
        if name.endswith("norm.weight"):
            return torch.ones(shape)
        if len(shape) == 1:
            return torch.zeros(shape)
        if not name.endswith("up.weight"):
            return nn.init.xavier_uniform_(torch.empty(shape), generator=beginning.generator)
        last = torch.empty(shape).normal_(std=NEARLY_ZERO, generator=beginning.generator)
        return last.zero_() if self.scoped else last  # not nearly: what is trained before it must not feel it

    def zero_shot_cost(self, side: Side) -> str:
        if self.scoped or self.stack == "decoder":
            return ""
        if side == "source":
            return (
                "encoder adapters cost chrF into languages that were not trained: after 4,000 updates 26.5 of 50.6 with 512 in "
                "all layers, 13.8 with 1,024 in the lower three, 4.2 with 64 in all, 0.2 with 64 in the first (Greek; "
                "docs/results/paper-settings), and in the paper, after more, nearly all of it (41.7 to 10.0). With "
                "--augment 1k-bt most of it stays."
            )
        if self.layers != "all":
            return ""
        return (
            "adapters in all layers cost 2.7 chrF from languages that were not trained (Greek, 50.3 against 53.0 with the "
            "default recipe after 4,000 updates; docs/results/paper-settings)."
        )

    def install(self, installation: Installation) -> None:
        config = installation.model.config
        for index in self.free_indices(installation.setting):
            prefix = f"{self.stack}.adapters.{index}."
            if self.parallel:
                activation = ACTIVATIONS[config.activation]
                added = installation.filled(ParallelAdapter, prefix, config.model_dim, self.dim, activation)
                _widen_ffn(installation.layer(self.stack, index), added)
            else:
                after = installation.filled(Adapter, prefix, config.model_dim, self.dim, config.norm_epsilon)
                wrapper = AdaptedEncoderLayer if self.stack == "encoder" else AdaptedDecoderLayer
                _put_after(installation.layers(self.stack), index, after, wrapper)

    def export(self, config: ModelConfig) -> Export:
        if self.parallel:
            return Export("folded")
        if config.norm == "pre":
            return Export("layers")  # without attention, whose FFN is the adapter
        reason = f"{self} follows post-norm layers, and no layer of another program is x + an FFN of its norm there"
        return Export("impossible", f"{reason}; train parallel-{SHORT[self.stack]}-adapters instead, or use a pre-norm base.")


def _matched(written: Written) -> re.Match[str] | None:
    match = _WRITTEN.fullmatch(written.text)
    return None if match is None or (match["parallel"] and match["inner"]) else match


def _dimension(written: Written, match: re.Match[str]) -> int:
    """Its own, or that of the adapters directly after: `enc-adapt-last + dec-adapt-all (1024)` is row 52 of the paper."""
    dim = match["dim"] or match["bare"]
    if dim is None:
        after = _WRITTEN.fullmatch(written.following.text) if written.following else None
        if written.following is None or after is None:
            raise written.error(f"{written.text!r} has no dimension; write {written.text + '(512)'!r} for one of 512.")
        return _dimension(written.following, after)
    if int(dim) < 1:
        at = match.start("dim" if match["dim"] else "bare")
        raise written.error(f"an adapter's dimension is {dim}; expected at least 1, such as (512).", at)
    return int(dim)


def _widen_ffn(layer: nn.Module, adapter: ParallelAdapter) -> None:
    """A source pack's adapter comes before a target pack's."""
    ffn = layer.ffn
    if type(ffn) is not AdaptedFeedForward:
        ffn = layer.ffn = AdaptedFeedForward(ffn, [])  # type: ignore[arg-type]
    ffn.adapters.append(adapter)


def _put_after(
    layers: nn.ModuleList, index: int, adapter: Adapter, wrapper: type[AdaptedEncoderLayer] | type[AdaptedDecoderLayer]
) -> None:
    adapted = layers[index]
    if type(adapted) is not wrapper:
        adapted = layers[index] = wrapper(adapted, [])  # type: ignore[arg-type]
    adapted.adapters.append(adapter)


# The modules


@known_part
class Adapter(nn.Module):
    """x + up(ReLU(down(norm(x)))): the paper's serial adapter."""

    def __init__(self, dim: int, bottleneck: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=epsilon)
        self.down = nn.Linear(dim, bottleneck)
        self.up = nn.Linear(bottleneck, dim)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.up(F.relu(self.down(self.norm(x))))  # type: ignore[no-any-return]

    def as_layers(self) -> list[PlainLayer]:
        """A layer without attention, whose FFN is the adapter."""
        return [PlainLayer(ffn_norm=self.norm, up=self.down, down=self.up, activation=F.relu)]


@known_part
class ParallelAdapter(nn.Module):
    """up(f(down(x))): added to the output of an FFN, f being its activation, so that it can become part of it."""

    def __init__(self, dim: int, bottleneck: int, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.down = nn.Linear(dim, bottleneck)
        self.up = nn.Linear(bottleneck, dim)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return self.up(self.activation(self.down(x)))  # type: ignore[no-any-return]


@known_part
class AdaptedEncoderLayer(nn.Module):
    """An encoder layer, then adapters in order: those of the source language before those of the target language."""

    def __init__(self, layer: EncoderLayer, adapters: Sequence[Adapter]) -> None:
        super().__init__()
        self.layer = layer
        self.adapters = nn.ModuleList(adapters)

    def forward(self, x: Tensor, mask: Tensor | Packing | None) -> Tensor:
        x = self.layer(x, mask)
        for adapter in self.adapters:
            x = adapter(x)
        return x

    def as_layers(self) -> list[nn.Module]:
        return [self.layer, *self.adapters]


@known_part
class AdaptedDecoderLayer(nn.Module):
    """The same for a decoder layer, one token at a time too."""

    def __init__(self, layer: DecoderLayer, adapters: Sequence[Adapter]) -> None:
        super().__init__()
        self.layer = layer
        self.adapters = nn.ModuleList(adapters)

    @property
    def cross_attention(self) -> Attention:
        return self.layer.cross_attention

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | PackedMemory | None) -> Tensor:
        return self._adapt(self.layer(x, memory, memory_mask))

    def step(self, x: Tensor, cache: LayerCache, memory_mask: Tensor | None, beam: int) -> Tensor:
        return self._adapt(self.layer.step(x, cache, memory_mask, beam))

    def as_layers(self) -> list[nn.Module]:
        return [self.layer, *self.adapters]

    def _adapt(self, x: Tensor) -> Tensor:
        for adapter in self.adapters:
            x = adapter(x)
        return x


@known_part
class AdaptedFeedForward(nn.Module):
    """An FFN plus the parallel adapters of one or two packs."""

    def __init__(self, ffn: FeedForward, adapters: Sequence[ParallelAdapter]) -> None:
        super().__init__()
        self.ffn = ffn
        self.adapters = nn.ModuleList(adapters)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.ffn(x)
        for adapter in self.adapters:
            result = result + adapter(x)
        return result

    @torch.no_grad()
    def folded(self) -> nn.Module:
        """One FFN with the adapters' units next to its own: the same output, and nothing more to compute than it has."""
        firsts: list[nn.Linear] = [self.ffn.up, *(adapter.down for adapter in self.adapters)]  # type: ignore[list-item]
        seconds: list[nn.Linear] = [self.ffn.down, *(adapter.up for adapter in self.adapters)]  # type: ignore[list-item]
        if type(self.ffn) is not FeedForward or any(type(linear) is not nn.Linear for linear in (*firsts, *seconds)):
            return self  # something of its own, whose weights alone do not say what it computes
        whole = FeedForward.__new__(FeedForward)
        nn.Module.__init__(whole)
        whole.up = linear_map(torch.cat([linear.weight for linear in firsts]), torch.cat([linear.bias for linear in firsts]))
        down = torch.cat([linear.weight for linear in seconds], dim=1)
        whole.down = linear_map(down, torch.stack([linear.bias for linear in seconds]).sum(0))
        whole.activation = self.ffn.activation
        return whole
