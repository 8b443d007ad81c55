"""Makes the models of jobs, or finds them: bases, bilingual models, re-trained ones, and packs on a resident base. Layer 7.

A model that is there is not made again. What a kill leaves is a run that goes on from its last checkpoint. Of several processes
one makes it, the one that has the claim of its job; a model that is there is read without.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from graftmt.base import Base, choose_device, read_base_document
from graftmt.configuration import to_mapping
from graftmt.data import Corpus
from graftmt.errors import ConfigError
from graftmt.experiments.claims import Claims
from graftmt.experiments.definitions import run_owner
from graftmt.experiments.jobs import Job, base_job, described, initial_of, trained, trains
from graftmt.experiments.material import Material, Teacher, augmented, shared_subwords, subset
from graftmt.experiments.profiles import Profile
from graftmt.experiments.residents import LONGEST_LOOK, Look, Resident, free_memory
from graftmt.experiments.runs import MADE, Runs, made_facts
from graftmt.experiments.settings import (
    Places,
    augmentation_of,
    base_config,
    bilingual_config,
    pack_config,
    retrain_mapping,
)
from graftmt.files import atomic_folder, read_json, write_json
from graftmt.packs import read_pack_document
from graftmt.training import Stopped, TrainConfig, retrain_base, train_base, train_pack
from graftmt.training.checkpoints import Checkpoints, way_out
from graftmt.training.configuration import RunConfig
from graftmt.training.journal import read_log
from graftmt.training.retrain_request import retrain_config
from graftmt.training.run import set_up_torch

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where the experiments are, and for how long they may go on."""

    output: Path
    corpus: Path
    bases: Mapping[int, Path] = field(default_factory=dict)
    """Number of a model → the folder of a base to take for it."""
    minutes: float | None = None
    quiet: bool = False


@dataclass(kw_only=True)
class Made:
    """A model that was trained or found, and what its result says of that."""

    folder: Path
    fingerprint: str
    parameters: int | None = None
    steps: int | None = None
    recipe: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    curve: list[dict[str, Any]] = field(default_factory=list)
    verified: dict[str, bool] = field(default_factory=dict)
    given: bool = False
    """A base that was here before; how it was trained is not ours to say."""


class Workshop:
    """What is resident, what is open, and how much time is left."""

    def __init__(self, profile: Profile, options: RunOptions, claims: Claims, say: Say) -> None:
        self.profile, self.options, self.claims = profile, options, claims
        self.say: Say = lambda text: say(f"   {text}")
        self.started = time.monotonic()
        self.device = choose_device(profile.device)
        # Before anything is translated: it decides about the last bits of fp32 on a GPU.
        set_up_torch(self.device, profile.threads)
        self.resident: Resident | None = None
        self.runs = Runs(profile, options.output, options.bases)

    # Time

    def minutes_left(self) -> float | None:
        limit = self.options.minutes
        return None if limit is None else limit - (time.monotonic() - self.started) / 60

    def check_time(self) -> None:
        """Before anything that cannot stop in between, or takes a while to begin."""
        left = self.minutes_left()
        if left is not None and left <= 0:
            raise Stopped("the time given with --minutes is over", 0)

    # Models

    def model(self, job: Job) -> Made:
        """The model of a job, trained now if it is not there."""
        kind = trains(job)
        if kind == "base":
            return self.base(trained(job).id)
        if kind == "bilingual":
            return self._bilingual(job)
        return self._pack(job) if kind == "pack" else self._retrained(job)

    def base_of(self, job: Job) -> Made:
        """The base that a job's packs or re-training start from."""
        number = initial_of(job)
        assert number is not None
        return self.base(number)

    def base(self, number: int) -> Made:
        """Given, found, or trained."""
        folder, given = self.runs.base(number), number in self.options.bases
        if not given and not self.runs.has_base(number):
            with self.claims.take(base_job(run_owner(number)).key):
                if not self.runs.has_base(number):
                    self._train_base(number)
        if changed := self.runs.base_changed(number):
            raise ConfigError(
                f"{folder} was trained with other settings ({changed}). Give those, or another --output folder; or delete it "
                "to have it trained again, and all that stands on it."
            )
        document = read_base_document(folder)
        card = document["card"]
        return Made(
            folder=folder,
            fingerprint=document["fingerprint"],
            parameters=document.get("parameters"),
            steps=card.get("steps"),
            seconds={} if given else {"training": card.get("training_seconds", 0.0)},
            curve=card.get("curve", []),
            given=given,
        )

    def _train_base(self, number: int) -> None:
        """A base that another one follows comes out of that one's run, as its first stage."""
        chain, run = self.runs.chain(number), self.runs.base_run(number)
        self.runs.begin(run, base_job(chain[-1]))
        config = base_config(self.profile, chain[-1], Places(run, self.options.corpus))
        with way_out(starting_over(run)):
            made = train_base(config, minutes=self.minutes_left(), quiet=self.options.quiet, say=self.say)
        for stage, one in enumerate(chain):
            place = self.options.output / "bases" / str(one)
            if not (place / "base.json").is_file():
                store_stage(config, made, stage, place)
                write_json(place.with_suffix(".json"), {"settings": self.runs.settings(base_job(one))})
        shutil.rmtree(run / "checkpoints", ignore_errors=True)

    def _bilingual(self, job: Job) -> Made:
        corpus, run = self.options.corpus, self.runs.run(job)
        if job.lines is not None:
            source, target = job.languages
            corpus = self._subset(job, (source, target))
        config = bilingual_config(self.profile, job, Places(run, corpus))

        def train() -> Path:
            return train_base(config, minutes=self.minutes_left(), quiet=self.options.quiet, say=self.say)

        return self._in_run(job, run, config, train)

    def _retrained(self, job: Job) -> Made:
        start = self.base_of(job)
        run = self.runs.run(job, start.fingerprint)
        config = retrain_config(retrain_mapping(self.profile, job, Places(run, self.options.corpus, base=start.folder)))

        def train() -> Path:
            self.release()  # it loads the base itself, and needs the room
            return retrain_base(config, minutes=self.minutes_left(), quiet=self.options.quiet, say=self.say).folder

        return self._in_run(job, run, config, train)

    def _in_run(self, job: Job, run: Path, config: RunConfig, train: Callable[[], Path]) -> Made:
        """A model with all its weights in a run's folder."""
        note = run / MADE
        if not self.runs.is_made(job, run):
            with self.claims.take(job.key):
                if not self.runs.is_made(job, run):
                    self._begin(run, job)
                    with way_out(starting_over(run)):
                        train()
                    write_json(note, {"curve": curve_of(run), "settings": self.runs.settings(job)})
                    shutil.rmtree(run / "checkpoints", ignore_errors=True)
        folder = run / "base"
        document = read_base_document(folder)
        return Made(
            folder=folder,
            fingerprint=document["fingerprint"],
            parameters=document.get("parameters"),
            steps=sum(stage.steps for stage in config.stages),
            seconds={"training": document["card"].get("training_seconds", 0.0)},
            curve=made_facts(note)["curve"],
        )

    def _pack(self, job: Job) -> Made:
        start = self.base_of(job)
        run = self.runs.run(job, start.fingerprint)
        folder, note = run / "pack", run / MADE
        if not self.runs.is_made(job, run):
            with self.claims.take(job.key):
                if not self.runs.is_made(job, run):
                    self._begin(run, job)
                    write_json(note, self._train_pack(job, start, run) | {"settings": self.runs.settings(job)})
                    shutil.rmtree(run / "checkpoints", ignore_errors=True)
        return Made(folder=folder, fingerprint=read_pack_document(folder)["fingerprint"], **made_facts(note))

    def _begin(self, run: Path, job: Job) -> None:
        """A run that was stopped goes on; a finished model that was made in another way is another one, and made anew."""
        if (run / MADE).is_file():
            shutil.rmtree(run)
        self.runs.begin(run, job)

    def _train_pack(self, job: Job, start: Made, run: Path) -> dict[str, Any]:
        """On the resident base, which is looked at before and after."""
        resident = self.reside(start.folder)
        material = self._material(job, resident)
        subwords = self._subwords(job) if job.lines is None else None
        places = Places(run, self.options.corpus, partners=material.partners, subwords=subwords)
        before = self._look(resident)
        with way_out(starting_over(run)):
            pack = train_pack(
                pack_config(self.profile, job, places),
                resident.trainer,
                material.train,
                self.valid_corpus(),
                minutes=self.minutes_left(),
                quiet=self.options.quiet,
                say=self.say,
            )
        return {
            "recipe": str(pack.recipe),
            "parameters": pack.size,
            "steps": pack.card["steps"],
            "seconds": {"training": pack.card["training_seconds"], "augmentation": material.seconds},
            "curve": curve_of(run),
            "verified": resident.verified(before, self._look(resident)),
        }

    # Text

    def _material(self, job: Job, resident: Resident) -> Material:
        """The text of a pack and the languages that it is paired with."""
        profile, data, new = self.profile, described(job).data, job.languages
        if job.lines is not None:
            pair = (new[0], profile.pivot)
            return Material(Corpus.open(self._subset(job, pair), "train", pair), (profile.pivot,))
        corpus = self.options.corpus if data.filtered else profile.corpus.unfiltered
        assert corpus is not None
        spec = augmentation_of(job)
        if spec is None:
            partners = profile.initial if data.view == "multi-aligned" else (profile.pivot,)
            return Material(Corpus.open(corpus, "train", (*new, *partners)), partners)
        self.check_time()
        return augmented(
            Corpus.open(corpus, "train", (*new, *profile.initial)),
            spec,
            new,
            resident.folder,
            self._teacher(resident),
            self.options.output / "text" / ("filtered" if data.filtered else "unfiltered"),
            seed=job.seed,
            claims=self.claims,
            minutes=self.minutes_left(),
            quiet=self.options.quiet,
            say=self.say,
        )

    def _teacher(self, resident: Resident) -> Teacher:
        """The base itself, or the model that the profile names."""
        options = self.profile.augmentation
        folder, fingerprint, own = resident.folder, resident.fingerprint, True
        if options.teacher is not None:
            found = self.base(options.teacher)
            own = found.fingerprint == fingerprint
            folder, fingerprint = found.folder, found.fingerprint
        dtype = self.profile.packs.base_dtype
        return Teacher(folder, fingerprint, resident.trainer if own else None, dtype, options.beam, self.device)

    def _subset(self, job: Job, pair: tuple[str, str]) -> Path:
        assert job.lines is not None
        folder = self.options.output / "text" / "sizes"
        return subset(self.train_corpus(), self.valid_corpus(), pair, job.lines, folder, seed=job.seed, claims=self.claims)

    def _subwords(self, job: Job) -> Path:
        train = Corpus.open(self.options.corpus, "train", job.languages)
        folder = self.options.output / "text" / "subwords"
        return shared_subwords(train, self.profile.packs.subwords, folder, self.claims, self.say)

    def train_corpus(self) -> Corpus:
        return Corpus.open(self.options.corpus, "train")

    def valid_corpus(self) -> Corpus:
        return Corpus.open(self.options.corpus, self.profile.packs.validation.split)

    def test_corpus(self, name: str) -> Corpus:
        one = self.profile.evaluation.sets[name]
        return Corpus.open(one.corpus or self.options.corpus, one.split)

    # The base in memory

    def reside(self, folder: Path) -> Resident:
        """The base in memory; another one is let go first."""
        if self.resident is None or self.resident.folder != folder:
            self.release()
            self.resident = Resident.load(folder, device=self.device, dtype=self.profile.packs.base_dtype)
        return self.resident

    def release(self) -> None:
        self.resident = None
        free_memory()

    def _look(self, resident: Resident) -> Look:
        return resident.look(self._looked_at, min(LONGEST_LOOK, self.profile.evaluation.max_length))

    @cached_property
    def _looked_at(self) -> dict[str, list[str]]:
        """Lines that a base is looked at with."""
        corpus = self.test_corpus(next(iter(self.profile.evaluation.sets)))
        present = [language for language in self.profile.initial if language in corpus.languages][:3]
        return {language: [one for one in lines if one.strip()] for language, lines in corpus.texts(present, 20).items()}


def starting_over(run: Path) -> str:
    """Here runs have no options of their own."""
    return f"delete {run} to have it start over"


def store_stage(config: TrainConfig, made: Path, stage: int, folder: Path) -> None:
    """The base after a stage of a finished run, as a folder of its own; after the last one it is the run's base."""
    base = Base.load(made)
    steps = [one.steps for one in config.stages]
    card = {
        **base.card,
        "steps": sum(steps[: stage + 1]),
        "curve": curve_of(config.run, stages=stage + 1),
        "training_seconds": round(base.card["training_seconds"] * sum(steps[: stage + 1]) / sum(steps), 1),
    }
    if stage + 1 == len(steps):
        with atomic_folder(folder) as temporary:
            shutil.copytree(made, temporary, dirs_exist_ok=True)
            write_json(temporary / "base.json", {**read_json(made / "base.json", "the base"), "card": card})
        return
    base = Base.create(base.model.config, base.tokenizer)
    checkpoints = Checkpoints(config.run / "checkpoints", 1, TrainConfig)
    checkpoints.load_parameters(checkpoints.best(stage), dict(base.model.named_parameters()))
    card |= {
        "stages": card["stages"][: stage + 1],
        "validation": read_json(checkpoints.best(stage) / "best.json", "the best checkpoint"),
        "config": to_mapping(replace(config, stages=config.stages[: stage + 1])),
    }
    base.save(folder, dtype=config.store_dtype, card=card)


def curve_of(run: Path, stages: int | None = None) -> list[dict[str, Any]]:
    """chrF of each validated direction by update, over all stages in a row; BLEU beside it."""
    if not (run / "log.jsonl").is_file():
        return []
    points: list[dict[str, Any]] = []
    before = last = stage = 0
    for event in read_log(run / "log.jsonl"):
        if event["stage"] != stage:
            before, stage = before + last, event["stage"]
        last = event["step"]
        if event["event"] == "validation" and (stages is None or stage < stages):
            chrf, bleu = (
                {key.removesuffix(f"/{metric}"): round(value, 2) for key, value in event.items() if key.endswith(f"/{metric}")}
                for metric in ("chrf", "bleu")
            )
            points.append({"step": before + event["step"], **chrf, "bleu": bleu})
    return points
