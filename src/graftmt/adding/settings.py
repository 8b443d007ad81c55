"""The configuration of a pack's training that follows from a plan: defaults for the machine, a pace, the overrides. Layer 6."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graftmt.adding.defaults import FEWEST_STEPS
from graftmt.adding.plan import AddPlan
from graftmt.configuration import apply_overrides, from_mapping, to_mapping
from graftmt.devices import world_size
from graftmt.training import PackConfig
from graftmt.training.pack_job import with_scoped_stage
from graftmt.training.run_configuration import PACK_MERGES

BATCH_TOKENS = {"cpu": 2048, "cuda": 16_384}
COMPILED_FROM = 400
"""Steps on a GPU from which compiling, some ten seconds, is worth it."""


def make_config(plan: AddPlan, steps: int | None = None) -> PackConfig:
    """Defaults for this machine, what was asked for, then the overrides. `steps`: how many, where none were asked for."""
    values = _defaults(plan, plan.options.steps or steps or FEWEST_STEPS)
    # The stage that parts with `@trained` add is there only once all else is settled.
    overrides = plan.options.overrides
    last = [one for one in overrides if plan.recipe.scoped and one.startswith("stages.1.")]
    first = [one for one in overrides if one not in last]
    # Twice: what follows from the number of steps follows from one that is overridden too, and can be overridden itself.
    config = with_pace(from_mapping(PackConfig, apply_overrides(values, first)))
    config = with_scoped_stage(from_mapping(PackConfig, apply_overrides(to_mapping(config), first)))
    if last:
        config = from_mapping(PackConfig, apply_overrides(to_mapping(config), last))
        whole, part = config.stages
        config = replace(config, stages=(whole, replace(whole.with_steps(part.steps), name=part.name)))
        config = with_scoped_stage(from_mapping(PackConfig, apply_overrides(to_mapping(config), last)))
    return config


def _defaults(plan: AddPlan, steps: int) -> dict[str, Any]:
    options, corpus = plan.options, plan.corpus
    on_gpu = plan.device.startswith("cuda")
    stage: dict[str, Any] = {
        "name": "pack",
        "directions": [],
        "batch_tokens": BATCH_TOKENS["cuda" if on_gpu else "cpu"],
        "packed": on_gpu and world_size() == 1,
        # A few lines more for each other language stay few: drawn as often as those that are translated, they crowd these out.
        "temperature": 1.0 if plan.augment is not None else 5.0,
        "steps": steps,
        "learning_rate": 2e-3,
        "warmup": 0,
        "betas": [0.9, 0.98],
        "schedule": "constant",
        "cooldown": 0.5,
        "dropout": 0.1,
    }
    return {
        "run": str(plan.folder),
        "languages": list(options.languages),
        "side": plan.side,
        "recipe": str(plan.recipe),
        "data": {"partners": list(corpus.partners), "few": list(corpus.few)},
        "subwords": {"merges": options.merges or PACK_MERGES},
        "stages": [stage],
        "validation": {"lines": 100},
        "seed": options.seed,
        "device": plan.device,
        "precision": "bf16" if on_gpu or options.base_precision == "bf16" else "fp32",
        "compile": on_gpu and steps >= COMPILED_FROM,
        "parent": str(options.parent) if options.parent else None,
        "codes_from": str(options.codes_from) if options.codes_from else None,
    }


def with_pace(config: PackConfig) -> PackConfig:
    """Warm-up, validations, checkpoints and log lines at the pace of the number of steps."""
    stage = config.stages[0]
    stage = replace(stage, warmup=max(1, min(400, stage.steps // 10)))
    # Validating takes as long as a hundred steps of a GPU.
    times, fewest = (4, 100) if config.device.startswith("cuda") else (10, 50)
    every = max(fewest, -(-stage.steps // times))  # rounded up: the last of them is at the end, not just before it
    return replace(
        config,
        stages=(stage,),
        validation=replace(config.validation, every=every),
        checkpoint_every=every,
        log_every=max(1, min(50, stage.steps // 10)),
    )
