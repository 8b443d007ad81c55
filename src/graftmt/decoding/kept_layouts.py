"""Packed weights of resident models, each made once and shared by all compositions that have the weight. Layer 3.

A base with many packs has a composition for each of them, most of whose decoder is the base's: what is packed is kept by
weight, not by model. Nothing is kept longer than a model that uses it. A weight that was changed in place is packed again.
"""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary, WeakValueDictionary

from torch import Tensor

from graftmt.decoding.weight_layout import PackedWeights, can_be_packed, packed, weight_key
from graftmt.model import Transformer

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
