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
    """Forward and backward of a packed batch. Gradients are added to those that the parameters have, which must stay where
    they are: `optimizer.zero_grad(set_to_none=False)`."""

    def __init__(
        self,
        loss: Callable[[PackedBatch], Tensor],
        parameters: Iterable[nn.Parameter],
        batch: PackedBatch,
        device: torch.device,
    ) -> None:
        self.batch = batch.to(device)
        self.scale = torch.full((), 1 / batch.target_tokens, device=device)
        trained = list(parameters)
        for parameter in trained:
            parameter.grad = torch.zeros_like(parameter)
        beside = torch.cuda.Stream(device)
        beside.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(beside):
            for _ in range(REHEARSALS):
                (loss(self.batch) * self.scale).backward()
        torch.cuda.current_stream(device).wait_stream(beside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss = loss(self.batch) * self.scale
            self.loss.backward()
        for parameter in trained:
            assert parameter.grad is not None
            parameter.grad.zero_()

    def __call__(self, batch: PackedBatch, tokens: int) -> Tensor:
        """Adds the gradients of the batch's loss divided by `tokens`, and returns that."""
        for own, other in zip(self.batch.tensors(), batch.tensors(), strict=True):
            own.copy_(other, non_blocking=True)
        self.scale.fill_(1 / tokens)
        self.graph.replay()
        return self.loss.detach().clone()
