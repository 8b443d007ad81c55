"""What every run does: a folder, a vocabulary, the stages in order, each from the best of the one before. Layer 4."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from graftmt.checked import file_mark, read_checked_json, write_checked_json
from graftmt.configuration import to_mapping, to_yaml
from graftmt.data import (
    BatchMaker,
    BatchPlan,
    Corpus,
    Direction,
    PackedMaker,
    PackedPlan,
    PairSampler,
    TokenizedCorpus,
    unknown_rates,
)
from graftmt.errors import ConfigError, DataError, GraftError
from graftmt.files import atomic_file, exclusive, sweep, write_text
from graftmt.model import Transformer
from graftmt.model.known_parts import all_known
from graftmt.places import RUNS, begin_run, check_place
from graftmt.progress import progress, say, silence
from graftmt.reading import open_regular
from graftmt.text import Codec, SharedText
from graftmt.text.kinds import text_kind
from graftmt.text.kinds.sentencepiece import KIND as PLAIN
from graftmt.text.tokenizer import KIND as OURS
from graftmt.training.checkpoints import CannotGoOn, Checkpoints
from graftmt.training.distribution import Processes, processes
from graftmt.training.journal import Journal, OnStep
from graftmt.training.loop import Trainer, mix_seed
from graftmt.training.optimization import compile_layers
from graftmt.training.run_configuration import RunConfig, StageConfig, SubwordConfig
from graftmt.training.run_state import RunState
from graftmt.training.settling import settle
from graftmt.training.sharding import held_bytes, whole_bytes
from graftmt.training.stopping import Stopped, StopRequest
from graftmt.training.validation import Validator

Run = TypeVar("Run", bound=RunConfig)


@dataclass
class Prepared:
    """Text made ready: what every stage draws from."""

    codec: Codec
    train: TokenizedCorpus
    validator: Validator | None
    data: str
    """A fingerprint of all the text the run reads, and of whatever else it takes as given."""
    max_length: int
    marks: Mapping[str, str] = field(default_factory=dict)
    """What it takes as given besides text, by name: the base, the pack to continue."""
    fixed: Mapping[Direction, float] = field(default_factory=dict)
    """Directions with a probability of their own, in the stages that have them …"""
    factors: Mapping[Direction, float] = field(default_factory=dict)
    """… and directions drawn so many times as often as temperature alone would."""


def move_aside(run: Path) -> None:
    """--fresh: an earlier run is kept under another name."""
    if run.exists():
        aside = next(p for n in range(1, 10_000) if not (p := run.with_name(f"{run.name}.old-{n}")).exists())
        with exclusive(run, "the run"):
            run.rename(aside)
        say(f"the earlier run is kept as {aside}")


@contextmanager
def held_run(run: Path, device: str, *, of: str, fresh: bool, sharded: bool = False) -> Iterator[Processes]:
    """The run's folder for the processes that train together and no other; of these, the first one alone speaks.

    `of`: what the run makes, which is a kind of folder in `places.RUNS`.
    """
    check_place(run, RUNS[of])
    with processes(device, sharded=sharded) as team, nullcontext() if team.first else silence():
        if fresh and team.first:
            move_aside(run)
        team.wait()
        with exclusive(run, "the run", stays=True) if team.first else nullcontext():
            if team.first:
                sweep(run)
                begin_run(run, of)
                settle(Checkpoints(run / "checkpoints", 1))
            team.wait()
            yield team


def set_up_torch(device: str, threads: int) -> None:
    """What a training process wants of torch, once."""
    if threads:
        torch.set_num_threads(threads)
    # Almost every batch has a shape of its own: without this the allocator keeps a block for each and runs out of them.
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    if device.startswith("cuda"):
        if ":" in device:
            torch.cuda.set_device(device)  # kernels of ours and recorded steps go to the current one
        torch.set_float32_matmul_precision("high")  # TF32 for what is not bf16


KIND_OF_CASING = {"inline": OURS, "none": PLAIN}
"""The kind of text that a vocabulary is of."""


def subwords_file(run: Path, options: SubwordConfig) -> Path:
    """Where a run keeps the subword model that was made for it."""
    return run / text_kind(KIND_OF_CASING[options.casing]).file_names({})[0]


def run_subwords(run: Path, options: SubwordConfig, corpus: Corpus) -> SharedText:
    """The run's own text, without codes: given, or learned once and kept. `casing` says of which kind it is."""
    kind, stored, note = text_kind(KIND_OF_CASING[options.casing]), subwords_file(run, options), run / "subwords.json"
    # A run that has checkpoints keeps its vocabulary, and says itself if the text has changed; before the first one
    # the vocabulary is only kept where the same text and options would give it again.
    if Checkpoints(run / "checkpoints", 1).latest() is not None:
        if _noted(note).get("model", mark := _checksum(stored)) != mark:
            raise CannotGoOn(f"the run's vocabulary, {stored}, was changed or damaged. Restore it from a copy")
        return kind.open_file(stored)
    made_from = _fingerprint_of_source(options, corpus)
    if _noted(note) in ({"made_from": made_from, "model": _checksum(stored)}, {"made_from": made_from}) and stored.is_file():
        return kind.open_file(stored)
    if options.model is not None:
        text = kind.open_file(options.model)
    else:
        languages = corpus.languages
        named = ", ".join(languages) if len(languages) < 5 else f"{len(languages)} languages"
        size = f"{options.merges:,} merges" if options.pieces is None else f"{options.pieces:,} pieces"
        say(f"making a vocabulary of {size} from {named} …")
        sizes = {language: sum(1 for _ in _filled(corpus, language)) for language in languages}
        text = kind.learn(
            {  # every n-th line, so that a corpus sorted by source is not cut off
                language: islice(_filled(corpus, language), 0, None, max(1, -(-size // options.sample_lines)))
                for language, size in sizes.items()
            },
            sizes=sizes,
            merges=options.merges,
            temperature=options.temperature,
            min_character_count=options.min_character_count,
            byte_fallback=options.byte_fallback,
            pieces=options.pieces,
        )
    note.unlink(missing_ok=True)
    with atomic_file(stored) as temporary:
        temporary.write_bytes(text.files()[stored.name])
    write_checked_json(note, {"made_from": made_from, "model": _checksum(stored)})
    return text


def _noted(note: Path) -> dict[str, Any]:
    """What subwords.json says of the vocabulary; nothing if it is missing or damaged. Earlier versions noted no checksum."""
    with suppress(GraftError):
        return read_checked_json(note, "the vocabulary")
    return {}


def _checksum(path: Path) -> str | None:
    with suppress(OSError):
        return file_mark(path)
    return None


def _fingerprint_of_source(options: SubwordConfig, corpus: Corpus) -> str:
    """A hash of the options and the text that a vocabulary is made from."""
    digest = hashlib.sha256(json.dumps(to_mapping(options), sort_keys=True).encode())
    paths = corpus.files if options.model is None else {"model": options.model}
    for name, path in paths.items():
        digest.update(name.encode())
        try:
            with open_regular(path) as handle:
                digest.update(hashlib.file_digest(handle, "sha256").digest())
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}; check the path.") from None
    return digest.hexdigest()


def _filled(corpus: Corpus, language: str) -> Iterator[str]:
    return (line for line in corpus.lines(language) if line.strip())


def run_stages(
    config: RunConfig,
    prepared: Prepared,
    model: Transformer,
    parameters: Mapping[str, nn.Parameter],
    directions_of: Callable[[StageConfig], list[Direction]],
    request: StopRequest,
    team: Processes,
    *,
    trained_in: Callable[[int], Collection[str]] | None = None,
    model_of: Callable[[int], Transformer] | None = None,
    keep_start: bool = False,
    on_step: OnStep | None = None,
) -> RunState:
    """Trains `parameters` of `model` through every stage that is not done yet; they end as the best of the last stage.

    `trained_in`: the names of those that a stage trains; all of them unless given. `model_of`: the model that a stage trains
    them in, where that is not always `model`. `keep_start`: what a later stage starts from is the first candidate for its best.
    """
    checkpoints = Checkpoints(config.run / "checkpoints", config.keep_checkpoints, type(config), writes=team.first)
    if team.first:
        checkpoints.sweep()
    team.wait()
    resolved = to_mapping(config)
    latest = checkpoints.latest()
    state = RunState()
    if latest is not None:
        state = checkpoints.read_state(latest, resolved, prepared.data, prepared.marks)
        checkpoints.adopt_best(state, config.validation)
        checkpoints.load_parameters(latest, parameters)
        say(f"going on from {latest.name}")
    team.wait()  # all have read what the first may now replace
    if team.first:
        write_text(config.run / "config.yaml", to_yaml(config))
    resume_at = (state.stage, state.step) if latest else None
    journal = Journal(config.run, tensorboard=config.tensorboard, resume_at=resume_at, silent=not team.first, on_step=on_step)
    if journal.note:
        say(journal.note)
    models = [model if model_of is None else model_of(number) for number in range(len(config.stages))]
    config = padded_where_unknown(config, *models)
    if config.compile:
        for each in dict.fromkeys(models):
            compile_layers(each, one_shape=all(stage.packed for stage in config.stages))
    trained, total = sum(p.numel() for p in parameters.values()), sum(p.numel() for p in model.parameters())
    what = f"{total:,} parameters" if trained == total else f"{trained:,} of {total:,} parameters train"
    together = f", {team.size} processes" if team.size > 1 else ""
    if team.sharded:
        together += f", of which this one holds {held_bytes(model):,} of {whole_bytes(model):,} bytes"
    say(f"{what} on {model.device}, {config.precision}{together}")
    try:
        while True:
            stage, model = config.stages[state.stage], models[state.stage]
            names = parameters.keys() if trained_in is None else trained_in(state.stage)
            for name, parameter in parameters.items():
                parameter.requires_grad_(name in names)
            plan = batch_plan(config, prepared, state.stage, directions_of(stage))
            pairs, count = plan.sampler.pairs, len(plan.sampler.directions)
            where = f"stage {state.stage + 1} of {len(config.stages)}, {stage.name}: " if len(config.stages) > 1 else ""
            say(f"{where}{pairs:,} line pairs in {count} direction{'s' * (count > 1)}, {stage.steps:,} steps")
            with progress(stage.name, stage.steps) as report:
                trainer = Trainer(
                    config=config,
                    stage=stage,
                    model=model,
                    parameters=parameters,
                    plan=plan,
                    maker=batch_maker(config, prepared, plan, model, team),
                    validator=prepared.validator,
                    checkpoints=checkpoints,
                    journal=journal,
                    request=request,
                    report=report,
                    resolved=resolved,
                    data=prepared.data,
                    marks=prepared.marks,
                    stage_seed=mix_seed(config.seed, state.stage),
                    team=team,
                )
                trainer.run(state, latest if state.step else None)
            if prepared.validator is not None:
                checkpoints.load_parameters(checkpoints.best(state.stage), parameters)
            if state.stage + 1 == len(config.stages):
                return state
            finished = state
            state = replace(
                RunState(),
                stage=state.stage + 1,
                target_tokens=state.target_tokens,
                seconds=state.seconds,
                validations=state.validations,
            )
            if keep_start and prepared.validator is not None:
                assert finished.best_validation is not None, "the last step of a stage is validated"
                start = {**finished.best_validation, "stage": state.stage, "step": 0}
                state = replace(state, best_score=finished.best_score, validations=[*state.validations, start])
                checkpoints.save_best(state.stage, parameters, start)
            latest = None
    except Stopped as stop:
        before = sum(stage.steps for stage in config.stages[: state.stage])
        steps = sum(stage.steps for stage in config.stages)
        stop.standing = {"run": str(config.run), "step": before + state.step, "steps": steps}
        raise
    finally:
        journal.close()
        for parameter in parameters.values():
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


def report_unknown(corpus: TokenizedCorpus, rows: int) -> None:
    rates = ", ".join(f"{language} {100 * rate:.3f} %" for language, rate in unknown_rates(corpus).items())
    say(f"vocabulary: {rows:,} rows; <unk> among training tokens: {rates}")
