"""Foreign weights as our parameters: all is checked by what the files' headers say, before it is read. Layer 5."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import torch
from torch import Tensor

from graftmt.errors import CheckpointError, first_few
from graftmt.interop.importing.family import Names
from graftmt.interop.importing.weights import Shape, Weights
from graftmt.tensor_files import WEIGHTS

OnTensor = Callable[[int], None]
"""Hears how many numbers have been read."""


def stored_dtype(weights: Weights, names: Names) -> torch.dtype:
    """The precision that holds all of the model's parameters without loss."""
    kinds = {weights.found[name].dtype for places in names.values() for name in places if name in weights.found}
    if len(kinds) == 1:
        return kinds.pop()
    return torch.float32


def check_weights(
    weights: Weights, names: Names, expected: Mapping[str, Shape], unused: Sequence[str], where: Path
) -> dict[str, str]:
    """Our parameter → the tensor it is read from. Anything that is missing, left over or of another shape is an error."""
    chosen: dict[str, str] = {}
    for ours, shape in expected.items():
        there = [name for name in names.get(ours, ()) if name in weights.found]
        if not there:
            listed = " or ".join(names.get(ours, (ours,)))
            raise CheckpointError(f"{where}: its weights lack {listed}, which its configuration calls for. {_ADVICE}")
        for name in there:
            found = weights.found[name]
            if _without_ones(found.shape) != _without_ones(shape):
                raise CheckpointError(
                    f"{where}: the tensor {name} has shape {found.shape}; its configuration calls for {shape}. {_ADVICE}"
                )
            if found.dtype not in WEIGHTS:
                raise CheckpointError(f"{where}: the tensor {name} is of {found.dtype}; expected one of {WEIGHTS}.")
        chosen[ours] = there[0]
    known = {name for places in names.values() for name in places}
    left = [name for name in weights.found if name not in known and not any(fnmatchcase(name, one) for one in unused)]
    if left:
        raise CheckpointError(
            f"{where}: its weights have {len(left)} tensors that models of its family do not have "
            f"({first_few(sorted(name[:80] for name in left))}); it is built otherwise, and cannot be imported."
        )
    return chosen


_ADVICE = "The files are not of one model, or it was changed; restore them from a copy."


def _without_ones(shape: Shape) -> Shape:
    """A bias may be stored as a matrix of one row."""
    return tuple(side for side in shape if side != 1)


def read_parameters(
    weights: Weights,
    names: Names,
    chosen: Mapping[str, str],
    expected: Mapping[str, Shape],
    dtype: torch.dtype,
    where: Path,
    on_tensor: OnTensor = lambda count: None,
) -> dict[str, Tensor]:
    """The parameters in this precision. Of tensors that should be copies, it is checked that they are."""
    ours_of = {theirs: ours for ours, theirs in chosen.items()}
    copies = {copy: ours for ours, first in chosen.items() for copy in names[ours] if copy != first and copy in weights.found}
    parameters: dict[str, Tensor] = {}
    done = 0
    for name, tensor in weights.read([*ours_of, *copies]):
        ours = ours_of.get(name) or copies[name]
        converted = tensor.view(expected[ours]).to(dtype)
        if not _is_finite_still(tensor, converted):
            raise CheckpointError(
                f"{where}: the tensor {name} has numbers that {dtype} cannot hold; import it with --dtype bf16 or fp32."
            )
        earlier = parameters.setdefault(ours, converted)
        if earlier is not converted and not torch.equal(earlier, converted):
            there = " and ".join(one for one in names[ours] if one in weights.found)
            raise CheckpointError(f"{where}: {there} should be one matrix, by its configuration, and differ. {_ADVICE}")
        done += tensor.numel()
        on_tensor(done)
    return parameters


def _is_finite_still(before: Tensor, after: Tensor) -> bool:
    return before.dtype == after.dtype or bool(torch.isfinite(after).all())


def size_of(expected: Mapping[str, Shape]) -> int:
    """How many numbers there are."""
    return sum(math.prod(shape) for shape in expected.values())
