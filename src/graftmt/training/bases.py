"""Training a base from a configuration: shared vocabulary, tokenised text, the stages, the finished folder. Layer 4."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any

import torch

from graftmt.base import Base, check_base_place
from graftmt.data import Corpus, select_directions, tokenize_corpus, unknown_rates
from graftmt.devices import choose_device
from graftmt.documents import write_json
from graftmt.errors import ConfigError
from graftmt.places import RUNS, check_place
from graftmt.progress import say
from graftmt.text import TextCodec
from graftmt.training.checkpoints import RunState
from graftmt.training.journal import OnStep
from graftmt.training.run_configuration import BASE_MERGES, RunConfig, TrainConfig
from graftmt.training.run_folder import held_run
from graftmt.training.run_text import report_unknown, run_subwords
from graftmt.training.sharding import make_whole, shard
from graftmt.training.stages import run_facts, run_stages, set_up_torch
from graftmt.training.stopping import stop_on_signals
from graftmt.training.training_job import Prepared, WholeModel
from graftmt.training.validation import Validator


def train_base(
    config: TrainConfig,
    *,
    minutes: float | None = None,
    fresh: bool = False,
    on_step: OnStep | None = None,
) -> Path:
    """Runs what is left of a run and returns the folder of the finished base.

    A run that exists resumes exactly where it stopped; `fresh` moves it aside and starts over. `minutes` stops cleanly in time.
    """
    started = time.monotonic()
    device = choose_device(config.device)
    languages = choose_languages(config)
    # All of them before hours are spent on the first.
    directions = [select_directions(stage.directions, languages, config.data.pivot) for stage in config.stages]
    set_up_torch(device, config.threads)
    folder = config.run / "base"
    with held_run(config.run, device, of="base", fresh=fresh, sharded=config.sharded) as team:
        check_base_place(folder)  # before hours are spent on what goes there
        with team.first_alone():
            prepared = prepare(config)
        assert isinstance(prepared.codec, TextCodec)
        tokenizer = prepared.codec.base
        left = None if minutes is None else minutes - (time.monotonic() - started) / 60
        torch.manual_seed(config.seed)
        base = Base.create(config.model.architecture(), tokenizer)
        if team.sharded:
            shard(base.model, device)
        else:
            base.model.to(device)
        if team.first:
            facts = {"rows": len(tokenizer.side("source")), "unknown_rates": unknown_rates(prepared.train)}
            write_json(config.run / "vocabulary.json", facts)
        with stop_on_signals(left) as request:
            state = run_stages(WholeModel(config, prepared, base.model, directions), request, team, on_step=on_step)
        if team.sharded:
            make_whole(base.model)
        if team.first:
            mark = base.save(folder, dtype=config.store_dtype, card=make_card(config, state))
            say(f"base {mark[:16]} stored in {folder}")
    return folder


def prepare(config: TrainConfig) -> Prepared:
    """Opens the corpus, makes or loads the vocabulary, tokenises."""
    languages = choose_languages(config)
    train = Corpus.open(config.data.corpus, "train", languages)
    # What is missing is said before a vocabulary is made.
    valid = Corpus.open(config.data.corpus, config.validation.split, languages) if config.validation.lines else None
    text = run_subwords(config.run, config.subwords, train, default=BASE_MERGES)
    tokenizer = text.with_codes(languages, config.model.code_placement)
    codec = TextCodec(tokenizer)
    tokenized = tokenize_corpus(train, tokenizer, config.data.cache)
    report_unknown(tokenized, len(tokenizer))
    digest = hashlib.sha256(tokenized.content.encode())
    validator = None
    if valid is not None:
        chosen = config.validation.directions or tuple(
            map(str, select_directions(f"{config.data.pivot}-centric", languages)[:8])
        )
        directions = select_directions(chosen, languages, config.data.pivot)
        valid_tokens = tokenize_corpus(valid, tokenizer, config.data.cache)
        validator = Validator.open(
            *(valid, valid_tokens, codec, directions),
            lines=config.validation.lines,
            translate_lines=config.validation.translate_lines,
            max_length=config.data.max_length,
        )
        digest.update(valid_tokens.content.encode())
    return Prepared(codec, tokenized, validator, digest.hexdigest(), config.data.max_length)


def check_files(config: TrainConfig) -> None:
    """The corpus has the files that the run needs, for all languages and directions; what is in them is not read."""
    check_place(config.run, RUNS["base"])
    languages = choose_languages(config)
    options = config.validation
    validated = [options.directions] if options.lines and options.directions else []
    for directions in (*(stage.directions for stage in config.stages), *validated):
        select_directions(directions, languages, config.data.pivot)
    if options.lines:
        Corpus.open(config.data.corpus, options.split, languages)


def choose_languages(config: TrainConfig) -> list[str]:
    """The corpus's languages less the excluded ones, or those that were named."""
    present = Corpus.open(config.data.corpus, "train", config.data.languages).languages
    unknown = [language for language in config.data.exclude if language not in present]
    if unknown:
        raise ConfigError(
            f"data.exclude names {', '.join(unknown)}, which {config.data.corpus} does not have: {', '.join(present)}."
        )
    chosen = [language for language in present if language not in config.data.exclude]
    if len(chosen) < 2:
        raise ConfigError(f"{len(chosen)} language is left of {config.data.corpus}; translation needs at least 2.")
    return chosen


def make_card(config: RunConfig, state: RunState) -> dict[str, Any]:
    """What the base says of itself, and of the weights it has: the best ones."""
    stages = [f"{stage.name}: {', '.join(stage.directions)}, {stage.steps} steps" for stage in config.stages]
    return {"stages": stages, **run_facts(config, state)}
