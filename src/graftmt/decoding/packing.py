"""A model's weights as the CPU's matrix kernels like them best, for as long as a search runs. Layer 3."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from graftmt.model import Transformer
from graftmt.model.embeddings import Projection

ROWS = 32
"""The rows of a typical step; only chooses among oneDNN's layouts, all of which take any number."""


def packed(model: Transformer) -> Transformer:
    """The same model with its decoder's linear maps packed for oneDNN, where that is possible; else the model itself.

    A plain matrix product repacks the weights every time, which for the few rows of a decoding step costs as much as the
    product. Packing once costs as much as a few steps, so every search can do it anew and never sees stale weights. All else
    is shared with the given model, which stays as it is.
    """
    if not _can_be_packed(model):
        return model
    result = copy.copy(model)
    result._modules = {**model._modules, "decoder": _pack(model.decoder), "projection": _pack(model.projection)}
    return result


class PackedLinear(nn.Module):
    """A linear map for inference only."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), ROWS)
        self.bias = None if bias is None else bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")  # type: ignore[no-any-return]


def _can_be_packed(model: Transformer) -> bool:
    if isinstance(model.projection, PackedLinear) or model.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return False
    # torch's compiler uses these operators; they are not public, and a torch built without oneDNN lacks them.
    available = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    return available and all(parameter.dtype == torch.float32 for parameter in model.decoder.parameters())


def _pack(module: nn.Module) -> nn.Module:
    """A copy of a tree of modules that shares every tensor, its linear maps replaced."""
    if isinstance(module, nn.Linear | Projection):
        return PackedLinear(module.weight, module.bias)
    result = copy.copy(module)
    result._modules = {name: child if child is None else _pack(child) for name, child in module._modules.items()}
    return result
