"""Several processes, on one machine or many, that train as one: started by `torchrun`, reduced by torch.distributed. Layer 4.

Every process plans the same batches and takes its share of the rows of each, so that data order, batch and schedule are those
of one process, whatever their number. Gradients of what trains are summed, and nothing else travels; the first process
alone validates, logs and saves. Where the layers are sharded too (`sharding.py`), all must run the model together.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from graftmt.data import Batch, PackedBatch
from graftmt.devices import world_size
from graftmt.errors import ConfigError, GraftError, TrainingError
from graftmt.training.sharding import is_sharded

AnyBatch = Batch | PackedBatch

PATIENCE = timedelta(hours=2)
"""How long processes wait for each other: the first one may be making a vocabulary or validating."""


@dataclass(frozen=True)
class Processes:
    """This process among those of the run."""

    rank: int = 0
    size: int = 1
    sharded: bool = False
    """Each holds a part of every layer, so that none can run the model alone."""

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, batch: AnyBatch, padding_id: int) -> AnyBatch | None:
        """The rows of this process; none where a batch has fewer rows than there are processes.

        Where the layers are sharded, there must be one to go through the model with: it is one whose labels do not count.
        """
        if self.size == 1:
            return batch
        assert isinstance(batch, Batch), "packed batches are for one process"
        rows = slice(self.rank, None, self.size)
        if not batch.lines[rows]:
            if not self.sharded:
                return None
            idle = self.share_of(batch, slice(0, 1))
            return replace(idle, labels=torch.full_like(idle.labels, padding_id))
        return self.share_of(batch, rows)

    @staticmethod
    def share_of(batch: Batch, rows: slice) -> Batch:
        return replace(
            batch,
            source=batch.source[rows],
            decoder_input=batch.decoder_input[rows],
            labels=batch.labels[rows],
            directions=batch.directions[rows],
            lines=batch.lines[rows],
        )

    def sum_gradients(self, parameters: Iterable[nn.Parameter], loss: Tensor) -> Tensor:
        """Gradients summed over all processes, in one message; returns the summed loss, which travels with them.

        Those of sharded parameters have been summed on their way to the process that holds the part.
        """
        if self.size == 1:
            return loss
        trained = [parameter for parameter in parameters if not is_sharded(parameter)]
        for parameter in trained:
            if parameter.grad is None:  # no row of this process touched it
                parameter.grad = torch.zeros_like(parameter)
        flat = torch.cat([*(p.grad.float().flatten() for p in trained if p.grad is not None), loss.detach().float().flatten()])
        dist.all_reduce(flat)
        start = 0
        for parameter in trained:
            assert parameter.grad is not None
            part = flat[start : start + parameter.numel()]
            parameter.grad.copy_(part.view_as(parameter))
            start += parameter.numel()
        return flat[start].view_as(loss)

    def agree(self, wish: bool, device: torch.device) -> bool:
        """Whether any process wishes it: all stop together or none does."""
        if self.size == 1:
            return wish
        vote = torch.tensor([float(wish)], device=device)
        dist.all_reduce(vote)
        return bool(vote.item() > 0)

    def from_first(self, make: Callable[[], Any], device: torch.device) -> Any:
        """What the first process makes, anything that JSON can hold, for all of them; the others wait.

        An error that it meets is an error everywhere, so that none is left waiting.
        """
        if self.size == 1:
            return make()
        message = b""
        if self.first:
            try:
                message = json.dumps({"made": make()}).encode()
            except GraftError as error:
                message = json.dumps({"error": str(error)}).encode()
        length = torch.tensor([len(message)], device=device)
        dist.broadcast(length, src=0)
        content = torch.zeros(int(length), dtype=torch.uint8, device=device)
        if self.first:
            content.copy_(torch.frombuffer(bytearray(message), dtype=torch.uint8))
        dist.broadcast(content, src=0)
        answer = json.loads(bytes(content.cpu().tolist()))
        if "error" in answer:
            raise GraftError(answer["error"])
        return answer["made"]

    def of_model(self, measure: Callable[[], Any], device: torch.device) -> Any:
        """What the first process measures of the model, for all of them; all run it where none can alone."""
        if self.sharded:
            measured = measure()
            return self.from_first(lambda: measured, device)
        return self.from_first(measure, device)

    def wait(self) -> None:
        if self.size > 1:
            dist.barrier()

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """The first process goes ahead through a block that leaves files behind (caches); the others follow and find them."""
        if not self.first:
            self.wait()
        yield
        if self.first:
            self.wait()


def is_first_process() -> bool:
    """Before and after they are joined: whether this is the one that speaks."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def processes(device: str, *, sharded: bool = False) -> Iterator[Processes]:
    """Joins the other processes where `torchrun` started several; one process alone needs nothing."""
    size = world_size()
    if size == 1:
        if sharded:
            raise ConfigError(
                "sharded=true shares a model out among processes, and there is one; start several with "
                "`torchrun --nproc-per-node N -m graftmt …`, or leave it out."
            )
        yield Processes()
        return
    if dist.is_initialized():
        yield Processes(dist.get_rank(), dist.get_world_size(), sharded)
        return
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.startswith("cuda") else "gloo", timeout=PATIENCE)
    try:
        with lost_processes():
            yield Processes(dist.get_rank(), dist.get_world_size(), sharded)
    finally:
        dist.destroy_process_group()


@contextmanager
def lost_processes() -> Iterator[None]:
    """That another process is gone is no error of this one: said in words, without a trace through torch."""
    try:
        yield
    except RuntimeError as error:
        # torch has a class for what NCCL says; of gloo's errors only the words tell.
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):
            raise
        reason = str(error).partition("\n")[0]
        raise TrainingError(
            "another process of the run has ended or cannot be reached, so this one ends too. The same command, with as many "
            f"processes or fewer, resumes at the last checkpoint. ({reason})"
        ) from None
