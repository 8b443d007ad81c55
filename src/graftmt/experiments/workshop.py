"""Makes the models of jobs, or finds them: bases, bilingual models, re-trained ones, and packs on a resident base. Layer 7.

A model that is there is not made again. What a kill leaves is a run that resumes from its last checkpoint. Of several processes
one makes it, the one that has the lock of its job; a model that is there is read without.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from graftmt.base import Base, read_base_document
from graftmt.data import Corpus
from graftmt.devices import choose_device
from graftmt.documents import write_json
from graftmt.errors import ConfigError, DataError
from graftmt.experiments.addresses import Addresses
from graftmt.experiments.base_stages import curve_of, store_stage
from graftmt.experiments.definitions import PROXY
from graftmt.experiments.job_locks import JobLocks
from graftmt.experiments.job_settings import (
    Places,
    augmentation_of,
    base_config,
    bilingual_config,
    pack_config,
    retrain_mapping,
)
from graftmt.experiments.jobs import Job, base_job, described, initial_of, name_proxy, no_oracle, oracle_of, trained, trains
from graftmt.experiments.made import MADE, Made, codes_of, made_facts
from graftmt.experiments.material import Material, Teacher, augmented, shared_subwords, subset
from graftmt.experiments.residents import LONGEST_LOOK, Look, Resident, free_memory
from graftmt.packs import load_pack, read_pack_document
from graftmt.training import Stopped, retrain_base, train_base, train_pack
from graftmt.training.checkpoints import Checkpoints, way_out
from graftmt.training.retrain_request import retrain_config
from graftmt.training.run_configuration import RunConfig
from graftmt.training.stages import set_up_torch

LAST = "pack-last"
"""In a pack's run: the pack with the weights of the last checkpoint."""


class Workshop:
    """What is resident, what is open, and how much time is left."""

    def __init__(self, addresses: Addresses, locks: JobLocks, *, minutes: float | None = None) -> None:
        """`minutes`: for how long it may work in all."""
        assert addresses.corpus is not None
        self.addresses, self.profile, self.corpus, self.locks = addresses, addresses.profile, addresses.corpus, locks
        self.minutes = minutes
        self.started = time.monotonic()
        self.device = choose_device(self.profile.device)
        # Before anything is translated: it decides about the last bits of fp32 on a GPU.
        set_up_torch(self.device, self.profile.threads)
        self.resident: Resident | None = None

    # Time

    def minutes_left(self) -> float | None:
        return None if self.minutes is None else self.minutes - (time.monotonic() - self.started) / 60

    def check_time(self) -> None:
        """Before anything that cannot stop in between, or takes a while to begin."""
        left = self.minutes_left()
        if left is not None and left <= 0:
            raise Stopped("the time given with --minutes is over", 0)

    @property
    def _how(self) -> dict[str, Any]:
        """For trainings."""
        return {"minutes": self.minutes_left()}

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
        if not self.addresses.has_base(number):
            with self.locks.take(self._base_run(number).name):
                if not self.addresses.has_base(number):
                    self._train_base(number)
        document = read_base_document(self.addresses.base(number))
        card = document["card"]
        return Made(
            folder=self.addresses.base(number),
            fingerprint=document["fingerprint"],
            parameters=document.get("parameters"),
            steps=card.get("steps"),
            seconds={} if number in self.addresses.given else {"training": card.get("training_seconds", 0.0)},
            curve=card.get("curve", []),
        )

    def _base_run(self, number: int) -> Path:
        return self.addresses.run(base_job(self.addresses.chain(number)[-1]))

    def _train_base(self, number: int) -> None:
        """A base that another one follows comes out of that one's run, as its first stage."""
        chain, run = self.addresses.chain(number), self._base_run(number)
        config = base_config(self.profile, chain[-1], Places(run, self.corpus))
        with way_out(starting_over(run)):
            made = train_base(config, **self._how)
        for stage, one in enumerate(chain):
            if not self.addresses.has_base(one):
                store_stage(config, made, stage, self.addresses.base(one))
        shutil.rmtree(run / "checkpoints", ignore_errors=True)

    def _bilingual(self, job: Job) -> Made:
        corpus = self.corpus
        if job.lines is not None:
            source, target = job.languages
            corpus = self._subset(job, (source, target))
        config = bilingual_config(self.profile, job, Places(self.addresses.run(job), corpus))
        return self._whole(job, config, lambda: train_base(config, **self._how))

    def _retrained(self, job: Job) -> Made:
        start = self.base_of(job)
        places = Places(self.addresses.run(job), self.corpus, base=start.folder)
        config = retrain_config(retrain_mapping(self.profile, job, places))

        def train() -> Path:
            self.release()  # it loads the base itself, and needs the room
            return retrain_base(config, **self._how).folder

        made = self._whole(job, config, train)
        if made.codes is None:
            codes = codes_of(Base.load(made.folder), job.languages, self.profile.initial)
            note = self.addresses.run(job) / MADE
            write_json(note, {**made_facts(note), "codes": codes})
            made = replace(made, codes=codes)
        return made

    def _whole(self, job: Job, config: RunConfig, train: Callable[[], Path]) -> Made:
        """A model with all its weights."""
        run = self.addresses.run(job)

        def make() -> dict[str, Any]:
            card = read_base_document(train())["card"]
            seconds = {"training": card.get("training_seconds", 0.0)}
            return {"steps": sum(stage.steps for stage in config.stages), "seconds": seconds, "curve": curve_of(run)}

        facts = self._once(job, make)
        document = read_base_document(run / "base")
        sizes = {"fingerprint": document["fingerprint"], "parameters": document.get("parameters")}
        return Made(folder=run / "base", **sizes, **facts)

    def _pack(self, job: Job) -> Made:
        start = self.base_of(job)
        self._find_proxy(job)
        facts = self._once(job, lambda: self._train_pack(job, start))
        folder = self.addresses.run(job) / "pack"
        return Made(folder=folder, fingerprint=read_pack_document(folder)["fingerprint"], **facts)

    def _find_proxy(self, job: Job) -> None:
        """A pack with `code:proxy` has no name before it is known which language's code that is."""
        if job.plus != PROXY or self.addresses.proxy(job) is not None:
            return
        oracle = oracle_of(job, self.profile)
        if oracle is not None:
            self.model(oracle)
        if self.addresses.proxy(job) is None:
            why = no_oracle(job) if oracle is None else f"{oracle.key} writes no language codes that could be compared"
            raise ConfigError(f"{job.key}: {why}. {name_proxy(job)}")

    def last_pack(self, job: Job) -> Path:
        """The pack with the weights that its training ended with, which is stored if a test set asks for it."""
        folder = self.addresses.run(job) / LAST
        if not folder.is_dir():
            raise DataError(
                f"{folder} is not there: the pack was trained while no test set asked for its last checkpoint. "
                f"Delete {folder.parent} to have it trained again."
            )
        return folder

    def _once(self, job: Job, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What is known of a model that is made in a run of its own, now if it is not there."""
        run = self.addresses.run(job)
        if not (run / MADE).is_file():
            with self.locks.take(run.name):
                if not (run / MADE).is_file():
                    with way_out(starting_over(run)):
                        write_json(run / MADE, make())
                    shutil.rmtree(run / "checkpoints", ignore_errors=True)
        return made_facts(run / MADE)

    def _train_pack(self, job: Job, start: Made) -> dict[str, Any]:
        """On the resident base, which is looked at before and after."""
        run, resident = self.addresses.run(job), self.reside(start.folder)
        material = self._material(job, resident)
        subwords = self._subwords(job) if job.lines is None else None
        proxy = self.addresses.proxy(job)
        places = Places(
            run, self.corpus, partners=material.partners, subwords=subwords, proxy=None if proxy is None else proxy.language
        )
        before = self._look(resident)
        config = pack_config(self.profile, job, places)
        pack = train_pack(config, resident.trainer, material.train, self.valid_corpus(), **self._how)
        if any(one.checkpoint == "last" for one in self.profile.evaluation.sets.values()):
            store_last(run)
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
        corpus = self.corpus if data.filtered else profile.corpus.unfiltered
        assert corpus is not None
        spec = augmentation_of(job)
        if spec is None:
            partners = profile.initial if data.view == "multi-aligned" else (profile.pivot,)
            return Material(Corpus.open(corpus, "train", (*new, *partners)), partners)
        self.check_time()
        languages = (*new, *profile.initial)
        return augmented(
            Corpus.open(corpus, "train", languages),
            spec,
            new,
            resident.folder,
            self._teacher(resident),
            self._text / "augmented",
            seed=job.seed,
            digest=self.addresses.text_hash(languages, filtered=data.filtered),
            locks=self.locks,
            **self._how,
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
        train, valid = self.train_corpus(), self.valid_corpus()
        digest = self.addresses.text_hash(pair, (train.split, valid.split))
        folder = self._text / "sizes"
        return subset(train, valid, pair, job.lines, folder, seed=job.seed, digest=digest, locks=self.locks)

    def _subwords(self, job: Job) -> Path:
        train = Corpus.open(self.corpus, "train", job.languages)
        digest = self.addresses.text_hash(job.languages)
        folder = self._text / "subwords"
        return shared_subwords(train, self.profile.packs.subwords, folder, self.locks, digest=digest)

    @property
    def _text(self) -> Path:
        return self.addresses.output / "text"

    def train_corpus(self) -> Corpus:
        return Corpus.open(self.corpus, "train")

    def valid_corpus(self) -> Corpus:
        return Corpus.open(self.corpus, self.profile.packs.validation.split)

    def test_corpus(self, name: str) -> Corpus:
        one = self.profile.evaluation.sets[name]
        return Corpus.open(one.corpus or self.corpus, one.split)

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


def store_last(run: Path) -> None:
    """Stores the last checkpoint of a finished run as a pack, next to the best one; `pack` stays as it is."""
    checkpoints = Checkpoints(run / "checkpoints", 1)
    latest = checkpoints.latest()
    assert latest is not None, "training ends with a checkpoint"
    pack = load_pack(run / "pack")
    checkpoints.load_parameters(latest, pack.parameters)
    pack.card = {**pack.card, "checkpoint": "last", "validation": None}
    if (run / LAST).exists():
        shutil.rmtree(run / LAST)  # of a try that a kill ended before it was noted
    pack.save(run / LAST, dtype=read_pack_document(run / "pack")["dtype"])


def starting_over(run: Path) -> str:
    """Here runs have no options of their own."""
    return f"delete {run} to have it start over"
