"""Training a language pack on a resident base: its vocabulary, its rows, one run of the common loop, its folder. Layer 4."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from graftmt.base import Base
from graftmt.data import Corpus
from graftmt.devices import choose_device
from graftmt.errors import ConfigError
from graftmt.packs import Pack, save_pack
from graftmt.packs.card import provenance
from graftmt.packs.component import SCOPED
from graftmt.packs.storage import check_place
from graftmt.progress import say
from graftmt.training.checkpoints import RunState
from graftmt.training.journal import OnStep
from graftmt.training.pack_directions import with_scoped_stage
from graftmt.training.pack_job import PackJob
from graftmt.training.pack_preparation import prepare_pack
from graftmt.training.run_configuration import PackConfig
from graftmt.training.run_folder import held_run
from graftmt.training.sharding import shard
from graftmt.training.stages import run_facts, run_stages, set_up_torch
from graftmt.training.stopping import stop_on_signals


def train_pack(
    config: PackConfig,
    base: Base,
    train: Corpus,
    valid: Corpus | None = None,
    *,
    minutes: float | None = None,
    fresh: bool = False,
    on_ready: Callable[[PackJob], None] | None = None,
    on_step: OnStep | None = None,
) -> Pack:
    """Runs what is left of a run and returns the pack, stored in the run's folder as `pack`.

    The base is resident and shared: other threads may use it, and it may hold its weights in bf16. It is not changed.
    A run that exists resumes exactly where it stopped; `fresh` moves it aside. `on_ready` hears of the job before it trains.
    """
    started = time.monotonic()
    config = with_scoped_stage(config)
    device = training_device(config, base)
    set_up_torch(device, config.threads)
    with held_run(config.run, device, of="pack", fresh=fresh, sharded=config.sharded) as team:
        check_place(config.run / "pack")  # before hours are spent on what goes there
        with team.first_alone():
            job = prepare_pack(config, base, train, valid)
        if on_ready is not None:
            on_ready(job)
        if team.sharded:
            shard(job.composition.model, device, replicated=job.pack.parameters.values())
        left = None if minutes is None else minutes - (time.monotonic() - started) / 60
        with stop_on_signals(left) as request:
            state = run_stages(job, request, team, on_step=on_step)
        pack = job.pack.to(base.model.device)  # if it was sharded it trained on another device
        whole = ({*pack.partners} - {*pack.few}) | ({*config.data.partners} - {*config.data.few})
        pack.partners = tuple(dict.fromkeys([*pack.partners, *config.data.partners]))  # also those of a pack gone on with
        pack.few = tuple(name for name in pack.partners if name not in whole)
        pack.card |= provenance(base, config.languages) | training_facts(config, state)
        pack.card |= {"partners": list(pack.partners), "few": list(pack.few)}
        if pack.recipe.scoped and state.best_score is not None and not state.best_step:
            pack.card["scoped"] = "left out: no gain in validation"
            say(
                f"the parts with {SCOPED} brought no lower validation loss: they are left as they began, which is nothing, and "
                "all directions are those of the pack without them."
            )
        if team.first:
            save_pack(pack, config.run / "pack", base.model.config, dtype=config.store_dtype)
            of_step = f" of step {state.best_step:,}" if state.best_score is not None else ""
            say(f"pack {pack.fingerprint[:16]}{of_step} stored in {config.run / 'pack'}")
    return pack


def training_device(config: PackConfig, base: Base) -> str:
    """The base's own; where its layers are to be sharded, the base stays in host memory and its parts go to the devices."""
    if not config.sharded:
        return str(base.model.device)
    if base.model.device.type != "cpu":
        raise ConfigError(
            f"sharded=true is for a base that does not fit one device, and this one is on {base.model.device}; load it on the "
            "CPU, from where each process takes its part, or leave sharded out."
        )
    return choose_device(config.device)


def training_facts(config: PackConfig, state: RunState) -> dict[str, Any]:
    """What the pack says of how it came to be."""
    return {"steps": sum(stage.steps for stage in config.stages), **run_facts(config, state)}
