"""A model's weights as matrix kernels like them best, for one search, or kept for models that stay. Layer 3."""

from __future__ import annotations

import copy
import threading
from collections.abc import Hashable, MutableMapping
from typing import TypeAlias
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graftmt.decoding.full_sums import HALF, full_product, with_full_sums
from graftmt.decoding.fused import FusedDecoder, can_be_fused
from graftmt.model import Transformer
from graftmt.model.embeddings import Projection
from graftmt.model.known_parts import all_known, is_known, notice

ROWS = 32
"""The rows of a typical step; only chooses among oneDNN's layouts, all of which take any number."""

MULTIPLE = 64
"""Rows of a matrix that a GPU's matrix units like; with an odd number they are several times slower."""


PackedWeights: TypeAlias = MutableMapping[Hashable, Tensor]
"""By `weight_key`: what was packed before."""


def packed(model: Transformer, kept: PackedWeights | None = None) -> Transformer:
    """The same model with its decoder's linear maps packed for oneDNN, where that is possible; else the model itself.

    A plain matrix product repacks the weights every time, which for the few rows of a decoding step costs as much as the
    product. Packing once costs as much as a few steps, so every search can do it anew and never sees stale weights; for large
    models, `kept` has what was packed before, and is given what is packed now. All else is shared with the given model, which
    stays as it is. On a GPU the projection's rows are filled up, and a pre-norm model in
    half precision adds up in full precision, its decoder with fewer kernels where that is possible. Parts that are not known
    stay as they are, and so does a whole model that would have to add up in full precision around them.
    """
    if model.device.type == "cuda" and type(model.projection) is Projection:
        half = model.projection.weight.dtype in HALF and model.config.norm == "pre"  # after a norm nothing is left to add up
        half = half and all_known("sums in full precision", model.encoder, model.decoder)
        decoder = FusedDecoder(model.decoder) if half and can_be_fused(model.decoder) else None
        result = with_full_sums(model, decoder) if half else copy.copy(model)
        result._modules = {**result._modules, "projection": PaddedProjection(model.projection)}
        return result
    if not can_be_packed(model):
        return model
    result = copy.copy(model)
    parts = {"decoder": _pack(model.decoder, kept), "projection": _pack(model.projection, kept)}
    result._modules = {**model._modules, **parts}
    return result


def weight_key(weight: Tensor) -> Hashable:
    """Equal for two weights while they are the same memory with the same content."""
    version = 0 if weight.is_inference() else weight._version
    return weight.data_ptr(), tuple(weight.shape), tuple(weight.stride()), version


class PackedLinear(nn.Module):
    """A linear map for inference only."""

    def __init__(self, weight: Tensor, bias: Tensor | None, kept: PackedWeights | None = None) -> None:
        super().__init__()
        key = weight_key(weight)
        found = None if kept is None else kept.get(key)
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), ROWS) if found is None else found
        self.plain = weight.detach()  # which keeps its memory from becoming another weight's, with the same key
        if kept is not None:
            kept[key] = self.weight
        self.bias = None if bias is None else bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")  # type: ignore[no-any-return]


class PaddedProjection(nn.Module):
    """A projection for inference only, with rows after the last that can never be chosen."""

    def __init__(self, projection: Projection) -> None:
        super().__init__()
        weight, device = projection.weight.detach(), projection.weight.device.type
        if torch.is_autocast_enabled(device):  # which would cast it again at every step
            weight = weight.to(torch.get_autocast_dtype(device))
        self.rows = len(weight)
        self.weight = F.pad(weight, (0, 0, 0, -self.rows % MULTIPLE))
        self.bias = None if projection.bias is None else projection.bias.detach().float()

    def forward(self, x: Tensor) -> Tensor:
        """x (rows, D) → scores in fp32 at least: rounded to bf16, many of the best would be equal."""
        scores = full_product(x, self.weight)
        if self.bias is not None:
            scores[:, : self.rows] += self.bias.to(scores.dtype)
        scores[:, self.rows :] = -torch.inf
        return scores


def can_be_packed(model: Transformer) -> bool:
    """Whether packing would change anything."""
    if isinstance(model.projection, PackedLinear) or model.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return False
    # torch's compiler uses these operators; they are not public, and a torch built without oneDNN lacks them.
    available = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    return available and all(parameter.dtype == torch.float32 for parameter in model.decoder.parameters())


def _pack(module: nn.Module, kept: PackedWeights | None) -> nn.Module:
    """A copy of a tree of modules that shares every tensor, its linear maps replaced; what is not known stays as it is."""
    if type(module) is nn.Linear or type(module) is Projection:
        return PackedLinear(module.weight, module.bias, kept)
    if not is_known(module):
        notice("packed weights", module)
        return module
    result = copy.copy(module)
    result._modules = {name: child if child is None else _pack(child, kept) for name, child in module._modules.items()}
    return result


# A base with many packs has a composition for each of them, most of whose decoder is the base's: what is packed is kept by
# weight, not by model. Nothing is kept longer than a model that uses it. A weight that was changed in place is packed again.
_MAKING = threading.Lock()
_WEIGHTS: PackedWeights = WeakValueDictionary()
_MODELS: WeakKeyDictionary[Transformer, tuple[tuple[object, ...], Transformer]] = WeakKeyDictionary()


def kept_layout(model: Transformer) -> Transformer:
    """`packed(model)`, made once where it takes long: on a CPU. The model and its packed twin share all else."""
    if not can_be_packed(model):
        return packed(model)
    state = tuple(weight_key(weight) for weight in _weights(model))
    with _MAKING:  # two threads that begin together would both take the memory
        found = _MODELS.get(model)
        if found is None or found[0] != state:
            found = (state, packed(model, _WEIGHTS))
            _MODELS[model] = found
        return found[1]


def _weights(model: Transformer) -> list[Tensor]:
    return [*model.decoder.parameters(), *model.projection.parameters()]
