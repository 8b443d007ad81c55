"""Multi-head attention, with the caches that incremental decoding needs. Layer 1.

Shapes, here and in the whole package: B batch, S source length, T target length, D model, H heads, V vocabulary.
Batch first; boolean masks, True = may attend.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.varlen import varlen_attn

from graftmt.model.attention_kernels import can_mix_few, mix_few
from graftmt.model.known_parts import known_part
from graftmt.model.packed_kernels import Tiles, can_mix_packed, mix_packed, sentences_of

FEW = 16
"""Queries. The CPU's SDPA is made for many; for the few of a decoding step plain products are 1.3 to 3 times as fast."""

# Newer versions of torch say "no later key" by a window, older ones by a flag.
_ALL: dict[str, Any] = {}
_CAUSAL: dict[str, Any] = (
    {"window_size": (-1, 0)} if "window_size" in signature(varlen_attn).parameters else {"is_causal": True}
)


@dataclass(frozen=True)
class Packing:
    """Sentences written one after the other without padding, as a batch of one long row: who may attend to whom.

    Sentence i has the queries query_starts[i] … query_starts[i + 1] and the keys key_starts[i] … key_starts[i + 1].
    """

    query_starts: Tensor
    """(sentences + 1,) int32; empty sentences may stand at the end."""
    key_starts: Tensor
    longest_query: int
    longest_key: int
    tiles: Tiles | None = None
    """The same for the kernels that take several sentences at a time."""


class PackedMemory(NamedTuple):
    """For a decoder over packed sentences: its own tokens, and those of the encoder."""

    own: Packing
    across: Packing


@known_part
class Attention(nn.Module):
    """Scaled dot-product attention over H heads; queries come from `x`, keys and values from `memory`."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)
        self.output = nn.Linear(dim, dim)
        for projection in (self.query, self.key, self.value, self.output):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | Packing | None = None, causal: bool = False) -> Tensor:
        """x (B, T, D), memory (B, S, D), mask broadcastable to (B, H, T, S) → (B, T, D); B = 1 where sentences are packed."""
        keys, values = self.project_memory(memory)
        return self.attend(x, keys, values, mask, causal)

    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (B, H, S, D/H): what a decoder keeps instead of projecting again at each step."""
        return self._split(self.key(memory)), self._split(self.value(memory))

    def attend(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | Packing | None, causal: bool = False) -> Tensor:
        """The same with keys and values given."""
        return self.output(mix_heads(self.project_queries(x), keys, values, mask, causal))  # type: ignore[no-any-return]

    def step(self, x: Tensor, cache: SelfAttentionCache | SlotCache) -> Tensor:
        """The next t tokens of all rows, x (rows, t, D), look at those so far and at themselves."""
        keys, values = self.project_memory(x)
        return self.output(cache.look_back(self.project_queries(x), keys, values))  # type: ignore[no-any-return]

    def project_queries(self, x: Tensor) -> Tensor:
        """(B, T, D) → (B, H, T, D/H)"""
        return self._split(self.query(x))

    def _split(self, x: Tensor) -> Tensor:
        """(B, T, D) → (B, H, T, D/H)"""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)


def mix_heads(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | Packing | None, causal: bool = False) -> Tensor:
    """Queries (B, H, T, D/H), keys and values (B, H, S, D/H) → (B, T, D), what the heads found side by side."""
    mixed = (
        _mix_packed(queries, keys, values, mask, causal)
        if isinstance(mask, Packing)
        else _mix(queries, keys, values, mask, causal)
    )
    return mixed.transpose(1, 2).flatten(2)


def _mix(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """Queries (B, H, T, D/H), keys and values (B, H, S, D/H) → (B, H, T, D/H)."""
    if not causal and can_mix_few(queries, mask):
        return mix_few(queries, keys, values, mask)
    exact = queries.dtype in (torch.float32, torch.float64)
    if causal or queries.shape[2] > FEW or not queries.is_cpu or not exact:
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=causal)
    scores = torch.matmul(queries * queries.shape[3] ** -0.5, keys.transpose(2, 3))
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.matmul(scores.softmax(dim=-1), values)


def _mix_packed(queries: Tensor, keys: Tensor, values: Tensor, packing: Packing, causal: bool) -> Tensor:
    """The same for one long row of packed sentences: (1, H, T, D/H) and (1, H, S, D/H) → (1, H, T, D/H)."""
    if packing.tiles is not None and can_mix_packed(queries):
        return mix_packed(queries, keys, values, packing.tiles, causal)
    if queries.is_cuda and queries.dtype in (torch.bfloat16, torch.float16):
        flat = [part[0].transpose(0, 1) for part in (queries, keys, values)]
        starts, longest = (packing.query_starts, packing.key_starts), (packing.longest_query, packing.longest_key)
        mixed: Tensor = varlen_attn(flat[0], flat[1], flat[2], *starts, *longest, **(_CAUSAL if causal else _ALL))  # type: ignore[assignment]
        return mixed.transpose(0, 1)[None]
    # No kernel for it on other devices: one mask over all, for tests and small models.
    of_query, of_key = sentences_of(packing.query_starts, queries.shape[2]), sentences_of(packing.key_starts, keys.shape[2])
    mask = of_query[:, None] == of_key[None, :]
    if causal:
        mask = mask.tril()
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)


class CacheMemory:
    """Buffers allocated once for the longest output, lent to the caches of all layers in turn.

    A cache moves at every step, into a buffer that the one before has just left: reordering, growing and closing the gaps
    are then one copy, and what attention reads lies in one piece.
    """

    def __init__(self, size: int, like: Tensor) -> None:
        self.size, self.like = size, like.new_empty(0)
        self.free: list[Tensor] = []

    def take(self, *shape: int) -> Tensor:
        buffer = self.free.pop() if self.free else self.like.new_empty(self.size)
        return buffer[: math.prod(shape)].view(shape)

    def give_back(self, tensor: Tensor) -> None:
        self.free.append(tensor.as_strided((self.size,), (1,), 0))  # the whole buffer under this view of its beginning


class SelfAttentionCache:
    """Keys and values of the tokens so far. A row is one hypothesis; `reorder` follows the beam."""

    def __init__(self, rows: int, heads: int, head_dim: int, memory: CacheMemory) -> None:
        self.memory = memory
        self.keys = memory.take(rows, heads, 0, head_dim)
        self.values = memory.take(rows, heads, 0, head_dim)
        self.order: Tensor | None = None

    def look_back(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """The next t tokens of all rows, each (rows, H, t, D/H), look at those so far and at themselves → (rows, t, D)."""
        keys, values = self.append(keys, values)
        # Several tokens at once only happen at the start (the prefix), where plain causal attention is right.
        return mix_heads(queries, keys, values, None, causal=queries.shape[2] > 1)

    @torch.no_grad()
    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Adds (rows, H, t, D/H) and returns all so far; no gradient goes through it."""
        self.keys, self.values = self._grown(self.keys, keys), self._grown(self.values, values)
        self.order = None
        return self.keys, self.values

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was, at the next `append`; fewer rows shrink the cache."""
        self.order = rows if self.order is None else self.order[rows]

    def _grown(self, old: Tensor, new: Tensor) -> Tensor:
        rows, heads, added, head_dim = new.shape
        length = old.shape[2]
        result = self.memory.take(rows, heads, length + added, head_dim)
        if self.order is None:
            result[:, :, :length] = old
        else:
            torch.index_select(old, 0, self.order, out=result[:, :, :length])
        result[:, :, length:] = new
        self.memory.give_back(old)
        return result


class Slots:
    """The places where B sentences of K hypotheses keep keys and values, for steps that always use the same memory.

    Slot p × K + k of a sentence belongs to the token at position p of what was its hypothesis k then, and never moves: which
    slots a hypothesis has come through is written down instead. The hypotheses of a sentence read all its slots as the queries
    of one attention, so nothing is read twice.
    """

    def __init__(self, sentences: int, beam: int, room: int, device: torch.device) -> None:
        self.beam, self.room = beam, room
        self.position = torch.zeros(1, dtype=torch.long, device=device)
        """Of the next token."""
        self.seen = torch.zeros(sentences, 1, beam, room * beam, dtype=torch.bool, device=device)
        self.now = torch.arange(beam, device=device)
        """(K,): the slots of the next tokens."""
        self.first = torch.arange(beam, device=device)

    def open(self) -> None:
        """Each hypothesis gets a slot for its next token."""
        self.now.copy_(self.first + self.position * self.beam)
        self.seen.scatter_(3, self.now[None, None, :, None].expand(len(self.seen), -1, -1, -1), True)

    def follow(self, parents: Tensor) -> None:
        """Hypothesis k of a sentence becomes what parents[:, k] was."""
        if self.beam > 1:
            self.seen.copy_(self.seen.gather(2, parents[:, None, :, None].expand(-1, -1, -1, self.seen.shape[3])))

    def moved(self, sentences: Tensor, room: int) -> Slots:
        """Only these sentences, with room for more tokens."""
        result = Slots(len(sentences), self.beam, room, self.seen.device)
        result.position.copy_(self.position)
        result.seen[..., : self.seen.shape[3]] = self.seen.index_select(0, sentences)
        return result


class SlotCache:
    """One layer's keys and values (B, H, room × K, D/H) in the slots that all layers share."""

    def __init__(self, slots: Slots, heads: int, head_dim: int, like: Tensor) -> None:
        self.slots = slots
        shape = (len(slots.seen), heads, slots.room * slots.beam, head_dim)
        self.keys, self.values = like.new_zeros(shape), like.new_zeros(shape)  # zeros: what is not seen must still be a number

    def look_back(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """The next token of all hypotheses, each (B × K, H, 1, D/H) → (B × K, 1, D)."""
        queries, keys, values = (self._by_sentence(part) for part in (queries, keys, values))
        self.keys.index_copy_(2, self.slots.now, keys)
        self.values.index_copy_(2, self.slots.now, values)
        return mix_heads(queries, self.keys, self.values, self.slots.seen).flatten(0, 1)[:, None]

    def _by_sentence(self, part: Tensor) -> Tensor:
        """(B × K, H, 1, D/H) → (B, H, K, D/H)"""
        _, heads, _, head_dim = part.shape
        return part.view(-1, self.slots.beam, heads, head_dim).transpose(1, 2)

    def moved(self, sentences: Tensor, slots: Slots) -> SlotCache:
        heads, used, head_dim = self.keys.shape[1:]
        result = SlotCache(slots, heads, head_dim, self.keys)
        torch.index_select(self.keys, 0, sentences, out=result.keys[:, :, :used])
        torch.index_select(self.values, 0, sentences, out=result.values[:, :, :used])
        return result
