"""A training step recorded once and replayed as one CUDA graph, for batches of one shape. Layer 4.

A step of a small Transformer is a few thousand short kernels, and the time to launch them one by one is longer than the time
they run. A graph launches them all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from graftmt.data import PackedBatch

REHEARSALS = 3
"""Steps before the recording: they compile what is compiled and make the buffers that libraries keep."""


class CapturedStep:
    """Forward and backward of a packed batch.

    The parameters' gradients stay where they are from one replay to the next. A replay writes them anew or, where an update
    takes several batches (`adding`), adds to them; `clear` is called before each update.
    """

    def __init__(
        self,
        loss: Callable[[PackedBatch], Tensor],
        parameters: Iterable[nn.Parameter],
        batch: PackedBatch,
        device: torch.device,
        *,
        adding: bool = False,
    ) -> None:
        self.batch = batch.to(device)
        self.scale = torch.full((), 1 / batch.target_tokens, device=device)
        self.adding, self.trained = adding, list(parameters)
        for parameter in self.trained:
            parameter.grad = None
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(REHEARSALS):
                (loss(self.batch) * self.scale).backward()
        torch.cuda.current_stream(device).wait_stream(stream)
        # A gradient that is there is added to; one that is not is made in the graph's own memory, and written at each replay.
        for parameter in self.trained:
            parameter.grad = torch.zeros_like(parameter) if adding else None
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss = loss(self.batch) * self.scale
            self.loss.backward()

    def clear(self) -> None:
        """Makes the gradients ready for the next update."""
        if self.adding:
            torch._foreach_zero_([parameter.grad for parameter in self.trained if parameter.grad is not None])

    def __call__(self, batch: PackedBatch, tokens: int) -> Tensor:
        """The batch's loss divided by `tokens`, its gradients in place."""
        for own, other in zip(self.batch.tensors(), batch.tensors(), strict=True):
            own.copy_(other, non_blocking=True)
        self.scale.fill_(1 / tokens)
        self.graph.replay()
        return self.loss.detach().clone()
