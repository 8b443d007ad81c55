"""Does the jobs of a plan that are missing, one after the other, each whole or not at all. Layer 7.

Killed at any moment, the same call goes on: trainings from their checkpoints, evaluations from their last direction, and
what has a result is not done again. Several processes can work on one folder: each does what no other is at.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from graftmt.base import Base
from graftmt.data import Direction
from graftmt.errors import ConfigError, DataError, GraftError
from graftmt.experiments.claims import Claims, Held
from graftmt.experiments.definitions import models
from graftmt.experiments.jobs import Job, base_job, directions_of, hops, initial_of, needs, trained, trains
from graftmt.experiments.making import Made, RunOptions, Workshop
from graftmt.experiments.material import pairs_in
from graftmt.experiments.planning import Plan
from graftmt.experiments.profiles import Profile
from graftmt.experiments.residents import free_memory
from graftmt.experiments.scoring import Scored, score, score_in_hops
from graftmt.experiments.settings import data_words, settings_of
from graftmt.experiments.store import Result, Store, kind_of, other_settings
from graftmt.packs import load_pack
from graftmt.training import Stopped
from graftmt.translator import Translator

Say = Callable[[str], None]

POLL = 2.0
"""Seconds between two looks at what other processes do, where there is nothing else to do."""


@dataclass
class Outcome:
    """What one call did, by the keys of jobs."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    stopped: str = ""
    exit_code: int = 0


def run_experiments(profile: Profile, plan: Plan, options: RunOptions, say: Say = print) -> Outcome:
    """All jobs of the plan that have no result yet; one that fails is recorded, and the others go on."""
    store = Store(options.output)
    store.check_settings(plan.jobs, profile)
    return Runner(profile, options, store, say).run(plan.jobs)


class Runner:
    """Jobs into results: the models from the workshop, scored here."""

    def __init__(self, profile: Profile, options: RunOptions, store: Store, say: Say) -> None:
        self.profile, self.options, self.store, self.say = profile, options, store, say
        self.claims = Claims(options.output / "locks", say)
        self.workshop = Workshop(profile, options, self.claims, say)
        self.outcome = Outcome()
        self._put_off: dict[str, str] = {}
        """Job → what another process had when it was tried."""
        self._failed_before: dict[str, int | None] = {}
        self._waiting = False

    def run(self, jobs: Sequence[Job]) -> Outcome:
        missing = [job for job in jobs if not self.store.is_done(job, self.profile) and not self._too_large(job)]
        self.say(f"{len(jobs) - len(missing) - len(self.outcome.skipped)} of {len(jobs)} jobs are done; {len(missing)} to do")
        self._failed_before = {job.key: self.store.failed_at(job) for job in missing}
        titles = {
            job.key: f"== {job.key} ({number} of {len(missing)}): {self._words(job)}" for number, job in enumerate(missing, 1)
        }
        left = {job.key: job for job in missing}
        try:
            while left:
                self.workshop.check_time()
                held = self._next(left, titles)
                if held and left:
                    self._wait(held)
        except Stopped as stop:
            self.outcome.stopped, self.outcome.exit_code = stop.reason, stop.exit_code
        return self.outcome

    def _next(self, left: dict[str, Job], titles: Mapping[str, str]) -> list[str]:
        """Does the first job that can be done now; where there is none, returns what other processes have."""
        held = []
        for key, job in list(left.items()):
            if self._is_settled(job):
                del left[key]
            elif key in self._put_off and self.claims.is_held(self._put_off[key]):
                held.append(self._put_off[key])
            elif self._can_begin(job, left):
                try:
                    with self._claim(job):
                        if not self._is_settled(job):  # by another process, since it was looked at
                            self._waiting = False
                            self.say(titles[key])
                            self._try(job)
                        del left[key]
                        return []
                except Held as other:
                    if other.name != key:
                        self._put_off[key] = other.name
                        self.say(f"   put off: another process is at {other.name}")
                        return []
                    self._check_same_settings(job)
                    held.append(key)
        return list(dict.fromkeys(held))

    def _is_settled(self, job: Job) -> bool:
        """On the way to another one, or by another process, it may have been done; or it failed there."""
        if self.store.is_done(job, self.profile):
            self.store.check_settings([job], self.profile)
            return True
        if self.store.failed_at(job) in (None, self._failed_before[job.key]):
            return False
        self.outcome.failed[job.key] = self.store.failure(job) or ""
        self.say(f"== {job.key} failed in another process: {self.outcome.failed[job.key]}")
        return True

    def _can_begin(self, job: Job, left: Collection[str]) -> bool:
        """What it needs comes first; a base that is there serves, also while another process scores it."""
        return all(
            needed.key not in left or (trains(needed) == "base" and self.workshop.has_base(trained(needed).id))
            for needed in needs(job, self.profile)
        )

    def _claim(self, job: Job) -> AbstractContextManager[None]:
        settings = settings_of(self.profile, job)
        if trains(job) == "base" and trained(job).id in self.options.bases:
            settings = {**settings, "training": None}
        return self.claims.take(job.key, note=settings)

    def _check_same_settings(self, job: Job) -> None:
        """Before there is a result: as `Store.check_settings`, with what the process that is at it has noted."""
        note = self.claims.note(job.key)
        if note and (changed := other_settings(note, settings_of(self.profile, job))):
            raise ConfigError(
                f"another process is at {job.key} with other settings ({changed}). Give the same, or another --output folder."
            )

    def _wait(self, held: Sequence[str]) -> None:
        if not self._waiting:
            more = f" and {len(held) - 3} more" if len(held) > 3 else ""
            self.say(f"waiting for other processes, which are at {', '.join(held[:3])}{more} …")
            self._waiting = True
        left = self.workshop.minutes_left()
        time.sleep(POLL if left is None else min(POLL, max(0.0, 60 * left)))

    def _too_large(self, job: Job) -> bool:
        """A point of a figure for which the corpus has too few lines: the whole of it is a point anyway."""
        if job.lines is None:
            return False
        first, second = job.languages if len(job.languages) == 2 else (job.languages[0], self.profile.pivot)
        pair = tuple(sorted((first, second)))
        if pair not in self._pairs:
            self._pairs[pair] = len(pairs_in(self.workshop.train_corpus(), *pair))
        if job.lines < self._pairs[pair]:
            return False
        self.outcome.skipped[job.key] = f"the corpus has {self._pairs[pair]:,} line pairs of {first}-{second}"
        return True

    @cached_property
    def _pairs(self) -> dict[tuple[str, ...], int]:
        """How many lines two languages have in common."""
        return {}

    def _words(self, job: Job) -> str:
        if job.model is None:
            return f"({job.source}) and ({job.target}){' through ' + self.profile.pivot if job.kind == 'pivot' else ''}"
        return f"{models()[job.model].name}; {data_words(job, self.profile)}"

    def _try(self, job: Job) -> None:
        try:
            for needed in needs(job, self.profile):
                if needed.key in self.outcome.failed:
                    raise DataError(f"it needs {needed.key}, which failed: {self.outcome.failed[needed.key]}")
            result = self.do(job)
            self.outcome.done.append(job.key)
            self.say(f"   {_figures(result)}")
        except (GraftError, torch.OutOfMemoryError) as error:
            message = " ".join(str(error).split())
            self.outcome.failed[job.key] = message
            self.store.write_failure(job, {**self._about(job), "failed": message, "finished": _now()})
            self.say(f"   failed: {message}")
            free_memory()

    def do(self, job: Job) -> Result:
        """One job, and before it whatever it needs that is not there."""
        if job.model is None:
            return self._combined(job)
        return self._pivot(job) if job.kind == "pivot" else self._model(job)

    # The kinds of jobs

    def _model(self, job: Job) -> Result:
        """A model, trained or found, and its scores."""
        made, workshop = self.workshop.model(job), self.workshop
        self._score_base(job)
        if trains(job) == "pack":
            translator = Translator(workshop.reside(workshop.base_of(job).folder).scorer, [load_pack(made.folder)])
        elif trains(job) == "base":
            translator = Translator(workshop.reside(made.folder).scorer)
        else:
            translator = Translator(Base.load(made.folder, device=workshop.device))
        scored, seconds = self._scores(job, made.fingerprint, translator)
        facts = {
            "fingerprint": made.fingerprint,
            "parameters": made.parameters,
            "steps": made.steps,
            "recipe": made.recipe,
            "seconds": {**made.seconds, "evaluation": round(seconds, 1)},
            "curve": made.curve,
            "verified": made.verified,
        }
        return self._store(job, facts, scored, given=made.given)

    def _combined(self, job: Job) -> Result:
        """A source pack and a target pack of one base: in one model, or in two hops through English."""
        packs = [self._pack(needed) for needed in needs(job, self.profile)]
        self._score_base(job)
        resident = self.workshop.reside(self.workshop.base_of(job).folder)
        translator = Translator(resident.scorer, {side: load_pack(pack.folder) for side, pack in zip("st", packs, strict=True)})
        fingerprint = "+".join(pack.fingerprint for pack in packs)
        through = self.profile.pivot if job.kind == "pivot" else None
        scored, seconds = self._scores(job, fingerprint, translator, through=through)
        facts = {
            "fingerprint": fingerprint,
            "parameters": sum(pack.parameters or 0 for pack in packs),
            "recipe": " / ".join(pack.recipe or "" for pack in packs),
            "seconds": {"evaluation": round(seconds, 1)},
        }
        return self._store(job, facts, scored)

    def _pack(self, job: Job) -> Made:
        """A pack to be combined, on the base that is here; where its result is of another one it is made and scored again."""
        made = self.workshop.model(job)
        self._scored(job, made)
        return made

    def _scored(self, job: Job, made: Made) -> Result:
        """The result of a model that is here; where the one kept is of another, or lacks something, it is scored now."""
        result = self._result_of(job, made)
        if result is None:
            with self._claim(job):
                result = self._result_of(job, made) or self._model(job)
        return result

    def _result_of(self, job: Job, made: Made) -> Result | None:
        result = self.store.read(job)
        if result is None or result["fingerprint"] != made.fingerprint or self.store.missing(job, self.profile):
            return None
        return result

    def _pivot(self, job: Job) -> Result:
        """One model in two hops, or two bilingual ones."""
        parts = [self.workshop.model(needed) for needed in needs(job, self.profile)]
        self._score_base(job)
        fingerprint = "+".join(part.fingerprint for part in parts)
        if trains(job) == "bilingual":
            started = time.monotonic()
            translators = [Translator(Base.load(part.folder, device=self.workshop.device)) for part in parts]
            steps = list(zip(translators, hops(Direction(*job.languages), self.profile.pivot), strict=True))
            scored = {
                name: score_in_hops(self.profile, name, self.workshop.test_corpus(name), steps)
                for name in self.profile.evaluation.sets
            }
            seconds = time.monotonic() - started
        else:
            translator = Translator(self.workshop.reside(parts[0].folder).scorer)
            scored, seconds = self._scores(job, fingerprint, translator, through=self.profile.pivot)
        facts = {
            "fingerprint": fingerprint,
            "parameters": sum(part.parameters or 0 for part in parts),
            "seconds": {"evaluation": round(seconds, 1)},
        }
        return self._store(job, facts, scored)

    def _score_base(self, job: Job) -> None:
        """Before the job's own scores: where another process is at it, these would be made in vain."""
        start = initial_of(job)
        if trains(job) not in ("base", "bilingual") and start is not None:
            self._scored(base_job(start), self.workshop.base(start))

    # Scores and results

    def _scores(
        self, job: Job, fingerprint: str, translator: Translator, *, through: str | None = None
    ) -> tuple[dict[str, Scored], float]:
        """Every test set, without what an earlier result of the same model has; and how long that took, then and now."""
        started = time.monotonic()
        before = self.store.read(job)
        if before is not None and before["fingerprint"] != fingerprint:
            before = None  # trained again, on another base perhaps: its scores are others
        found = {}
        for name in self.profile.evaluation.sets:
            found[name] = Scored.of(before, name)
            lacking = [one for one in directions_of(job, self.profile) if str(one) not in found[name].directions]
            if lacking:
                self.workshop.check_time()
                more = score(
                    self.profile,
                    name,
                    self.workshop.test_corpus(name),
                    translator,
                    lacking,
                    new=[one for one in self.profile.new if one in translator.languages],
                    through=through,
                    work=self.store.work(job) / f"{fingerprint[:12]}{fingerprint[-12:]}" / name,
                    quiet=self.options.quiet,
                )
                found[name] = found[name].with_more(more)
        earlier = 0.0 if before is None else before["seconds"].get("evaluation", 0.0)
        return found, earlier + time.monotonic() - started

    def _store(self, job: Job, facts: Mapping[str, Any], scored: Mapping[str, Scored], *, given: bool = False) -> Result:
        """The result, whole: after this the job is done."""
        pivot = self.profile.pivot
        new = [one for one in self.profile.new if one in job.languages]
        result = {
            **self._about(job),
            "base": self._base_facts(job, facts["fingerprint"], scored),
            **facts,
            "scores": {name: one.document(pivot, new) for name, one in scored.items()},
            "settings": {**settings_of(self.profile, job), **({"training": None} if given else {})},
            "finished": _now(),
        }
        for name, one in scored.items():
            one.keep(self.store.translations(job), name, self.profile.evaluation.keep_lines)
            one.keep_lines(self.store.lines, name)
        self.store.write(job, result)
        return result

    def _about(self, job: Job) -> Result:
        return {
            "job": job.key,
            "kind": job.kind,
            "trains": kind_of(job),
            "profile": self.profile.name,
            "model": job.model,
            "source": job.source,
            "target": job.target,
            "plus": job.plus,
            "languages": list(job.languages),
            "seed": job.seed,
            "lines": job.lines,
            "recipe": None,
            "data": data_words(job, self.profile),
            "steps": None,
            "machine": self._machine,
            "versions": self._versions,
        }

    def _base_facts(self, job: Job, fingerprint: str, scored: Mapping[str, Scored]) -> Result | None:
        """The base that a result stands on, by fingerprint and averages; a base stands on itself, a bilingual model on none."""
        kind = trains(job)
        if kind == "bilingual":
            return None
        if kind == "base":
            number, averages = trained(job).id, {name: one.averages(self.profile.pivot, ()) for name, one in scored.items()}
        else:
            start = initial_of(job)
            assert start is not None
            number, made = start, self.workshop.base(start)
            fingerprint = made.fingerprint
            averages = {name: one["averages"] for name, one in self._scored(base_job(start), made)["scores"].items()}
        return {
            "id": number,
            "fingerprint": fingerprint,
            "scores": {name: {"averages": found} for name, found in averages.items()},
        }

    @cached_property
    def _machine(self) -> dict[str, Any]:
        on_gpu = self.workshop.device.startswith("cuda")
        device = torch.cuda.get_device_name() if on_gpu else f"CPU, {torch.get_num_threads()} threads"
        return {"device": device, "system": f"{platform.system()} {platform.machine()}"}

    @cached_property
    def _versions(self) -> dict[str, str]:
        found = {"python": platform.python_version()}
        for package in ("graftmt", "torch", "sacrebleu", "sentencepiece", "numpy"):
            try:
                found[package] = version(package)
            except PackageNotFoundError:  # graftmt itself, run from its source folder
                continue
        return found


def _figures(result: Result) -> str:
    """The averages of the first test set, for the person who waits."""
    name, scores = next(iter(result["scores"].items()))
    found = ", ".join(f"{group} {one['bleu']:.1f}/{one['chrf']:.1f}" for group, one in scores["averages"].items())
    return f"{name}: {found} (BLEU/chrF)"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
