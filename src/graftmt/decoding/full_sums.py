"""A model in half precision whose sums between layers are in full precision, for as long as a search runs. Layer 3."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graftmt.model import Transformer
from graftmt.model.attention import Attention
from graftmt.model.layers import FeedForward

HALF = (torch.bfloat16, torch.float16)


def full_product(x: Tensor, weight: Tensor) -> Tensor:
    """x (…, D) and weight (V, D) → (…, V), in fp32 where the weight is in half precision."""
    if weight.dtype not in HALF:
        return F.linear(x, weight)
    if not x.is_cuda:  # no kernel for it
        return F.linear(x.float(), weight.float())
    product = torch.mm(x.flatten(0, -2).to(weight.dtype), weight.t(), out_dtype=torch.float32)
    return product.view(*x.shape[:-1], -1)


def with_full_sums(model: Transformer, decoder: nn.Module | None = None) -> Transformer:
    """The same model, held in half precision, with the sums between its layers in fp32.

    In bf16 they would be rounded to eight bits at each of some thirty additions, and what a search finds would depend on how
    its batches were cut. Products stay as they were: half precision in, and out where no sum follows.
    `decoder`: one that does so by itself.
    """
    result = copy.copy(model)
    embeddings = {name: FullEmbedding(getattr(model, name)) for name in ("source_embedding", "target_embedding")}
    layers = {"encoder": _with_full_sums(model.encoder), "decoder": decoder or _with_full_sums(model.decoder)}
    norms = {name: FullNorm(norm) for name in ("source_norm", "target_norm") if (norm := getattr(model, name)) is not None}
    result._modules = {**model._modules, **embeddings, **norms, **layers}
    return result


def _with_full_sums(module: nn.Module) -> nn.Module:
    """Parts in full precision, as a pack that is being trained may have, stay as they are. All classes must be known ones."""
    if type(module) is nn.LayerNorm:
        return HalfNorm(module) if module.weight.dtype in HALF else module
    result = copy.copy(module)
    result._modules = {name: child if child is None else _with_full_sums(child) for name, child in module._modules.items()}
    last = "output" if type(module) is Attention else "down" if type(module) is FeedForward else None
    if last is not None and type(linear := getattr(module, last)) is nn.Linear and linear.weight.dtype in HALF:
        result._modules[last] = FullLinear(linear)
    return result


class FullNorm(nn.Module):
    """A norm of embeddings, whose sums stay in fp32."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self.norm.weight.float(), self.norm.bias.float()
        return F.layer_norm(x.float(), self.norm.normalized_shape, weight, bias, self.norm.eps)


class FullEmbedding(nn.Module):
    """An embedding whose rows come out in fp32."""

    def __init__(self, embedding: nn.Module) -> None:
        super().__init__()
        self.embedding = embedding

    @property
    def weight(self) -> Tensor:
        return self.embedding.weight  # type: ignore[return-value]

    @property
    def padding_id(self) -> int:
        return self.embedding.padding_id  # type: ignore[return-value]

    def forward(self, ids: Tensor) -> Tensor:
        return self.embedding(ids).float()  # type: ignore[no-any-return]


class HalfNorm(nn.Module):
    """A norm of sums in fp32, for products in half precision."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        super().__init__()
        self.dtype, self.epsilon = norm.weight.dtype, norm.eps
        self.weight, self.bias = norm.weight.detach().float(), norm.bias.detach().float()

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x.float(), self.weight.shape, self.weight, self.bias, self.epsilon).to(self.dtype)


class FullLinear(nn.Module):
    """A product in half precision that comes out in fp32, to be added to others."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight.detach(), linear.bias.detach().float()

    def forward(self, x: Tensor) -> Tensor:
        return full_product(x, self.weight) + self.bias
