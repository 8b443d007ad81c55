"""The one Transformer: encoder, decoder, embeddings and projection, each a part that can be shared or swapped. Layer 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from graftmt.errors import CheckpointError, ConfigError
from graftmt.model.architecture import ModelConfig, Stack
from graftmt.model.attention import CacheMemory, PackedMemory, Packing, SelfAttentionCache
from graftmt.model.embeddings import Embedding, ExtendedEmbedding, LearnedPositions, Positions, Projection, positions_of
from graftmt.model.known_parts import known_part
from graftmt.model.layers import DecoderLayer, Dropout, EncoderLayer, LayerCache
from graftmt.model.packed_kernels import fits_tiles, tiles_of

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")

HALF_RESIDUALS = True
"""Whether packed training of a pre-norm model on a GPU keeps the sums between layers in bf16 too. For benchmarks to switch."""


@dataclass(frozen=True)
class PackedTokens:
    """One side of a batch without padding."""

    ids: Tensor
    """(N,)"""
    positions: Tensor
    """(N,): the number of each token in its sentence, from 0."""
    starts: Tensor
    """(sentences + 1,) int32"""
    longest: int


@dataclass
class DecoderState:
    """All a decoder remembers between steps: one cache a layer, for `beam` hypotheses of each sentence."""

    layers: list[LayerCache]
    memory_mask: Tensor | None
    beam: int
    position: int | Tensor = 0
    """On the device, (1,), where self-attention is in slots."""

    def reorder(self, rows: Tensor) -> None:
        """Hypothesis i becomes what hypothesis rows[i] was."""
        for layer in self.layers:
            assert isinstance(layer.self_attention, SelfAttentionCache), "slots follow by themselves"
            layer.self_attention.reorder(rows)

    def keep_sentences(self, sentences: Tensor) -> None:
        """Drops every sentence but these; their hypotheses are to be chosen with `reorder`."""
        for layer in self.layers:
            layer.memory_keys = layer.memory_keys.index_select(0, sentences)
            layer.memory_values = layer.memory_values.index_select(0, sentences)
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask.index_select(0, sentences)


@known_part
class Encoder(nn.Module):
    """Layers in order, then (pre-norm) one last norm. Any module with a layer's signature can stand in the list."""

    def __init__(self, layers: Sequence[nn.Module], norm: nn.LayerNorm | None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def forward(self, x: Tensor, mask: Tensor | Packing | None) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        return x if self.norm is None else self.norm(x)


@known_part
class Decoder(nn.Module):
    """The same for the decoder, with `step` for one token at a time."""

    def __init__(self, layers: Sequence[nn.Module], norm: nn.LayerNorm | None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | PackedMemory | None) -> Tensor:
        for layer in self.layers:
            x = layer(x, memory, memory_mask)
        return x if self.norm is None else self.norm(x)

    def start(self, memory: Tensor, memory_mask: Tensor | None, beam: int, capacity: int) -> DecoderState:
        """Projects the memory once for each layer and allocates room for `capacity` tokens."""
        rows = memory.shape[0] * beam
        projected = [layer.cross_attention.project_memory(memory) for layer in self.layers]  # type: ignore[operator, union-attr]
        room = CacheMemory(rows * capacity * memory.shape[2], like=projected[0][0])
        caches = []
        for keys, values in projected:
            cache = SelfAttentionCache(rows, keys.shape[1], keys.shape[3], room)
            caches.append(LayerCache(cache, keys.contiguous(), values.contiguous()))
        return DecoderState(caches, memory_mask, beam)

    def step(self, x: Tensor, state: DecoderState) -> Tensor:
        for layer, cache in zip(self.layers, state.layers, strict=True):
            x = layer.step(x, cache, state.memory_mask, state.beam)  # type: ignore[operator]
        state.position += x.shape[1]
        return x if self.norm is None else self.norm(x)


@known_part
class Transformer(nn.Module):
    """Source ids → memory → target scores.

    `build` makes a new one; the constructor takes parts, so that a model for one direction can share a base's tensors
    and bring its own embeddings or layers.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        source_embedding: Embedding | ExtendedEmbedding,
        target_embedding: Embedding | ExtendedEmbedding,
        encoder: Encoder,
        decoder: Decoder,
        projection: Projection,
    ) -> None:
        super().__init__()
        self.config = config
        self.scale = math.sqrt(config.model_dim) if config.scale_embeddings else 1.0
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.encoder = encoder
        self.decoder = decoder
        self.projection = projection
        self.positions = positions_of(config)
        """Of the source, and of the target where that has none of its own."""
        self.target_positions = positions_of(config) if config.positions == "learned" else None
        self.source_norm, self.target_norm = (
            nn.LayerNorm(config.model_dim, eps=config.norm_epsilon) if config.embedding_norms else None for _ in SIDES
        )
        self.dropout = Dropout(0.0)

    @classmethod
    def build(
        cls,
        config: ModelConfig,
        rows: int,
        *,
        target_rows: int | None = None,
        target_padding_id: int | None = None,
        reads_padding: bool = False,
    ) -> Transformer:
        """A freshly initialised model, whose vocabulary has `rows` rows; the target's may be another one.

        Tied embeddings are one matrix, so they have one number of rows. `reads_padding`: its decoder starts from padding.
        """
        dim = config.model_dim
        target_rows = rows if target_rows is None else target_rows
        target_padding = config.padding_id if target_padding_id is None else target_padding_id
        if config.embeddings == "tied" and (target_rows, target_padding) != (rows, config.padding_id):
            raise ConfigError(
                f"embeddings are tied, but the source vocabulary has {rows} rows (padding {config.padding_id}) and the "
                f"target's {target_rows} (padding {target_padding}); choose embeddings='tied-target' or 'separate'."
            )

        def last_norm() -> nn.LayerNorm | None:
            return nn.LayerNorm(dim, eps=config.norm_epsilon) if config.norm == "pre" else None

        tied = config.embeddings == "tied"
        source = Embedding(rows, dim, config.padding_id, reads_padding=reads_padding and tied)
        target = source if tied else Embedding(target_rows, dim, target_padding, reads_padding=reads_padding)
        separate = config.embeddings == "separate"
        output = Embedding(target_rows, dim, target_padding).weight if separate else target.weight
        return cls(
            config,
            source_embedding=source,
            target_embedding=target,
            encoder=Encoder([EncoderLayer(config) for _ in range(config.encoder_layers)], last_norm()),
            decoder=Decoder([DecoderLayer(config) for _ in range(config.decoder_layers)], last_norm()),
            projection=Projection(output, nn.Parameter(torch.zeros(target_rows)) if config.output_bias else None),
        )

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S) and target (B, T) ids, padded at the end → scores (B, T, V) for the token after each."""
        memory, mask = self.encode(source)
        return self.projection(self.decode(target, memory, mask))  # type: ignore[no-any-return]

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S) ids → memory (B, S, D) and its mask (B, 1, 1, S)."""
        mask = (source != self.source_padding_id)[:, None, None, :]
        return self.encoder(self._embed("source", source), mask), mask

    def decode(self, target: Tensor, memory: Tensor, memory_mask: Tensor | None) -> Tensor:
        """(B, T) ids → hidden states (B, T, D), before the projection."""
        return self.decoder(self._embed("target", target), memory, memory_mask)  # type: ignore[no-any-return]

    def hidden_of_packed(self, source: PackedTokens, target: PackedTokens) -> Tensor:
        """The decoder's hidden states (1, Nt, D) for sentences without padding, one after the other on both sides."""
        queries = self._packing(source, source, "encoder")
        own = self._packing(target, target, "decoder", causal=True)
        across = self._packing(target, source, "decoder")
        memory = self.encoder(self._embed_packed("source", source), queries)
        return self.decoder(self._embed_packed("target", target), memory, PackedMemory(own, across))  # type: ignore[no-any-return]

    def _packing(self, queries: PackedTokens, keys: PackedTokens, stack: Stack, causal: bool = False) -> Packing:
        places = queries.starts, keys.starts, len(queries.ids), len(keys.ids)
        fits = fits_tiles(queries.ids.device, self.config.model_dim // self.config.heads_of(stack))
        tiles = tiles_of(*places, causal=causal) if fits else None
        return Packing(queries.starts, keys.starts, queries.longest, keys.longest, tiles)

    def _embed_packed(self, side: Side, tokens: PackedTokens) -> Tensor:
        embedding, positions, norm = self.entrance(side)
        embedded = embedding(tokens.ids) * self.scale
        embedded = positions.at(embedded, tokens.positions, tokens.longest)
        x: Tensor = self.dropout(embedded if norm is None else norm(embedded))[None]
        # What the layers add up has the type of what they begin with: half the bytes to read and write between products.
        half = HALF_RESIDUALS and x.is_cuda and self.config.norm == "pre" and torch.is_autocast_enabled("cuda")
        return x.to(torch.get_autocast_dtype("cuda")) if half else x

    def start(self, memory: Tensor, memory_mask: Tensor | None, *, beam: int, capacity: int) -> DecoderState:
        """The state with which `step` begins."""
        return self.decoder.start(memory, memory_mask, beam, capacity)

    def step(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """tokens (B × beam, t): the next ones of each hypothesis → scores (B × beam, V) for the one after the last."""
        x = self._embed("target", tokens, state.position)
        return self.projection(self.decoder.step(x, state)[:, -1])  # type: ignore[no-any-return]

    def _embed(self, side: Side, ids: Tensor, start: int | Tensor = 0) -> Tensor:
        embedding, positions, norm = self.entrance(side)
        embedded = positions(embedding(ids) * self.scale, start)
        return self.dropout(embedded if norm is None else norm(embedded))  # type: ignore[no-any-return]

    def entrance(self, side: Side) -> tuple[nn.Module, Positions | LearnedPositions, nn.Module | None]:
        """What the tokens of a side go through before the layers."""
        if side == "source":
            return self.source_embedding, self.positions, self.source_norm
        return self.target_embedding, self.target_positions or self.positions, self.target_norm

    def reserve(self, length: int) -> None:
        """Makes positions for translations of this number of tokens before anything is recorded."""
        (self.target_positions or self.positions).reserve(length)

    def set_dropout(self, probability: float) -> None:
        """Dropout belongs to a training run, not to the architecture."""
        for module in self.modules():
            if isinstance(module, Dropout):
                module.p = probability

    @property
    def source_padding_id(self) -> int:
        """The row of the source matrix that is no token."""
        return self.source_embedding.padding_id

    @property
    def target_padding_id(self) -> int:
        """The same for the target matrix, and for labels."""
        return self.target_embedding.padding_id

    @property
    def device(self) -> torch.device:
        return self.source_embedding.weight.device


def parameter_shapes(config: ModelConfig, rows: int, target_rows: int | None = None) -> dict[str, tuple[int, ...]]:
    """Those of `Transformer.build(config, rows, …)`, in any order. One layer of each stack stands for all."""
    with torch.device("meta"):
        # Which row is padding makes no difference here; row 0 is one that each matrix has.
        small = replace(config, encoder_layers=1, decoder_layers=1, padding_id=0)
        model = Transformer.build(small, rows, target_rows=target_rows)
    counts = {"encoder.layers.0.": config.encoder_layers, "decoder.layers.0.": config.decoder_layers}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, parameter in model.named_parameters():
        first = next((first for first in counts if name.startswith(first)), None)
        if first is None:
            shapes[name] = tuple(parameter.shape)
        else:
            stack, leaf = first.removesuffix("0."), name.removeprefix(first)
            shapes |= {f"{stack}{layer}.{leaf}": tuple(parameter.shape) for layer in range(counts[first])}
    return shapes


def load_tensors(model: Transformer, tensors: Mapping[str, Tensor], where: str) -> None:
    """Gives the model these tensors, in place of its own; names and shapes must agree exactly."""
    expected = dict(model.named_parameters())
    wrong = sorted(expected.keys() ^ tensors.keys())
    if wrong:
        raise CheckpointError(f"{where}: tensors missing or not expected: {', '.join(wrong[:5])}{' …' * (len(wrong) > 5)}")
    for name, parameter in expected.items():
        if parameter.shape != tensors[name].shape:
            raise CheckpointError(
                f"{where}: tensor {name} has shape {tuple(tensors[name].shape)}; "
                f"the architecture says {tuple(parameter.shape)}."
            )
    # Modules that share a parameter (tied embeddings) keep sharing the new one.
    replaced = {id(parameter): torch.nn.Parameter(tensors[name]) for name, parameter in expected.items()}
    for module in model.modules():
        for name, own in list(module._parameters.items()):
            if own is not None:
                module._parameters[name] = replaced[id(own)]
