"""The stages of a run in order, each from the best of the one before. Layer 4."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from graftmt.configuration import to_mapping, to_yaml
from graftmt.data import (
    BatchMaker,
    BatchPlan,
    Direction,
    PackedMaker,
    PackedPlan,
    PairSampler,
)
from graftmt.errors import ConfigError
from graftmt.files import write_text
from graftmt.model import Transformer
from graftmt.model.known_parts import all_known
from graftmt.progress import progress, say
from graftmt.training.checkpoints import Checkpoints, RunState
from graftmt.training.distribution import Processes
from graftmt.training.journal import Journal, OnStep
from graftmt.training.loop import Trainer, mix_seed
from graftmt.training.optimization import compile_layers
from graftmt.training.run_configuration import RunConfig
from graftmt.training.sharding import held_bytes, whole_bytes
from graftmt.training.stopping import Stopped, StopRequest
from graftmt.training.training_job import Prepared, TrainingJob

Run = TypeVar("Run", bound=RunConfig)


def set_up_torch(device: str, threads: int) -> None:
    """What a training process wants of torch, once."""
    if threads:
        torch.set_num_threads(threads)
    # Almost every batch has a shape of its own: without this the allocator keeps a block for each and runs out of them.
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    if device.startswith("cuda"):
        if ":" in device:
            torch.cuda.set_device(device)  # our kernels and recorded steps go to the current one
        torch.set_float32_matmul_precision("high")  # TF32 for what is not bf16


def run_stages(job: TrainingJob, request: StopRequest, team: Processes, *, on_step: OnStep | None = None) -> RunState:
    """Trains the job's parameters through every stage that is not done yet; they end as the best of the last stage."""
    run = _StagedRun(job, request, team, on_step)
    state, stages = run.state, run.config.stages
    try:
        while True:
            run.train(state)
            if state.stage + 1 == len(stages):
                return state
            state = run.next_stage(state)
    except Stopped as stop:
        before = sum(stage.steps for stage in stages[: state.stage])
        steps = sum(stage.steps for stage in stages)
        stop.standing = {"run": str(run.config.run), "step": before + state.step, "steps": steps}
        raise
    finally:
        run.close()


class _StagedRun:
    """The stages of one job, from where the run's folder says that it was stopped."""

    def __init__(self, job: TrainingJob, request: StopRequest, team: Processes, on_step: OnStep | None) -> None:
        config, self.job, self.request, self.team = job.config, job, request, team
        self.parameters = job.parameters
        self.checkpoints = Checkpoints(config.run / "checkpoints", config.keep_checkpoints, type(config), writes=team.first)
        self.resolved = to_mapping(config)
        self.latest, self.state = self._resume()
        if team.first:
            write_text(config.run / "config.yaml", to_yaml(config))
        self.journal = Journal(
            config.run,
            tensorboard=config.tensorboard,
            resume_at=(self.state.stage, self.state.step) if self.latest else None,
            silent=not team.first,
            on_step=on_step,
        )
        if self.journal.note:
            say(self.journal.note)
        self.models = [job.model_of(number) for number in range(len(config.stages))]
        self.config = padded_where_unknown(config, *self.models)
        if config.compile:
            for each in dict.fromkeys(self.models):
                compile_layers(each, one_shape=all(stage.packed for stage in self.config.stages))
        say(f"{self._size()} on {self.models[-1].device}, {config.precision}{self._together()}")

    def _resume(self) -> tuple[Path | None, RunState]:
        """The latest checkpoint, whose parameters are loaded, and where it stands."""
        checkpoints, config, prepared = self.checkpoints, self.job.config, self.job.prepared
        if self.team.first:
            checkpoints.sweep()
        self.team.wait()
        latest = checkpoints.latest()
        state = RunState()
        if latest is not None:
            state = checkpoints.read_state(latest, self.resolved, prepared.data, prepared.marks)
            checkpoints.adopt_best(state, config.validation)
            checkpoints.load_parameters(latest, self.parameters)
            say(f"resuming at {latest.name}")
        self.team.wait()  # all have read what the first may now replace
        return latest, state

    def _size(self) -> str:
        trained = sum(p.numel() for p in self.parameters.values())
        total = sum(p.numel() for p in self.models[-1].parameters())
        return f"{total:,} parameters" if trained == total else f"{trained:,} of {total:,} parameters train"

    def _together(self) -> str:
        together = f", {self.team.size} processes" if self.team.size > 1 else ""
        if self.team.sharded:
            model = self.models[-1]
            together += f", of which this one holds {held_bytes(model):,} of {whole_bytes(model):,} bytes"
        return together

    def train(self, state: RunState) -> None:
        """What is left of the stage that `state` stands in; the parameters end as its best."""
        config, prepared, number = self.config, self.job.prepared, state.stage
        stage, model, names = config.stages[number], self.models[number], self.job.names_trained(number)
        for name, parameter in self.parameters.items():
            parameter.requires_grad_(name in names)
        plan = batch_plan(config, prepared, number, self.job.directions_of(number))
        pairs, count = plan.sampler.pairs, len(plan.sampler.directions)
        where = f"stage {number + 1} of {len(config.stages)}, {stage.name}: " if len(config.stages) > 1 else ""
        say(f"{where}{pairs:,} line pairs in {count} direction{'s' * (count > 1)}, {stage.steps:,} steps")
        with progress(stage.name, stage.steps) as report:
            trainer = Trainer(
                config=config,
                stage=stage,
                model=model,
                parameters=self.parameters,
                plan=plan,
                maker=batch_maker(config, prepared, plan, model, self.team),
                validator=prepared.validator,
                checkpoints=self.checkpoints,
                journal=self.journal,
                request=self.request,
                report=report,
                resolved=self.resolved,
                data=prepared.data,
                marks=prepared.marks,
                stage_seed=mix_seed(config.seed, number),
                team=self.team,
            )
            trainer.run(state, self.latest if state.step else None)
        if prepared.validator is not None:
            self.checkpoints.load_parameters(self.checkpoints.best(number), self.parameters)

    def next_stage(self, finished: RunState) -> RunState:
        """Where the stage after a finished one begins."""
        self.latest = None
        state = replace(
            RunState(),
            stage=finished.stage + 1,
            target_tokens=finished.target_tokens,
            seconds=finished.seconds,
            validations=finished.validations,
        )
        if not self.job.keeps_start or self.job.prepared.validator is None:
            return state
        assert finished.best_validation is not None, "the last step of a stage is validated"
        start = {**finished.best_validation, "stage": state.stage, "step": 0}
        state = replace(state, best_score=finished.best_score, validations=[*state.validations, start])
        self.checkpoints.save_best(state.stage, self.parameters, start)
        return state

    def close(self) -> None:
        self.journal.close()
        for parameter in self.parameters.values():
            parameter.requires_grad_(True)


def padded_where_unknown(config: Run, *models: Transformer) -> Run:
    """The configuration without packed batches where a model has modules that are not known to take them."""
    if not any(stage.packed for stage in config.stages) or all_known("packed batches", *models):
        return config
    return replace(config, stages=tuple(replace(stage, packed=False) for stage in config.stages))


def batch_plan(config: RunConfig, prepared: Prepared, number: int, directions: list[Direction]) -> BatchPlan:
    """The batches of one stage."""
    stage = config.stages[number]
    sampler = PairSampler(
        prepared.train,
        directions,
        temperature=stage.temperature,
        max_length=prepared.max_length,
        seed=mix_seed(config.seed, 1000 + number),
        fixed={direction: share for direction, share in prepared.fixed.items() if direction in directions},
        factors=prepared.factors,
    )
    kind = PackedPlan if stage.packed else BatchPlan
    return kind(sampler, prepared.train, max_tokens=stage.batch_tokens)


def batch_maker(config: RunConfig, prepared: Prepared, plan: BatchPlan, model: Transformer, team: Processes) -> BatchMaker:
    if not isinstance(plan, PackedPlan):
        return BatchMaker(prepared.train, prepared.codec)
    if team.size > 1 or (model.device.type == "cuda" and config.precision != "bf16"):
        raise ConfigError("packed=true works in one process and, on a GPU, with precision=bf16; leave it out here.")
    return PackedMaker(prepared.train, prepared.codec, plan.shape)


def run_facts(config: RunConfig, state: RunState) -> dict[str, Any]:
    """What the card of a base or a pack says of its training, and of the weights it has: the best ones."""
    return {
        "seed": config.seed,
        "training_seconds": round(state.seconds, 1),
        "target_tokens": state.target_tokens,
        "validation": state.best_validation,
        "config": to_mapping(config),
    }
