"""A fairseq checkpoint: its weights, and the arguments of its training, without fairseq or omegaconf. Layer 5."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graftmt.errors import CheckpointError
from graftmt.interop.importing.pickled import load_pickled
from graftmt.interop.importing.weights import PickledWeights, found_in, named_tensors


class StoredNode:
    """What stands for a class of omegaconf while a checkpoint is read: the values that were stored, and nothing that runs."""


class StoredContainer(StoredNode):
    """The same for its mappings and lists."""


_CONTAINERS = ("omegaconf.dictconfig.DictConfig", "omegaconf.listconfig.ListConfig")
_NODES = (
    *(f"omegaconf.nodes.{kind}Node" for kind in ("Any", "Integer", "Float", "String", "Boolean", "Enum")),
    "omegaconf.base.ContainerMetadata",
    "omegaconf.base.Metadata",
)
ALLOWED: list[Any] = [
    Namespace,
    *((type(name.rpartition(".")[2], (StoredContainer,), {}), name) for name in _CONTAINERS),
    *((type(name.rpartition(".")[2], (StoredNode,), {}), name) for name in _NODES),
    (type("Any", (StoredNode,), {}), "typing.Any"),
    *((kind, f"builtins.{kind.__name__}") for kind in (dict, list, int, float, str, bool)),
]
"""The classes that a checkpoint may name."""


class FairseqWeights(PickledWeights):
    """The weights of a checkpoint with its arguments."""

    def __init__(self, path: Path) -> None:
        loaded = load_pickled(path, ALLOWED)
        if not isinstance(loaded, Mapping) or not isinstance(loaded.get("model"), Mapping):
            raise CheckpointError(f"{path} is no checkpoint of fairseq: it has no entry 'model' with tensors.")
        self.tensors = {name: (tensor, path) for name, tensor in named_tensors(loaded["model"], path).items()}
        self.found = found_in(self.tensors)
        self.arguments = arguments_of(loaded)
        if not self.arguments:
            raise CheckpointError(f"{path} has neither args nor cfg, the arguments of its training, which say how it is built.")


def arguments_of(loaded: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the model and its task in one mapping: `args`, or the parts of `cfg`."""
    args = plain(loaded.get("args"))
    if isinstance(args, dict):
        return args
    cfg = plain(loaded.get("cfg"))
    if not isinstance(cfg, dict):
        return {}
    task, model = cfg.get("task"), cfg.get("model")
    found: dict[str, Any] = {}
    for part in (task, model):
        found |= part if isinstance(part, dict) else {}
    if isinstance(task, dict) and "_name" in task:
        found["task"] = task["_name"]
    return found


def plain(value: Any, depth: int = 20) -> Any:
    """Namespaces and omegaconf's containers as dictionaries and lists."""
    if depth == 0:
        raise CheckpointError("the arguments of the checkpoint are nested too deep.")
    if isinstance(value, StoredNode):
        return plain(vars(value).get("_content" if isinstance(value, StoredContainer) else "_val"), depth - 1)
    if isinstance(value, Namespace):
        value = vars(value)
    if isinstance(value, Mapping):
        return {str(key): plain(one, depth - 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, depth - 1) for one in value]
    return value
