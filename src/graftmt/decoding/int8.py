"""Large linear maps with int8 weights on a CPU, made once for every matrix that models share. Layer 3.

A weight has one scale for each of its rows, the input of a product one scale in all, found as it comes (dynamic quantisation).
The model that is given stays as it is, and so does what is known of it, such as its fingerprint.
"""

from __future__ import annotations

import copy
import threading
import warnings
import weakref
from typing import Any

import torch
from torch import Tensor, nn

from graftmt.errors import ConfigError
from graftmt.model import Transformer
from graftmt.model.embeddings import Projection
from graftmt.model.known_parts import is_known, known_part, notice

SMALLEST = 2**17
"""Elements of a weight. Smaller products take as long with int8 as without: a map of 128 to 512 gains nothing, one of 512 to
512 takes less than half."""
ENGINES = ("onednn", "fbgemm", "x86")
"""torch's kernels for such products, best first."""
_ENGINE = threading.Lock()
"""Which kernels torch packs for is a setting of the whole process."""


class Int8Weights:
    """The int8 form of weights, each made when a model first needs it and shared by all that have the same tensor."""

    def __init__(self) -> None:
        self._made: weakref.WeakValueDictionary[tuple[object, ...], Int8Linear] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()

    def model(self, model: Transformer) -> Transformer:
        """The same model with its large linear maps in int8. All else is shared with the given one."""
        if model.device.type != "cpu":
            raise ConfigError("int8 is for CPUs; on a GPU use bf16 or fp16.")
        result = copy.copy(model)
        result._modules = {
            **model._modules,
            **{name: self._quantised(part) for name, part in model._modules.items() if name in PARTS and part is not None},
        }
        return result

    def _quantised(self, module: nn.Module) -> nn.Module:
        """A copy of a tree of modules with its large linear maps replaced; what is not known stays as it is."""
        if type(module) is nn.Linear or type(module) is Projection:
            return module if module.weight.numel() < SMALLEST else self._linear(module.weight, module.bias)
        if not is_known(module):
            notice("int8 weights", module)
            return module
        result = copy.copy(module)
        result._modules = {name: child if child is None else self._quantised(child) for name, child in module._modules.items()}
        return result

    def _linear(self, weight: Tensor, bias: Tensor | None) -> Int8Linear:
        """Compositions have parameters of their own around the base's tensors: what is shared is the memory."""
        key = (weight.data_ptr(), tuple(weight.shape), None if bias is None else bias.data_ptr())
        with self._lock:
            found = self._made.get(key)
            if found is None:
                found = self._made[key] = Int8Linear(weight, bias)
            return found


PARTS = ("encoder", "decoder", "projection")


@known_part
class Int8Linear(nn.Module):
    """A linear map for inference only, from a weight in fp32. It holds on to that: its place in memory is its key."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.made_from = (weight.detach(), None if bias is None else bias.detach())
        self.packed, self.reduce = _packed(*self.made_from), not _has_int8_products()

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.quantized.linear_dynamic(x, self.packed, self.reduce)  # type: ignore[no-any-return]


def _packed(weight: Tensor, bias: Tensor | None) -> Any:
    """The weight with a scale for each row, as torch's kernels like it best."""
    weight = weight.float()
    scales = weight.abs().amax(dim=1).clamp_min(1e-12) / 127
    values = (weight / scales[:, None]).round().clamp(-127, 127).to(torch.int8)
    engine = int8_kernels()
    with _ENGINE, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tensors of torch's quantised types are deprecated; the product itself is not
        before = torch.backends.quantized.engine
        torch.backends.quantized.engine = engine
        try:
            zeros = torch.zeros(len(scales), dtype=torch.long)
            quantised = torch._make_per_channel_quantized_tensor(values, scales, zeros, 0)
            return torch.ops.quantized.linear_prepack(quantised, None if bias is None else bias.float())
        finally:
            torch.backends.quantized.engine = before


def int8_kernels() -> str:
    """Which of torch's kernels are here; an error where none is."""
    for engine in ENGINES:
        if engine in torch.backends.quantized.supported_engines and hasattr(torch.ops.quantized, "linear_dynamic"):
            return engine
    raise ConfigError("int8 needs a torch with int8 kernels for this CPU (onednn or fbgemm), and this one has none; use fp32.")


def _has_int8_products() -> bool:
    """Older CPUs add products of int8 in 16 bits, which can overflow unless inputs keep a bit less."""
    known = getattr(torch.cpu, "_is_vnni_supported", None)
    return bool(known()) if known is not None else False
