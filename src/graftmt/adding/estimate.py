"""What a pack will cost before it is trained: parameters, bytes, memory and, by timing a few steps, time. Layer 5."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import torch

from graftmt.data import BatchMaker
from graftmt.training.optimization import smoothed_loss
from graftmt.training.packs import PackJob
from graftmt.training.run import batch_plan

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
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        minutes = self.seconds / 60
        duration = f"{minutes:.0f} minutes" if minutes >= 2 else f"{self.seconds:.0f} seconds"
        share = 100 * self.parameters / self.base_parameters
        return (
            f"{self.parameters:,} parameters ({share:.1f} % of the base's {self.base_parameters:,}), {self.bytes / 1e6:.1f} MB "
            f"on disk, about {self.memory / 1e9:.1f} GB of memory, {self.steps:,} steps in about {duration} plus validation"
        )


def estimate(job: PackJob, *, precision_bytes: int = 4) -> Estimate:
    """Times a few steps of the real job: forward and backward, no update, so that nothing of the pack has moved after."""
    config, model = job.config, job.composition.model
    stage = config.stages[0]
    plan = batch_plan(config, job.prepared, 0, job.directions)
    maker = BatchMaker(job.prepared.train, job.prepared.codec)
    on_gpu = model.device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    model.set_dropout(stage.dropout)
    model.train()
    taken = []
    activations = 0
    for step in range(PROBES):
        batch = maker.make(*plan.pairs(step)).to(model.device)
        started = time.monotonic()
        with (
            torch.autocast(model.device.type, torch.bfloat16, enabled=config.precision == "bf16"),
            torch.compiler.set_stance("force_eager"),
        ):
            loss = smoothed_loss(model, batch.source, batch.decoder_input, batch.labels, stage.label_smoothing)
        loss.backward()
        if on_gpu:
            torch.cuda.synchronize()
        taken.append(time.monotonic() - started)
        layers = model.config.encoder_layers + model.config.decoder_layers
        # Some twenty tensors of the model's width and a few of the FFN's are kept for the way back.
        width = 20 * model.config.model_dim + 3 * model.config.ffn_dim
        activations = max(activations, 4 * layers * width * max(batch.source.numel(), batch.labels.numel()))
    for parameter in job.pack.parameters.values():
        parameter.grad = None
    model.eval()
    parameters = job.pack.size
    base = sum(p.numel() * p.element_size() for p in model.parameters())
    memory = torch.cuda.max_memory_allocated() if on_gpu else base + activations
    seconds = sum(taken[1:]) / (PROBES - 1) * stage.accumulate * stage.steps
    total = sum(p.numel() for p in model.parameters())
    subwords = len(job.pack.tokenizer.subwords.model_bytes)
    return Estimate(
        parameters=parameters,
        base_parameters=total - parameters,
        bytes=parameters * precision_bytes + subwords,
        memory=memory + 12 * parameters,
        steps=stage.steps,
        seconds=seconds,
    )
