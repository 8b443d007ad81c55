"""Token embeddings with sinusoidal positions, and the output projection. Layer 1."""

from __future__ import annotations

import math
import threading

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graftmt.errors import ConfigError
from graftmt.model.architecture import ModelConfig
from graftmt.model.known_parts import known_part

_GROWING = threading.Lock()
"""Several threads translate with one model."""


def sinusoidal_positions(length: int, dim: int, first: int) -> Tensor:
    """(length, D): the sine half and the cosine half side by side, as in fairseq; positions count from `first`."""
    half = dim // 2
    frequencies = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000) / max(1, half - 1)))
    angles = torch.arange(first, first + length, dtype=torch.float)[:, None] * frequencies[None]
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def even_sinusoidal_positions(length: int, dim: int, first: int) -> Tensor:
    """The same with frequencies 10000^(-2i/D), as in the original Transformer and Marian."""
    frequencies = 10000.0 ** -(torch.arange(0, dim, 2, dtype=torch.double) / dim)
    angles = torch.arange(first, first + length, dtype=torch.double)[:, None] * frequencies[None]
    return torch.cat([angles.sin(), angles.cos()], dim=1).float()


@known_part
class Positions(nn.Module):
    """A table of positions that grows when a longer text comes; never stored with the weights."""

    table: Tensor
    make = staticmethod(sinusoidal_positions)

    def __init__(self, dim: int, first: int, length: int = 512) -> None:
        super().__init__()
        self.dim, self.first = dim, first
        self.older: list[Tensor] = []
        # Always real memory, also while a model is built on the meta device to be filled from a file.
        with torch.device("cpu"):
            self.register_buffer("table", self.make(length, dim, first), persistent=False)

    def forward(self, x: Tensor, start: int | Tensor = 0) -> Tensor:
        """x (B, T, D) → x plus the positions start … start + T; a start on the device is that of one token, and `reserve`d."""
        if isinstance(start, Tensor):
            return x + self.table.index_select(0, start).to(x.dtype)
        end = start + x.shape[1]
        return x + self.reserve(end)[start:end].to(x.dtype)

    def reserve(self, length: int) -> Tensor:
        """The table, with at least `length` positions. It never becomes shorter, and one that was replaced stays in memory: a
        step that was recorded as a CUDA graph reads it where it lies."""
        table = self.table
        if length <= table.shape[0]:
            return table
        with _GROWING:
            table = self.table
            if length > table.shape[0]:
                self.older.append(table)
                table = self.make(max(length, 2 * table.shape[0]), self.dim, self.first).to(table)
                self.table = table
            return table

    def at(self, x: Tensor, numbers: Tensor, longest: int) -> Tensor:
        """x (…, N, D) → x plus the positions that `numbers` (N,) name, all below `longest`: for packed sentences."""
        return x + self.reserve(longest)[numbers].to(x.dtype)


@known_part
class EvenPositions(Positions):
    """The same with Marian's frequencies."""

    make = staticmethod(even_sinusoidal_positions)


@known_part
class LearnedPositions(nn.Module):
    """Positions that were learned with the model; there are no others."""

    def __init__(self, dim: int, first: int, most: int) -> None:
        super().__init__()
        self.first, self.most = first, most
        self.weight = nn.Parameter(torch.empty(first + most, dim))
        nn.init.normal_(self.weight, std=dim**-0.5)

    @property
    def table(self) -> Tensor:
        return self.weight[self.first :]

    def forward(self, x: Tensor, start: int | Tensor = 0) -> Tensor:
        """As `Positions`."""
        if isinstance(start, Tensor):
            return x + F.embedding(start + self.first, self.weight).to(x.dtype)
        end = start + x.shape[1]
        return x + self.reserve(end)[start:end].to(x.dtype)

    def reserve(self, length: int) -> Tensor:
        """The table; an error where it is too short."""
        if length > self.most:
            raise ConfigError(
                f"a sentence of {length:,} tokens, codes and end counted: this base has positions for at most {self.most:,}. "
                "Leave out such lines, or cut them into sentences (`graftmt prepare segment`)."
            )
        return self.table

    def at(self, x: Tensor, numbers: Tensor, longest: int) -> Tensor:
        """As `Positions`, for packed sentences; blocks without a token may be longer than the table."""
        return x + F.embedding(numbers.clamp(max=self.most - 1) + self.first, self.weight).to(x.dtype)


def positions_of(config: ModelConfig) -> Positions | LearnedPositions:
    """Positions of one side; only learned ones differ from side to side."""
    if config.positions == "learned":
        return LearnedPositions(config.model_dim, config.position_offset, config.most_positions)
    kind = EvenPositions if config.positions == "sinusoidal-even" else Positions
    return kind(config.model_dim, config.position_offset)


@known_part
class Embedding(nn.Module):
    """One matrix of V rows: the tokens of one side. Initialised N(0, D^-0.5), the padding row 0."""

    def __init__(self, rows: int, dim: int, padding_id: int, *, reads_padding: bool = False) -> None:
        """`reads_padding`: padding is also what a decoder starts from, so that its row is learned like the others."""
        super().__init__()
        self.padding_id = padding_id
        self.reads_padding = reads_padding
        self.weight = nn.Parameter(torch.empty(rows, dim))
        nn.init.normal_(self.weight, std=dim**-0.5)
        with torch.no_grad():
            self.weight[padding_id].zero_()

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight, padding_idx=None if self.reads_padding else self.padding_id)


@known_part
class ExtendedEmbedding(nn.Module):
    """An embedding and some rows after its last one. Neither matrix is copied: the first may be frozen and shared."""

    def __init__(self, embedding: nn.Module, extra: nn.Parameter) -> None:
        super().__init__()
        self.embedding = embedding
        self.extra = extra

    @property
    def weight(self) -> Tensor:
        """Of the embedding, without the extra rows."""
        return self.embedding.weight  # type: ignore[return-value]

    @property
    def padding_id(self) -> int:
        return self.embedding.padding_id  # type: ignore[return-value]

    def forward(self, ids: Tensor) -> Tensor:
        rows = self.weight.shape[0]
        found = self.embedding(ids.clamp(max=rows - 1))
        extra = F.embedding((ids - rows).clamp(min=0), self.extra)
        return torch.where((ids >= rows)[..., None], extra.to(found.dtype), found)


@known_part
class Projection(nn.Module):
    """Hidden states → scores over the target vocabulary; `weight` may be the embedding's own."""

    def __init__(self, weight: nn.Parameter, bias: nn.Parameter | None = None) -> None:
        super().__init__()
        self.weight = weight
        self.bias = bias

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)
