"""Projection and label-smoothed cross-entropy in one, without the scores of all tokens in memory. Layer 4.

Scores for 32k tokens × 64k words are 8 GB in fp32, several times over with their gradients. Here a chunk of tokens is
projected, its loss and the gradient of its scores computed at once, and the scores forgotten before the next chunk. On a GPU
a kernel turns scores into their gradient in their own memory: a row of 64,000 is read once from memory and once more from
the cache, and written once. It needs Triton, which comes with torch for CUDA on Linux.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from graftmt.model.compiled import kernel, tl, triton

CHUNK_SCORES = 1 << 28
"""Scores computed at a time: 512 MiB in bf16, 1 GiB in fp32."""

ALIGNMENT = 64
LARGE = 1 << 27
"""Numbers of a matrix: twice those of a Transformer Base with 128,000 rows."""

KERNEL = True
"""Whether our kernel does what can be done between two products, where it can. For benchmarks to switch."""


class FusedLoss(torch.autograd.Function):
    """Sum over the target tokens of (1 − ε)·nll + (ε / V)·Σ; padding left out."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, labels: Tensor, padding_id: int, smoothing: float, compiled: bool
    ) -> Tensor:
        """hidden (N, D), weight (V, D), labels (N,) → the loss, a scalar in fp32."""
        total = torch.zeros((), dtype=torch.float32, device=hidden.device)
        hidden_gradient = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
        weight_gradient = torch.zeros_like(weight, dtype=torch.float32) if ctx.needs_input_grad[1] else None
        rows = weight.shape[0]
        # Matrix units are several times slower on a number of rows that is not a multiple of theirs.
        matrix = weight.to(hidden.dtype) if _is_large(weight) else F.pad(weight.to(hidden.dtype), (0, 0, 0, -rows % ALIGNMENT))
        loss_and_gradient: Any = _compiled_loss_and_gradient() if compiled else _loss_and_gradient
        share = torch.full((), smoothing, device=hidden.device) if compiled else smoothing
        chunk = _chunk(hidden.shape[0], max(1, CHUNK_SCORES // len(matrix)))
        for start in range(0, hidden.shape[0], chunk):
            part, wanted = hidden[start : start + chunk], labels[start : start + chunk]
            gradient = part @ matrix.t()  # scores, for now
            if KERNEL and can_replace(gradient):
                loss = replace_by_gradient(gradient, rows, wanted, padding_id, smoothing).sum()
            else:
                loss, gradient = loss_and_gradient(gradient, rows, wanted, padding_id, share)
            total += loss
            if hidden_gradient is not None:
                torch.mm(gradient, matrix, out=hidden_gradient[start : start + chunk])
            if weight_gradient is not None:
                weight_gradient += (gradient.t() @ part)[:rows]
        ctx.save_for_backward(hidden_gradient, weight_gradient)
        ctx.weight_dtype = weight.dtype
        return total

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, None, None]:
        hidden, weight = ctx.saved_tensors
        return (
            None if hidden is None else hidden * scale.to(hidden.dtype),
            None if weight is None else (weight * scale).to(ctx.weight_dtype),
            None,
            None,
            None,
            None,
        )


def _is_large(weight: Tensor) -> bool:
    """On a CPU, where nothing is gained, a copy of such a matrix for each update would cost a gigabyte and its time."""
    return weight.device.type == "cpu" and weight.numel() >= LARGE


def _chunk(tokens: int, most: int) -> int:
    """Chunks of one size where that is possible: what is compiled is compiled for one."""
    parts = 1
    while -(-tokens // parts) > most:
        parts *= 2
    return -(-tokens // parts) or 1


def _loss_and_gradient(scores: Tensor, rows: int, labels: Tensor, padding_id: int, smoothing: float) -> tuple[Tensor, Tensor]:
    """scores (n, V or a little more), of which `rows` are real → their loss, and its gradient in their own precision."""
    scores[:, rows:] = float("-inf")
    counts = (labels != padding_id).float()[:, None]
    log_probabilities = torch.log_softmax(scores, dim=1, dtype=torch.float32)
    picked = log_probabilities.gather(1, labels[:, None])
    smooth = log_probabilities[:, :rows].sum(dim=1, keepdim=True)
    loss = -(((1 - smoothing) * picked + smoothing / rows * smooth) * counts).sum()
    gradient = log_probabilities.exp_()
    gradient[:, :rows].sub_(smoothing / rows)
    gradient.scatter_add_(1, labels[:, None], torch.full_like(picked, smoothing - 1))
    return loss, gradient.mul_(counts).to(scores.dtype)


def _loss_and_gradient_in_one(
    scores: Tensor, rows: int, labels: Tensor, padding_id: int, smoothing: Tensor
) -> tuple[Tensor, Tensor]:
    """The same, written for a compiler: the scores are read twice and the gradient is written once, nothing else.

    (`smoothing` is a tensor: torch 2.13 compiles a wrong gradient for a third value of a plain number.)
    """
    counts = (labels != padding_id)[:, None]
    columns = torch.arange(scores.shape[1], device=scores.device)[None]
    real = columns < rows
    exact = torch.where(real, scores.float(), -torch.inf)
    total = torch.logsumexp(exact, dim=1, keepdim=True)
    smooth = torch.where(real, scores.float(), 0.0).sum(dim=1, keepdim=True)
    picked = scores.gather(1, labels[:, None]).float()
    loss = (torch.where(counts, total - (1 - smoothing) * picked - smoothing / rows * smooth, 0.0)).sum()
    wanted = torch.where(columns == labels[:, None], 1 - smoothing, 0.0) + torch.where(real, smoothing / rows, 0.0)
    return loss, torch.where(counts, (exact - total).exp() - wanted, 0.0).to(scores.dtype)


@cache
def _compiled_loss_and_gradient() -> Callable[[Tensor, int, Tensor, int, Tensor], tuple[Tensor, Tensor]]:
    return torch.compile(_loss_and_gradient_in_one)


def fused_loss(
    hidden: Tensor, weight: Tensor, labels: Tensor, padding_id: int, smoothing: float, compiled: bool = False
) -> Tensor:
    """hidden (B, T, D), weight (V, D), labels (B, T) → the summed loss, differentiable in hidden and weight."""
    device = hidden.device.type
    if torch.is_autocast_enabled(device):
        hidden = hidden.to(torch.get_autocast_dtype(device))
    # The function chooses its own precisions; autocast would cast the matrix again for every chunk.
    with torch.autocast(device, enabled=False):
        loss: Tensor = FusedLoss.apply(hidden.flatten(0, 1), weight, labels.flatten(), padding_id, smoothing, compiled)  # type: ignore[no-untyped-call]
    return loss


TOGETHER = 8
"""Scores side by side that share a running maximum: what a thread reads at once."""

WARPS = 16
"""Few rows at a time, so that the cache still has them when they are read again."""


def can_replace(scores: Tensor) -> bool:
    """Whether there is a kernel for these scores."""
    return triton is not None and scores.is_cuda and scores.dtype in (torch.float32, torch.bfloat16, torch.float16)


def replace_by_gradient(scores: Tensor, rows: int, labels: Tensor, padding_id: int, smoothing: float) -> Tensor:
    """scores (n, V or a little more), of which `rows` are real, become the gradient; returns the loss of each token (n,)."""
    assert scores.stride(1) == 1
    losses = scores.new_empty(len(scores), dtype=torch.float32)
    with torch.cuda.device_of(scores):
        _replace_by_gradient[(len(scores),)](
            scores,
            labels,
            losses,
            scores.stride(0),
            scores.shape[1],
            rows,
            padding_id,
            smoothing,
            GROUPS=32 * WARPS,
            TOGETHER=TOGETHER,
            num_warps=WARPS,
        )
    return losses


@kernel(do_not_specialize=["padding_id"])  # type: ignore[untyped-decorator]
def _replace_by_gradient(  # type: ignore[no-untyped-def]
    scores_at, labels_at, losses_at, stride, width, rows, padding_id, smoothing, GROUPS: tl.constexpr, TOGETHER: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_at + row)
    scores_at += row * stride
    places = tl.arange(0, GROUPS)[:, None] * TOGETHER + tl.arange(0, TOGETHER)[None, :]
    if label == padding_id:
        for start in range(0, width, GROUPS * TOGETHER):
            nothing = tl.zeros([GROUPS, TOGETHER], tl.float32).to(scores_at.dtype.element_ty)
            tl.store(scores_at + start + places, nothing, mask=start + places < width)
        tl.store(losses_at + row, 0.0)
    else:
        highest = tl.full([GROUPS], float("-inf"), tl.float32)
        total = tl.zeros([GROUPS], tl.float32)
        plain = tl.zeros([GROUPS], tl.float32)
        for start in range(0, width, GROUPS * TOGETHER):
            real = start + places < rows
            scores = tl.load(scores_at + start + places, mask=real, other=float("-inf")).to(tl.float32)
            plain += tl.sum(tl.where(real, scores, 0.0), axis=1)
            new = tl.maximum(highest, tl.max(scores, axis=1))
            finite = tl.where(new == float("-inf"), 0.0, new)
            total = total * tl.exp(highest - finite) + tl.sum(tl.exp(scores - finite[:, None]), axis=1)
            highest = new
        top = tl.max(highest, axis=0)
        log_total = top + tl.log(tl.sum(total * tl.exp(highest - top), axis=0))
        share = smoothing / rows
        wanted = tl.load(scores_at + label).to(tl.float32)
        tl.store(losses_at + row, log_total - (1 - smoothing) * wanted - share * tl.sum(plain, axis=0))
        tl.debug_barrier()  # all have read the label's score before one writes its gradient
        for start in range(0, width, GROUPS * TOGETHER):
            now = start + places
            scores = tl.load(scores_at + now, mask=now < rows, other=float("-inf")).to(tl.float32)
            gradient = tl.exp(scores - log_total) - share - tl.where(now == label, 1 - smoothing, 0.0)
            gradient = tl.where(now < rows, gradient, 0.0)
            tl.store(scores_at + now, gradient.to(scores_at.dtype.element_ty), mask=now < width)
