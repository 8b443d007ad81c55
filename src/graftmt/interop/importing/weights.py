"""The weights of a foreign model, as files of any format have them: what is there first, then each tensor. Layer 5.

Anyone may have made the files. What a header says is compared with what is expected before a tensor is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor

from graftmt.documents import parse_json
from graftmt.errors import CheckpointError, first_few
from graftmt.files import LARGEST_TEXT, read_limited
from graftmt.interop.importing.pickled import load_pickled
from graftmt.tensor_files import WEIGHTS, is_finite, open_tensors

Shape: TypeAlias = tuple[int, ...]

SAFETENSORS, BINARY = "model.safetensors", "pytorch_model.bin"
INDEX = ".index.json"
OTHERS = {"tf_model.h5": "TensorFlow", "flax_model.msgpack": "Flax", "model.npz": "Marian", "rust_model.ot": "Rust"}
"""Files that hold weights in formats which are not read."""


@dataclass(frozen=True)
class Found:
    """What a file says of one tensor."""

    shape: Shape
    dtype: torch.dtype


class Weights(ABC):
    """The tensors of a model by name, none of which has been read yet."""

    found: Mapping[str, Found]

    @abstractmethod
    def read(self, names: Sequence[str]) -> Iterator[tuple[str, Tensor]]:
        """These tensors, in any order, each with finite numbers in memory of its own."""


class SafetensorsWeights(Weights):
    """One safetensors file, or the shards of one model."""

    def __init__(self, paths: Sequence[Path], listed: Mapping[str, str] | None = None) -> None:
        """`listed`: the file of each tensor, as an index has it."""
        self.paths = tuple(paths)
        self.found: dict[str, Found] = {}
        for path in paths:
            with open_tensors(path, "the model") as file:
                here = {name: Found(stored.shape, stored.dtype) for name, stored in file.tensors.items()}
            _check_listed(path, here, listed)
            if twice := sorted(here.keys() & self.found.keys()):
                raise CheckpointError(
                    f"{path}: the tensor {twice[0][:80]} is in another shard too; restore the files from a copy."
                )
            self.found |= here

    def read(self, names: Sequence[str]) -> Iterator[tuple[str, Tensor]]:
        wanted = set(names)
        for path in self.paths:
            with open_tensors(path, "the model") as file:
                changed = [name for name in wanted & file.tensors.keys() if file.tensors[name].shape != self.found[name].shape]
                if changed:
                    raise CheckpointError(f"{path} was changed while it was read; import it again.")
                for name, tensor in file.read():
                    if name in wanted:
                        yield name, _checked(tensor, name, path)


class PickledWeights(Weights):
    """Files of `torch.save`, read without running anything in them."""

    def __init__(self, paths: Sequence[Path], listed: Mapping[str, str] | None = None) -> None:
        self.tensors: dict[str, tuple[Tensor, Path]] = {}
        for path in paths:
            here = named_tensors(load_pickled(path), path)
            _check_listed(path, here, listed)
            self.tensors |= {name: (tensor, path) for name, tensor in here.items()}
        self.found = found_in(self.tensors)

    def read(self, names: Sequence[str]) -> Iterator[tuple[str, Tensor]]:
        for name in names:
            tensor, path = self.tensors[name]
            yield name, _checked(tensor.detach().clone(memory_format=torch.contiguous_format), name, path)


def found_in(tensors: Mapping[str, tuple[Tensor, Path]]) -> dict[str, Found]:
    return {name: Found(tuple(tensor.shape), tensor.dtype) for name, (tensor, _) in tensors.items()}


def named_tensors(loaded: object, path: Path) -> dict[str, Tensor]:
    """The tensors of a state dict; other entries are left out, and a tensor that is larger than its memory is an error."""
    if not isinstance(loaded, Mapping):
        raise CheckpointError(f"{path} holds a {type(loaded).__name__:.60}; expected tensors by name.")
    tensors = {name: value for name, value in loaded.items() if isinstance(name, str) and isinstance(value, Tensor)}
    for name, tensor in tensors.items():
        # A view may repeat a few numbers any number of times, and copying it would take that memory.
        if tensor.layout != torch.strided or tensor.untyped_storage().nbytes() < tensor.numel() * tensor.element_size():
            raise CheckpointError(f"{path}: the tensor {name[:80]!r} is no plain block of numbers; save the model again.")
    return tensors


def find_weights(folder: Path) -> Weights:
    """The weights in a folder of transformers: safetensors if there are any, else files of `torch.save`."""
    for name, kind in ((SAFETENSORS, SafetensorsWeights), (BINARY, PickledWeights)):
        if (folder / name).exists():
            return kind([folder / name])
        if (folder / f"{name}{INDEX}").exists():
            listed = read_index(folder / f"{name}{INDEX}")
            return kind([folder / shard for shard in dict.fromkeys(listed.values())], listed)
    other = next((program for name, program in OTHERS.items() if (folder / name).exists()), None)
    hint = (
        f" It has weights of {other}: load it with transformers (or its conversion script) and save_pretrained() it."
        if other
        else " Bring the weights next to config.json."
    )
    raise CheckpointError(f"{folder} has none of the files {SAFETENSORS}, {BINARY} or their {INDEX.removeprefix('.')}.{hint}")


def read_index(path: Path) -> dict[str, str]:
    """Tensor → shard. The shards are files next to the index, whatever it says."""
    try:
        document = parse_json(read_limited(path, LARGEST_TEXT))
        listed = document.get("weight_map") if isinstance(document, dict) else None
        if not isinstance(listed, dict) or not listed:
            raise ValueError("expected a weight_map with a file for each tensor")
        for shard in listed.values():
            if not isinstance(shard, str) or Path(shard).name != shard or "\\" in shard or shard in ("", ".", ".."):
                raise ValueError(f"{shard!r:.80} is not the name of a file next to it")
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged ({error}); restore it from a copy.") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None
    return listed


def _check_listed(path: Path, here: Mapping[str, object], listed: Mapping[str, str] | None) -> None:
    """Whether a shard has the tensors that the index says."""
    expected = here.keys() if listed is None else {name for name, shard in listed.items() if shard == path.name}
    if wrong := sorted(expected ^ here.keys()):
        raise CheckpointError(
            f"{path} does not have the tensors that the index lists ({first_few([name[:80] for name in wrong])}); "
            "the files are not of one model. Restore them from a copy."
        )


def _checked(tensor: Tensor, name: str, path: Path) -> Tensor:
    if tensor.dtype not in WEIGHTS:
        raise CheckpointError(f"{path}: the tensor {name[:80]} is of {tensor.dtype}; expected one of {WEIGHTS}.")
    if not is_finite(tensor):
        raise CheckpointError(f"{path}: the tensor {name[:80]} has numbers that are not finite (NaN or Inf); it is damaged.")
    return tensor
