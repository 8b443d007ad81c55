"""Multi-head attention, with the caches that incremental decoding needs. Layer 1.

Shapes, here and in the whole package: B batch, S source length, T target length, D model, H heads, V vocabulary.
Batch first; boolean masks, True = may attend.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


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

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """x (B, T, D), memory (B, S, D), mask broadcastable to (B, H, T, S) → (B, T, D)."""
        keys, values = self.project_memory(memory)
        return self.attend(x, keys, values, mask, causal)

    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (B, H, S, D/H): what a decoder keeps instead of projecting again at each step."""
        return self._split(self.key(memory)), self._split(self.value(memory))

    def attend(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
        """The same with keys and values given."""
        queries = self._split(self.query(x))
        mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=causal)
        return self.output(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    def _split(self, x: Tensor) -> Tensor:
        """(B, T, D) → (B, H, T, D/H)"""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)


class SelfAttentionCache:
    """Keys and values of the tokens so far, in buffers allocated once for the longest output.

    A row is one hypothesis. `length` tokens are filled; `reorder` follows the beam.
    """

    def __init__(self, rows: int, heads: int, capacity: int, head_dim: int, like: Tensor) -> None:
        self.keys = like.new_empty(rows, heads, capacity, head_dim)
        self.values = torch.empty_like(self.keys)
        self.length = 0

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Adds (rows, H, t, D/H) and returns all so far."""
        end = self.length + keys.shape[2]
        self.keys[:, :, self.length : end] = keys
        self.values[:, :, self.length : end] = values
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was; fewer rows shrink the cache. Only the filled part moves."""
        filled = slice(0, self.length)
        count = rows.shape[0]
        keys = self.keys[:, :, filled].index_select(0, rows)
        values = self.values[:, :, filled].index_select(0, rows)
        if count < self.keys.shape[0]:
            self.keys, self.values = self.keys[:count], self.values[:count]
        self.keys[:, :, filled] = keys
        self.values[:, :, filled] = values
