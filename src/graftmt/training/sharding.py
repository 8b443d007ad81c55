"""Models that do not fit one device: each process holds a part of every layer and borrows the rest when it is run. Layer 4.

This is torch's FSDP2. A sharded parameter is a `DTensor` whose own part is in this process; what is written to disk is
always whole, so that checkpoints, bases and packs do not show how they were trained. Embeddings stay whole everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeGuard

import torch
import torch.distributed as dist
from torch import Tensor, nn

from graftmt.base import parameters
from graftmt.model import Transformer, load_tensors

if TYPE_CHECKING:  # it takes most of a second to import, and almost no run is sharded
    from torch.distributed.tensor import DTensor


def shard(model: Transformer, device: str, replicated: Iterable[nn.Parameter] = ()) -> None:
    """Shares the layers out among the processes and puts this one's part, and all else, on `device`.

    One layer after the other, so that a model in host memory never has to be whole on a device. `replicated` parameters
    stay as they are: a pack's, which are small, stand in layers of the frozen base.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(torch.device(device).type, (dist.get_world_size(),))
    ignored = set(replicated)
    for stack in (model.encoder, model.decoder):
        for module in (*stack.layers, stack):  # the stack's own: its last norm
            part = fully_shard(module, mesh=mesh, ignored_params=ignored)
            # Losses are divided by the tokens of the whole batch: gradients are summed, as in Processes.sum_gradients.
            part.set_gradient_divide_factor(1.0)
            part.set_force_sum_reduction_for_comms(True)
    model.to(device)
    assert all(own.device.type == mesh.device_type for own in ignored), "moved in place: their owner holds them too"


def make_whole(model: Transformer) -> None:
    """The whole parameters in place of the shards, in host memory: to be stored, not to be run. All processes take part."""
    load_tensors(model, {name: whole(tensor).cpu() for name, tensor in parameters(model).items()}, "the sharded model")


def is_sharded(tensor: Tensor) -> TypeGuard[DTensor]:
    return hasattr(tensor, "full_tensor")


def whole(tensor: Tensor) -> Tensor:
    """All of it; where it is sharded, all processes must ask."""
    with torch.no_grad():
        return tensor.full_tensor() if is_sharded(tensor) else tensor.detach()


def own_part(tensor: Tensor) -> Tensor:
    """What this process holds of it: the same memory."""
    with torch.no_grad():
        return tensor.to_local() if is_sharded(tensor) else tensor.detach()


def cut_like(parameter: Tensor, tensor: Tensor) -> Tensor:
    """A whole tensor as `parameter` is: on its device and, where it is sharded, cut in the same way. Nothing travels."""
    moved = tensor.to(parameter.device)
    if not is_sharded(parameter) or tensor.shape != parameter.shape:  # the latter: a count of steps
        return moved
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(moved, parameter.device_mesh, parameter.placements, src_data_rank=None)


def held_bytes(model: nn.Module) -> int:
    """What this process holds of a model's parameters between two steps."""
    return sum(part.numel() * part.element_size() for part in map(own_part, model.parameters()))


def whole_bytes(model: nn.Module) -> int:
    return sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())


def group_shards(optimizer: torch.optim.Optimizer) -> None:
    """Sharded parameters in a group of their own: one kernel updates a group, and it takes no mixture."""
    group = optimizer.param_groups[0]
    sharded = [parameter for parameter in group["params"] if is_sharded(parameter)]
    if sharded:
        group["params"] = [parameter for parameter in group["params"] if not is_sharded(parameter)]
        optimizer.add_param_group({**group, "params": sharded})


@torch.no_grad()
def clip_gradients(parameters: Iterable[nn.Parameter], limit: float) -> None:
    """Scales all gradients down to a norm of at most `limit`: the norm of the whole, also where each process has a part."""
    trained = list(parameters)
    if not any(map(is_sharded, trained)):
        nn.utils.clip_grad_norm_(trained, limit)
        return
    gradients = [(is_sharded(p), own_part(p.grad)) for p in trained if p.grad is not None]
    squares = {kind: [part.float().square().sum() for sharded, part in gradients if sharded is kind] for kind in (False, True)}
    in_parts = torch.stack(squares[True]).sum()
    dist.all_reduce(in_parts)
    norm = (torch.stack([in_parts, *squares[False]]).sum()).sqrt()
    scale = (limit / (norm + 1e-6)).clamp(max=1.0)
    for _, part in gradients:
        part.mul_(scale.to(part.dtype))
