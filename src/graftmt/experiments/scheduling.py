"""Goes through the jobs of a plan that are missing, one after the other, each done whole or not at all. Layer 7.

Killed at any moment, the same call resumes: trainings from their checkpoints, evaluations from their last direction, and
what has a result is not done again. Several processes can work on one folder: each does what no other is at.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from graftmt.errors import DataError, GraftError, first_few
from graftmt.experiments.definitions import models
from graftmt.experiments.evaluating import Evaluator
from graftmt.experiments.job_locks import Held, JobLocks
from graftmt.experiments.job_settings import data_words
from graftmt.experiments.jobs import Job, needs, trained, trains
from graftmt.experiments.material import pairs_in
from graftmt.experiments.planning import Plan
from graftmt.experiments.residents import free_memory
from graftmt.experiments.store import Result, Store
from graftmt.experiments.workshop import Workshop
from graftmt.files import sweep
from graftmt.folders import make_folder, watched
from graftmt.places import EXPERIMENTS, check_place
from graftmt.progress import indented, say
from graftmt.training import Stopped

POLL = 2.0
"""Seconds between two looks at what other processes do, where there is nothing else to do."""


@dataclass
class Outcome:
    """What one process did, by the keys of jobs."""

    done: list[str] = field(default_factory=list)
    """Those whose result it stored, also on the way to another one."""
    failed: dict[str, str] = field(default_factory=dict)
    """Here, or in another process while this one worked."""
    skipped: dict[str, str] = field(default_factory=dict)
    stopped: str = ""
    exit_code: int = 0


def run_experiments(
    store: Store,
    plan: Plan,
    *,
    minutes: float | None = None,
) -> Outcome:
    """All jobs of the plan that have no result yet; one that fails is recorded, and the others follow."""
    output = store.addresses.output
    check_place(output, EXPERIMENTS)
    for place in (output, output / "results", output / "text"):
        sweep(place)
    locks = JobLocks(output / "locks")
    make_folder(output)
    with watched(output):
        workshop = Workshop(store.addresses, locks, minutes=minutes)
        return Runner(store, workshop).run(plan.jobs)


class Runner:
    """Who does which job when: the next one that can begin and that no other process is at."""

    def __init__(self, store: Store, workshop: Workshop) -> None:
        self.store, self.workshop = store, workshop
        self.addresses, self.profile, self.locks = store.addresses, store.profile, workshop.locks
        self.outcome = Outcome()
        self.evaluator = Evaluator(self.workshop, store, stored=self.outcome.done.append)
        self._put_off: dict[str, str] = {}
        """Job → what another process had when it was tried."""
        self._outstanding: dict[Job, int | None] = {}
        self._waiting = False
        self._pairs: dict[tuple[str, ...], int] = {}
        """How many lines two languages have in common."""

    def run(self, jobs: Sequence[Job]) -> Outcome:
        self._outstanding = self.store.outstanding(jobs)
        missing = [job for job in self._outstanding if not self._too_large(job)]
        say(f"{len(jobs) - len(missing) - len(self.outcome.skipped)} of {len(jobs)} jobs are done; {len(missing)} to do")
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
            elif key in self._put_off and self.locks.is_held(self._put_off[key]):
                held.append(self._put_off[key])
            elif self._can_begin(job, left):
                name = self.addresses.name(job) or key
                try:
                    with self.locks.take(name):
                        if not self._is_settled(job):  # by another process, since it was looked at
                            self._waiting = False
                            say(titles[key])
                            self._try(job)
                        del left[key]
                        return []
                except Held as other:
                    if other.name != name:
                        self._put_off[key] = other.name
                        say(f"   put off: another process is at {other.name}")
                        return []
                    held.append(name)
        return list(dict.fromkeys(held))

    def _is_settled(self, job: Job) -> bool:
        """On the way to another one, or by another process, it may have been done; or it failed there."""
        if self.store.is_done(job):
            return True
        if self.store.failed_at(job) in (None, self._outstanding[job]):
            return False
        self.outcome.failed[job.key] = self.store.failure(job) or ""
        say(f"== {job.key} failed in another process: {self.outcome.failed[job.key]}")
        return True

    def _can_begin(self, job: Job, left: Collection[str]) -> bool:
        """What it needs comes first; a base that is there serves, also while another process scores it."""
        return all(
            needed.key not in left or (trains(needed) == "base" and self.addresses.has_base(trained(needed).id))
            for needed in needs(job, self.profile)
        )

    def _wait(self, held: Sequence[str]) -> None:
        if not self._waiting:
            say(f"waiting for other processes, which are at {first_few(held)} …")
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

    def _words(self, job: Job) -> str:
        if job.model is None:
            return f"({job.source}) and ({job.target}){' through ' + self.profile.pivot if job.kind == 'pivot' else ''}"
        return f"{models()[job.model].name}; {data_words(job, self.profile)}"

    def _try(self, job: Job) -> None:
        try:
            for needed in needs(job, self.profile):
                if needed.key in self.outcome.failed:
                    raise DataError(f"it needs {needed.key}, which failed: {self.outcome.failed[needed.key]}")
            with indented():
                say(_figures(self.evaluator.evaluate(job)))
        except (GraftError, torch.OutOfMemoryError) as error:
            message = " ".join(str(error).split())
            self.outcome.failed[job.key] = message
            self.evaluator.record_failure(job, message)
            say(f"   failed: {message}")
            free_memory()


def _figures(result: Result) -> str:
    """The averages of the test set that was scored last, for the person who waits."""
    scores = next(reversed(result["scores"].values()))
    name = scores["set"]
    found = ", ".join(f"{group} {one['bleu']:.1f}/{one['chrf']:.1f}" for group, one in scores["averages"].items())
    return f"{name}: {found} (BLEU/chrF)"
