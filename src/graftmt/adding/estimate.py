"""What a pack will cost before it is trained: parameters, bytes, memory and, by timing a few steps, time. Layer 6."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import torch

from graftmt.data import PackedBatch
from graftmt.training.distribution import Processes
from graftmt.training.optimization import packed_loss, smoothed_loss
from graftmt.training.pack_job import PackJob
from graftmt.training.stages import batch_maker, batch_plan, padded_where_unknown

PROBES = 4
"""Steps that are timed; the first one is left out, for it sets things up."""


@dataclass(frozen=True)
class Estimate:
    """Of one pack on this machine."""

    parameters: int
    base_parameters: int
    bytes: int
    """Of the stored pack."""
    memory: int
    """Bytes while training: base, pack, its gradients and optimiser, and the activations of one batch (GPU: as measured)."""
    steps: int
    done: int
    """Steps that an earlier command has done."""
    seconds: float
    """For the steps that are left, validation not counted."""
    at_most: bool = False
    """Whether the steps will be recorded or compiled, and so be faster than those that were timed."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        share = f"{100 * self.parameters / self.base_parameters:.1f} % of the base's {self.base_parameters:,}"
        pack = f"{self.parameters:,} parameters ({share}), {size(self.bytes)} on disk"
        left = self.steps - self.done
        if left <= 0:
            return f"{pack}; all {self.steps:,} steps are done"
        words = "at most" if self.at_most else "about"
        steps = f"{left:,} of {self.steps:,} steps left" if self.done else f"{self.steps:,} steps"
        return f"{pack}; about {size(self.memory)} of memory; {steps}, {words} {duration(self.seconds)} plus validation"


def duration(seconds: float) -> str:
    """In the unit that people would use."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count < 1e8 else f"{count / 1e9:.1f} GB"


def estimate(job: PackJob, *, done: int = 0) -> Estimate:
    """Times a few steps of the real job: forward and backward, no update, so that nothing of the pack has moved after.

    `done`: steps that need not be done again.
    """
    base, model = job.base.model, job.composition.model
    config = padded_where_unknown(job.config, model)
    stage = config.stages[0]
    steps = sum(one.steps for one in config.stages)
    plan = batch_plan(config, job.prepared, 0, job.directions)
    maker = batch_maker(config, job.prepared, plan, model, Processes())
    on_gpu = model.device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    model.set_dropout(stage.dropout)
    model.train()
    taken = []
    activations = 0
    for step in range(PROBES if done < steps else 0):
        batch = maker.make(*plan.pairs(step)).to(model.device)
        started = time.monotonic()
        with (
            torch.autocast(model.device.type, torch.bfloat16, enabled=config.precision == "bf16"),
            torch.compiler.set_stance("force_eager"),
        ):
            if isinstance(batch, PackedBatch):
                loss = packed_loss(model, batch, stage.label_smoothing)
            else:
                loss = smoothed_loss(model, batch.source, batch.decoder_input, batch.labels, stage.label_smoothing)
        loss.backward()
        if on_gpu:
            torch.cuda.synchronize()
        taken.append(time.monotonic() - started)
        layers = model.config.encoder_layers + model.config.decoder_layers
        # Some twenty tensors of the model's width and a few of the FFN's are kept for the way back.
        width = 20 * model.config.model_dim + 3 * model.config.ffn_dim
        activations = max(activations, 2 * layers * width * batch.size)
    for parameter in job.pack.parameters.values():
        parameter.grad = None
    model.eval()
    parameters = job.pack.size
    resident = sum(p.numel() * p.element_size() for p in base.parameters()) + 4 * parameters
    memory = torch.cuda.max_memory_allocated() if on_gpu else resident + activations
    stored = {"fp32": 4, "bf16": 2, "fp16": 2}[config.store_dtype]
    return Estimate(
        parameters=parameters,
        base_parameters=sum(p.numel() for p in base.parameters()),
        bytes=parameters * stored + sum(map(len, job.pack.tokenizer.files().values())),
        memory=memory + 12 * parameters,
        steps=steps,
        done=done,
        seconds=fmean(taken[1:]) * stage.accumulate * (steps - done) if taken else 0.0,
        at_most=config.compile or (on_gpu and stage.packed and config.capture),
    )
