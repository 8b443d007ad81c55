"""`embed`: the pack's own embedding matrix, which every pack has; a target pack's is its output projection too. Layer 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from graftmt.model import ModelConfig
from graftmt.model.embeddings import Embedding, Projection
from graftmt.packs.component import Component, Description, Export, Shape, Written
from graftmt.packs.components.first_values import first_rows
from graftmt.packs.composition import Installation
from graftmt.packs.layer_choice import pattern
from graftmt.packs.pack import Beginning
from graftmt.packs.parts import Setting

WEIGHT, OUTPUT, OUTPUT_BIAS = "embedding.weight", "output.weight", "output.bias"

_WRITTEN = pattern(r"embed|only\s+embed|embed\s+only")


@dataclass(frozen=True)
class Embed(Component):
    """A matrix for the pack's vocabulary."""

    position = 0
    descriptions = (Description("embed", "its vocabulary's embedding matrix; a target pack's is its output projection too"),)
    missing = "'embed' is missing; every pack has its own embeddings. Write 'embed + …'."

    @classmethod
    def read(cls, written: Written) -> Sequence[Component] | None:
        return [cls()] if _WRITTEN.fullmatch(written.text) else None

    def __str__(self) -> str:
        return "embed"

    @classmethod
    def default(cls) -> Self:
        return cls()

    def shapes(self, setting: Setting) -> dict[str, Shape]:
        biased = setting.side == "target" and setting.config.output_bias
        return {WEIGHT: (setting.rows, setting.config.model_dim)} | ({OUTPUT_BIAS: (setting.rows,)} if biased else {})

    def order(self, name: str) -> tuple[int, ...]:
        return (0,) if name == WEIGHT else (2,)  # between them an output projection of its own

    def first_value(self, name: str, shape: Shape, beginning: Beginning) -> Tensor:
        rows = first_rows(beginning, embedding_of_side(beginning))
        beginning.card["initialisation"] = rows.counts
        return rows.weight if name == WEIGHT else _first_bias(beginning, rows.base_rows)

    def install(self, installation: Installation) -> None:
        model, own = installation.model, installation.parameters
        padding = installation.pack.tokenizer.padding_id
        if installation.setting.side == "source":
            model.source_embedding = _embedding(own[WEIGHT], padding)
        else:
            reads_padding = installation.base.tokenizer.layout.decoder_start == "padding"
            model.target_embedding = _embedding(own[WEIGHT], padding, reads_padding=reads_padding)
            model.projection = Projection(own[WEIGHT], own.get(OUTPUT_BIAS))

    def export(self, config: ModelConfig) -> Export:
        return Export("weights")


def embedding_of_side(beginning: Beginning) -> nn.Parameter | Tensor:
    """The base's matrix that a pack's embeddings start from."""
    model = beginning.base.model
    return model.source_embedding.weight if beginning.setting.side == "source" else model.target_embedding.weight


def _first_bias(beginning: Beginning, base_rows: Mapping[int, int]) -> Tensor:
    """(rows): the base's where a row is the base's too, zero where it is new."""
    bias = torch.zeros(len(beginning.tokenizer))
    known = beginning.base.model.projection.bias
    if known is not None:
        for row, base_row in base_rows.items():
            bias[row] = known[base_row].detach().float().cpu()
    return bias


def _embedding(weight: nn.Parameter, padding_id: int, *, reads_padding: bool = False) -> Embedding:
    with torch.device("meta"):
        embedding = Embedding(padding_id + 1, 1, padding_id, reads_padding=reads_padding)
    embedding.weight = weight
    return embedding
