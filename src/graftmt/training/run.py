"""A whole run from a configuration: vocabulary, tokenised text, the stages in order, the finished base. Layer 4."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from graftmt.base import Base, choose_device
from graftmt.configuration import to_mapping, to_yaml
from graftmt.data import (
    BatchMaker,
    BatchPlan,
    Corpus,
    PairSampler,
    TokenizedCorpus,
    select_directions,
    tokenize_corpus,
    unknown_rates,
)
from graftmt.data.cache import cache_key
from graftmt.errors import ConfigError, DataError
from graftmt.files import atomic_file, exclusive, read_json, write_json, write_text
from graftmt.progress import progress
from graftmt.text import Subwords, Tokenizer, train_subwords
from graftmt.training.checkpoints import Checkpoints, RunState
from graftmt.training.configuration import TrainConfig
from graftmt.training.journal import Journal
from graftmt.training.loop import Trainer, mix_seed
from graftmt.training.optimization import compile_layers
from graftmt.training.stopping import StopRequest, stop_on_signals
from graftmt.training.validation import Validator

Say = Callable[[str], None]


@dataclass
class Prepared:
    """Text made ready: what every stage draws from."""

    tokenizer: Tokenizer
    train: TokenizedCorpus
    validator: Validator | None
    data: str
    """A fingerprint of all the text the run reads."""


def train_base(
    config: TrainConfig, *, minutes: float | None = None, fresh: bool = False, quiet: bool = False, say: Say = print
) -> Path:
    """Runs what is left of a run and returns the folder of the finished base.

    A run that exists goes on exactly where it stopped; `fresh` moves it aside and starts over. `minutes` stops cleanly in time.
    """
    started = time.monotonic()
    device = choose_device(config.device)
    for stage in config.stages:
        select_directions(stage.directions, choose_languages(config), config.data.pivot)  # before hours are spent on the first
    if fresh and config.run.exists():
        aside = next(p for n in range(1, 10_000) if not (p := config.run.with_name(f"{config.run.name}.old-{n}")).exists())
        with exclusive(config.run, "the run"):
            config.run.rename(aside)
        say(f"the earlier run is kept as {aside}")
    if config.threads:
        torch.set_num_threads(config.threads)
    # Almost every batch has a shape of its own: without this the allocator keeps a block for each and runs out of them.
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    if device.startswith("cuda"):
        torch.set_float32_matmul_precision("high")  # TF32 for what is not bf16
    folder = config.run / "base"
    with exclusive(config.run, "the run"):
        prepared = prepare(config, quiet=quiet, say=say)
        left = None if minutes is None else minutes - (time.monotonic() - started) / 60
        with stop_on_signals(left) as request:
            base = _train_stages(config, prepared, request, quiet=quiet, say=say)
        mark = base.save(folder, dtype=config.store_dtype)
    say(f"base {mark[:16]} stored in {folder}")
    return folder


def prepare(config: TrainConfig, *, quiet: bool = False, say: Say = print) -> Prepared:
    """Opens the corpus, makes or loads the vocabulary, tokenises."""
    languages = choose_languages(config)
    train = Corpus.open(config.data.corpus, "train", languages)
    tokenizer = Tokenizer(_subwords(config, train, say), languages, config.model.code_placement)
    tokenized = tokenize_corpus(train, tokenizer, config.data.cache, quiet=quiet)
    rates = unknown_rates(tokenized)
    worst = ", ".join(f"{language} {100 * rate:.3f} %" for language, rate in rates.items())
    say(f"vocabulary: {len(tokenizer.vocabulary):,} rows; <unk> among training tokens: {worst}")
    digest = hashlib.sha256(" ".join(cache_key(path, tokenizer) for path in train.files.values()).encode())
    validator = None
    if config.validation.lines > 0:
        valid = Corpus.open(config.data.corpus, config.validation.split, languages)
        chosen = config.validation.directions or tuple(
            map(str, select_directions(f"{config.data.pivot}-centric", languages)[:8])
        )
        directions = select_directions(chosen, languages, config.data.pivot)
        valid_tokens = tokenize_corpus(valid, tokenizer, config.data.cache, quiet=quiet)
        validator = Validator.open(
            valid, valid_tokens, tokenizer, directions, lines=config.validation.lines, max_length=config.data.max_length
        )
        digest.update(" ".join(cache_key(path, tokenizer) for path in valid.files.values()).encode())
    return Prepared(tokenizer, tokenized, validator, digest.hexdigest())


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


def _subwords(config: TrainConfig, corpus: Corpus, say: Say) -> Subwords:
    """The run's own subwords.model: given, or trained once and kept."""
    stored, note = config.run / "subwords.model", config.run / "subwords.json"
    options = config.subwords
    # A run that has checkpoints keeps its vocabulary, and says itself if the text has changed; before the first one
    # the vocabulary is only kept where the same text and options would give it again.
    if Checkpoints(config.run / "checkpoints", 1).latest() is not None:
        return Subwords.load(stored)
    made_from = _fingerprint_of_source(config, corpus)
    if stored.is_file() and note.is_file() and read_json(note, "the vocabulary").get("made_from") == made_from:
        return Subwords.load(stored)
    if options.model is not None:
        subwords = Subwords.load(options.model)
    else:
        say(f"making a vocabulary of {options.merges:,} merges from {len(corpus.languages)} languages …")
        texts = {language: _spread(corpus, language, options.sample_lines) for language in corpus.languages}
        subwords = train_subwords(
            texts,
            merges=options.merges,
            temperature=options.temperature,
            min_character_count=options.min_character_count,
            byte_fallback=options.byte_fallback,
        )
    note.unlink(missing_ok=True)
    with atomic_file(stored) as temporary:
        temporary.write_bytes(subwords.model_bytes)
    write_json(note, {"made_from": made_from})
    return subwords


def _fingerprint_of_source(config: TrainConfig, corpus: Corpus) -> str:
    """A hash of the options and the text that a vocabulary is made from."""
    digest = hashlib.sha256(json.dumps(to_mapping(config.subwords), sort_keys=True).encode())
    paths = corpus.files if config.subwords.model is None else {"model": config.subwords.model}
    for name, path in paths.items():
        digest.update(name.encode())
        try:
            with path.open("rb") as handle:
                digest.update(hashlib.file_digest(handle, "sha256").digest())
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}; check the path.") from None
    return digest.hexdigest()


def _spread(corpus: Corpus, language: str, limit: int) -> Iterator[str]:
    """At most `limit` lines, every n-th of the file, so that a corpus sorted by source is not cut off."""
    total = sum(1 for _ in corpus.lines(language))
    return islice(corpus.lines(language), 0, None, max(1, -(-total // limit)))


def _train_stages(config: TrainConfig, prepared: Prepared, request: StopRequest, *, quiet: bool, say: Say) -> Base:
    """Every stage that is not done yet; each begins with the best weights of the one before."""
    torch.manual_seed(config.seed)
    base = Base.create(config.model.architecture(), prepared.tokenizer)
    base.model.to(choose_device(config.device))
    named = dict(base.model.named_parameters())
    checkpoints = Checkpoints(config.run / "checkpoints", config.keep_checkpoints)
    resolved = to_mapping(config)
    latest = checkpoints.latest()
    state = RunState()
    if latest is not None:
        state = checkpoints.read_state(latest, resolved, prepared.data)
        checkpoints.load_parameters(latest, named)
        say(f"going on from {latest.name}")
    checkpoints.sweep()
    write_text(config.run / "config.yaml", to_yaml(config))
    rows, rates = len(prepared.tokenizer.vocabulary), unknown_rates(prepared.train)
    write_json(config.run / "vocabulary.json", {"rows": rows, "unknown_rates": rates})
    journal = Journal(config.run, tensorboard=config.tensorboard, resume_at=(state.stage, state.step) if latest else None)
    if journal.note:
        say(journal.note)
    if config.compile:
        compile_layers(base.model)
    say(f"{sum(p.numel() for p in named.values()):,} parameters on {base.model.device}, {config.precision}")
    try:
        while True:
            stage = config.stages[state.stage]
            plan, maker = _batches(config, prepared, state.stage)
            pairs, count = plan.sampler.pairs, len(plan.sampler.directions)
            where = f"stage {state.stage + 1} of {len(config.stages)}, {stage.name}"
            say(f"{where}: {pairs:,} line pairs in {count} directions, {stage.steps:,} steps")
            with progress(stage.name, stage.steps, quiet=quiet) as report:
                trainer = Trainer(
                    config=config,
                    stage=stage,
                    model=base.model,
                    parameters=named,
                    plan=plan,
                    maker=maker,
                    validator=prepared.validator,
                    checkpoints=checkpoints,
                    journal=journal,
                    request=request,
                    report=report,
                    resolved=resolved,
                    data=prepared.data,
                    stage_seed=mix_seed(config.seed, state.stage),
                )
                trainer.run(state, latest if state.step else None)
            if prepared.validator is not None:
                checkpoints.load_parameters(checkpoints.best(state.stage), named)
            if state.stage + 1 == len(config.stages):
                break
            state = replace(
                RunState(),
                stage=state.stage + 1,
                target_tokens=state.target_tokens,
                seconds=state.seconds,
                validations=state.validations,
            )
            latest = None
    finally:
        journal.close()
    base.card = make_card(config, state)
    return base


def _batches(config: TrainConfig, prepared: Prepared, number: int) -> tuple[BatchPlan, BatchMaker]:
    stage = config.stages[number]
    sampler = PairSampler(
        prepared.train,
        select_directions(stage.directions, prepared.train.languages, config.data.pivot),
        temperature=stage.temperature,
        max_length=config.data.max_length,
        seed=mix_seed(config.seed, 1000 + number),
    )
    plan = BatchPlan(sampler, prepared.train, max_tokens=stage.batch_tokens)
    return plan, BatchMaker(prepared.train, prepared.tokenizer)


def make_card(config: TrainConfig, state: RunState) -> dict[str, Any]:
    """What the base says of itself, and of the weights it has: the best ones."""
    best = (state.stage, state.best_step)
    return {
        "seed": config.seed,
        "training_seconds": round(state.seconds, 1),
        "target_tokens": state.target_tokens,
        "stages": [f"{stage.name}: {', '.join(stage.directions)}, {stage.steps} steps" for stage in config.stages],
        "validation": next((v for v in state.validations if (v["stage"], v["step"]) == best), None),
        "config": to_mapping(config),
    }
