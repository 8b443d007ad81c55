"""From a profile and a job to the configuration of its training, and what of it decides the result. Layer 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from graftmt.augmentation.line_choice import Spec
from graftmt.configuration import apply_overrides, from_mapping, to_mapping
from graftmt.errors import ConfigError
from graftmt.experiments.definitions import chain_of, models, recipe_of, run_owner
from graftmt.experiments.jobs import Job, described, trained, trains
from graftmt.experiments.profiles import Profile, TrainingSection
from graftmt.packs.recipe import Recipe
from graftmt.training import PackConfig, PackDataConfig, RetrainConfig, StageConfig, TrainConfig
from graftmt.training.pack_job import with_scoped_stage
from graftmt.training.run_configuration import MAY_CHANGE, DataConfig, RetrainDataConfig, RunConfig

Config = TypeVar("Config", bound=RunConfig)

MOST_STEPS_BETWEEN_CHECKPOINTS = 1000
DECIDES_NOTHING = ("log_every", "keep_checkpoints", "threads")
ADDED_LATER: dict[str, Any] = {"validation.translate_lines": None}
"""Options, such as stages.NAME for one of a stage → the value with which trainings are as they were without it."""


@dataclass(frozen=True)
class Places:
    """Where a job's text comes from and where its run goes: all of a configuration that is no choice."""

    run: Path
    corpus: Path
    base: Path | None = None
    """The folder of the base to re-train."""
    partners: tuple[str, ...] = ()
    """Of a pack. Default: the pivot."""
    subwords: Path | None = None
    """A vocabulary that several packs share."""
    proxy: str | None = None
    """Whose code `code:proxy` is, where the profile does not say."""


def augmentation_of(job: Job) -> Spec | None:
    """Text with the base's other languages, chosen or translated; none where the corpus serves as it is."""
    data = described(job).data
    if data.lines_per_language is not None:
        return Spec(lines=data.lines_per_language, back_translated=data.back_translated)
    return Spec(back_translated=True) if data.view == "multi-aligned" and data.back_translated else None


def data_words(job: Job, profile: Profile) -> str:
    """What a job's model is trained on, for people: `el-en + 1k lines per lang (BT)`."""
    if job.model is None:
        return ""
    data, new = described(job).data, "+".join(job.languages)
    kind = trains(job)
    words: str
    if kind in ("base", "retrain", "substitute"):
        words = data.view
    elif kind == "bilingual":
        words = "-".join(job.languages)
    elif data.view == "multi-aligned":
        words = f"{new}-* (multi-aligned{', BT' if data.back_translated else ''})"
    else:
        words = f"{new}-{profile.pivot}"
        if data.lines_per_language is not None:
            words += f" + {Spec(lines=data.lines_per_language, back_translated=data.back_translated).title}"
    if job.lines is not None:
        words += f", {job.lines:,} lines"
    return words if data.filtered else f"{words}, without language ID"


def base_config(profile: Profile, number: int, places: Places) -> TrainConfig:
    """The base `number`: a stage for each model from the first to it, as the run has them in which it is a stage.

    So (3) is the same, by itself or on the way to (4).
    """
    section, owner = profile.base, run_owner(number)
    views = [models()[one].data.view for one in chain_of(owner)]
    stages = tuple(replace(stage, directions=(view,)) for stage, view in zip(section.stages, views, strict=False))
    config = TrainConfig(
        data=DataConfig(corpus=places.corpus, languages=profile.initial, pivot=profile.pivot, max_length=section.max_length),
        model=section.model,
        subwords=section.subwords,
        **_common(profile, section, stages, places, profile.seed),
    )
    config = _changed(config, profile, owner)
    return replace(config, stages=config.stages[: len(chain_of(number))])


def bilingual_config(profile: Profile, job: Job, places: Places) -> TrainConfig:
    section, direction = profile.bilingual, "-".join(job.languages)
    stages = tuple(_for_size(replace(stage, directions=(direction,)), profile, job) for stage in section.stages)
    section = replace(section, stages=stages, validation=replace(section.validation, directions=(direction,)))
    assert job.model is not None
    config = TrainConfig(
        data=DataConfig(corpus=places.corpus, languages=job.languages, pivot=profile.pivot, max_length=section.max_length),
        model=section.model,
        subwords=section.subwords,
        **_common(profile, section, stages, places, job.seed),
    )
    return _changed(config, profile, job.model)


def retrain_mapping(profile: Profile, job: Job, places: Places) -> dict[str, Any]:
    """As `training.retrain_request.retrain_config` takes it: it adds how the base's vocabulary was made."""
    method: Literal["retrain", "substitute"] = "substitute" if trains(job) == "substitute" else "retrain"
    section = profile.substitute if method == "substitute" else profile.retrain
    model, asked = described(job), trained(job)
    view = "english-centric" if model.data.view == "english-centric" else "multi-parallel"
    stages = tuple(replace(stage, directions=(view,)) for stage in section.stages)
    if asked.updates is not None:
        stages = (*stages[:-1], replace(stages[-1], steps=min(asked.updates, stages[-1].steps)))
    assert places.base is not None and job.model is not None
    config = RetrainConfig(
        base=places.base,
        new=job.languages,
        method=method,
        data=RetrainDataConfig(corpus=places.corpus, pivot=profile.pivot, max_length=section.max_length),
        new_directions=section.new_directions,
        **_common(profile, section, stages, places, job.seed),
    )
    changed = _changed(config, profile, job.model)
    if changed.subwords != config.subwords:
        raise ConfigError(f"changes.{job.model}: re-training makes its vocabulary as its base's was made; leave subwords out.")
    mapping: dict[str, Any] = to_mapping(changed)
    del mapping["subwords"]
    return mapping


def pack_config(profile: Profile, job: Job, places: Places) -> PackConfig:
    section, model, side = profile.packs, described(job), described(job).side
    assert job.model is not None and side is not None
    stage = section.source if side == "source" else section.target
    stage = _for_size(replace(stage, directions=(), steps=_pack_steps(profile, job, stage.steps)), profile, job)
    if model.temperature is not None:
        stage = replace(stage, temperature=model.temperature)
    steps = stage.steps
    new = job.languages[0]
    pairs = [(new, other) for other in (profile.pivot, *section.watch)]
    trained_direction, *watched = ("-".join(pair if side == "source" else pair[::-1]) for pair in pairs)
    validation = replace(
        section.validation,
        every=max(1, steps // section.validations),
        directions=section.validation.directions or (trained_direction,),
        watch=section.validation.watch if section.validation.watch is not None else tuple(watched),
    )
    recipe = recipe_of(model, job.plus, profile.proxies.get(new, places.proxy))
    partners = places.partners or (profile.pivot,)
    # Directions with a few lines count as others do, but for parts that are to be for trained directions only.
    scoped = model.data.lines_per_language is not None and Recipe.parse(recipe).scoped
    few = tuple(name for name in partners if name != profile.pivot) if scoped else ()
    subwords = section.subwords if places.subwords is None else replace(section.subwords, model=places.subwords)
    config = PackConfig(
        run=places.run,
        languages=job.languages,
        side=side,
        recipe=recipe,
        data=PackDataConfig(partners=partners, few=few, max_length=section.max_length),
        subwords=subwords,
        stages=(stage,),
        validation=validation,
        seed=job.seed,
        device=profile.device,
        threads=profile.threads,
        precision=section.precision,
        compile=section.compile,
        **_saving((stage,)),
    )
    # Here rather than by the training itself, so that results and `changes` know of the stage that `@trained` adds.
    config = with_scoped_stage(config)
    if model.second_stage is not None:
        first, second = config.stages
        config = replace(config, stages=(first, replace(second, steps=max(1, round(model.second_stage * first.steps)))))
    return _changed(config, profile, job.model)


def _pack_steps(profile: Profile, job: Job, steps: int) -> int:
    """As many epochs of a job's text as `steps` are of the first new language's with the pivot."""
    section, data, new = profile.packs, described(job).data, job.languages[0]
    if data.view == "multi-aligned":
        pairs, steps = section.multi_aligned_pairs, section.multi_aligned_steps or steps
        added = 0
    elif len(job.languages) > 1:
        return section.several_steps or steps
    else:
        pairs = section.pairs
        added = (data.lines_per_language or 0) * (len(profile.initial) - 1)
    return round(steps * (pairs[new] + added) / pairs[profile.new[0]]) if pairs else steps


def _for_size(stage: StageConfig, profile: Profile, job: Job) -> StageConfig:
    """With fewer updates where the job trains on a small part of the text."""
    steps = min(stage.steps, profile.size_steps.get(str(job.lines), stage.steps))
    return stage.with_steps(steps) if steps < stage.steps else stage


def _common(
    profile: Profile, section: TrainingSection, stages: tuple[StageConfig, ...], places: Places, seed: int
) -> dict[str, Any]:
    every = max(1, max(stage.steps for stage in section.stages) // section.validations)
    return {
        "run": places.run,
        "stages": stages,
        "validation": replace(section.validation, every=every),
        "seed": seed,
        "device": profile.device,
        "threads": profile.threads,
        "precision": section.precision,
        "compile": section.compile,
        "store_dtype": section.store_dtype,
        **_saving(stages),
    }


def _saving(stages: Sequence[StageConfig]) -> dict[str, Any]:
    longest = max(stage.steps for stage in stages)
    return {
        "checkpoint_every": min(MOST_STEPS_BETWEEN_CHECKPOINTS, max(1, longest // 2)),
        "keep_checkpoints": 1,
        "tensorboard": False,
    }


def _changed(config: Config, profile: Profile, number: int) -> Config:
    """With the changes that the profile has for this model."""
    changes = profile.changes.get(str(number), ())
    return from_mapping(type(config), apply_overrides(to_mapping(config), changes)) if changes else config


def deciding(config: Mapping[str, Any]) -> dict[str, Any]:
    """Of a configuration in its plain form, what decides the model: without places, devices and the like.

    A new option changes the addresses of all jobs that have it; list it in `ADDED_LATER` with the value that changes nothing.
    """
    dropped = {*MAY_CHANGE, *DECIDES_NOTHING} - {"store_dtype"}

    def decides(path: str, value: Any) -> bool:
        return path not in dropped and not (path in ADDED_LATER and ADDED_LATER[path] == value)

    def without(value: Any, path: str) -> Any:
        if isinstance(value, list):
            return [without(one, path) for one in value]
        if not isinstance(value, Mapping):
            return value
        return {key: without(one, f"{path}{key}.") for key, one in value.items() if decides(f"{path}{key}", one)}

    found: dict[str, Any] = without(config, "")
    return found


def training_settings(profile: Profile, job: Job, proxy: str | None = None) -> dict[str, Any]:
    """What the training of a job's model depends on, besides text and base. `proxy`: as that of `Places`."""
    nowhere = Places(run=Path("run"), corpus=Path("corpus"), base=Path("base"), proxy=proxy)
    kind = trains(job)
    assert job.model is not None
    if kind == "base":
        config: dict[str, Any] = to_mapping(base_config(profile, trained(job).id, nowhere))
    elif kind == "bilingual":
        config = to_mapping(bilingual_config(profile, job, nowhere))
    elif kind == "pack":
        config = to_mapping(pack_config(profile, job, nowhere))
        config["data"].pop("partners")
        config["base_dtype"] = profile.packs.base_dtype
        config["augmentation"] = (
            {"spec": str(spec), **to_mapping(profile.augmentation)} if (spec := augmentation_of(job)) else None
        )
    else:
        config = retrain_mapping(profile, job, nowhere)
    return deciding(config)


def set_settings(profile: Profile, name: str) -> dict[str, Any]:
    """What scores on a test set depend on, besides its lines and the model."""
    options, one = profile.evaluation, profile.evaluation.sets[name]
    later = {"between_lines": one.between_lines, "checkpoint": None if one.checkpoint == "best" else one.checkpoint}
    return {
        **{"split": one.split, "lines": one.lines, "tokenize": one.tokenize},
        **{"beam": options.beam, "length_penalty": options.length_penalty, "max_length": options.max_length},
        **{name: value for name, value in later.items() if value is not None},
    }
