"""The results of experiments: one small JSON file a job, kept for good. Layer 7.

OUTPUT/results/JOB.json                    scores, and how they came to be; of a job that failed, its message
OUTPUT/results/JOB.base-FINGERPRINT.json   an earlier result, on a base that has been trained again since
OUTPUT/translations/JOB/SET.DIRECTION.txt  translations
OUTPUT/translations/lines/SET.LANG.txt     the lines that these are scored with
OUTPUT/bases, text, runs, work             what is needed to go on, and can be deleted
OUTPUT/locks                               which process is at what
OUTPUT/logs                                what processes say that were started by another one
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from graftmt.configuration import differences
from graftmt.data import Direction
from graftmt.errors import ConfigError
from graftmt.experiments.jobs import Job, directions_of, trains
from graftmt.experiments.profiles import Profile
from graftmt.experiments.settings import settings_of
from graftmt.files import read_json, write_json

Result = dict[str, Any]

NAMED = 3
"""Files that are named with what differs; the others are counted."""


@dataclass(frozen=True)
class Store:
    """The folder of a profile's experiments."""

    folder: Path

    def path(self, job: Job) -> Path:
        return self.folder / "results" / f"{job.key}.json"

    def translations(self, job: Job) -> Path:
        return self.folder / "translations" / job.key

    @property
    def lines(self) -> Path:
        return self.folder / "translations" / "lines"

    def work(self, job: Job) -> Path:
        """Where an evaluation that is not finished keeps what it has."""
        return self.folder / "work" / job.key

    def read(self, job: Job) -> Result | None:
        """The result of a job; None where there is none, or where it failed."""
        path = self.path(job)
        if not path.is_file():
            return None
        result = read_json(path, "the result")
        return None if result.get("failed") else result

    def failure(self, job: Job) -> str | None:
        path = self.path(job)
        return read_json(path, "the result").get("failed") if path.is_file() else None

    def failed_at(self, job: Job) -> int | None:
        """When it failed, by the clock of its file: whether before this process began, or since, in another one."""
        return self.path(job).stat().st_mtime_ns if self.failure(job) else None

    def write(self, job: Job, result: Result) -> None:
        """An earlier result on another base is kept beside it."""
        before = self.read(job)
        if before is not None and fingerprint_of(before) != fingerprint_of(result):
            mark = (fingerprint_of(before) or "none")[:12]
            write_json(self.folder / "results" / f"{job.key}.base-{mark}.json", before)
        write_json(self.path(job), result)
        shutil.rmtree(self.work(job), ignore_errors=True)

    def write_failure(self, job: Job, result: Result) -> None:
        """In the place of no result: one that there is stays."""
        if self.read(job) is None:
            write_json(self.path(job), result)

    def missing(self, job: Job, profile: Profile) -> dict[str, list[Direction]]:
        """Test set → directions that its result lacks; nothing of a job that is done."""
        result = self.read(job)
        wanted = directions_of(job, profile)
        scores: Mapping[str, Any] = {} if result is None else result["scores"]
        found = {
            name: [one for one in wanted if str(one) not in scores.get(name, {}).get("directions", {})]
            for name in profile.evaluation.sets
        }
        return {name: directions for name, directions in found.items() if directions}

    def is_done(self, job: Job, profile: Profile) -> bool:
        return self.read(job) is not None and not self.missing(job, profile)

    def made_otherwise(self, jobs: Sequence[Job], profile: Profile) -> dict[Job, str]:
        """Jobs whose result was made with other settings → what differs: neither done nor to be done again unasked."""
        found = {}
        for job in jobs:
            result = self.read(job)
            if result is not None and (changed := other_settings(result["settings"], settings_of(profile, job))):
                found[job] = changed
        return found

    def refusal(self, jobs: Sequence[Job], profile: Profile) -> str:
        """Why the jobs cannot be done, and what to do; nothing where they can."""
        found = self.made_otherwise(jobs, profile)
        if not found:
            return ""
        lines = [f"  {self.path(job).name}: {changed}" for job, changed in list(found.items())[:NAMED]]
        more = [f"  and {len(found) - NAMED} more, which --dry-run names"] if len(found) > NAMED else []
        count, them = (f"{len(found)} results", "these files") if len(found) > 1 else ("1 result", "this file")
        verb = "were" if len(found) > 1 else "was"
        return "\n".join(
            [
                f"{count} in {self.folder / 'results'} {verb} made with other settings than those given now:",
                *lines,
                *more,
                f"Give the settings of then, or another --output folder, or delete {them} to have the work done again.",
            ]
        )

    def check_settings(self, jobs: Sequence[Job], profile: Profile) -> None:
        """Results that were made in another way are not mixed with new ones; all of them are named at once."""
        if message := self.refusal(jobs, profile):
            raise ConfigError(message)

    def expected(self, profile: Profile) -> dict[str, float]:
        """Kind of job → minutes that such jobs took here or, where there are none yet, that the profile says."""
        took: dict[str, list[float]] = {}
        for path in sorted((self.folder / "results").glob("*.json")):
            result = read_json(path, "the result")
            if result.get("profile") == profile.name and result.get("seconds") and not result.get("failed"):
                took.setdefault(str(result.get("trains")), []).append(sum(result["seconds"].values()) / 60)
        return {**profile.expected, **{kind: fmean(minutes) for kind, minutes in took.items()}}


def other_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs, for people; nothing where results may stand side by side."""
    if not before.get("training"):  # nothing was trained, such as of a base that was given
        now = {**now, "training": before.get("training")}
    both = before["evaluation"]["sets"].keys() & now["evaluation"]["sets"].keys()  # a test set more is no difference
    changed = differences(_with_sets(before, both), _with_sets(now, both))
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    return f"{'; '.join(changed[:3])}{more}"


def _with_sets(settings: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    evaluation = settings["evaluation"]
    sets = {name: one for name, one in evaluation["sets"].items() if name in names}
    return {**settings, "evaluation": {**evaluation, "sets": sets}}


def kind_of(job: Job) -> str:
    """What a job costs as much as: the kind of its training, or that it trains nothing."""
    return job.kind if job.kind in ("composition", "pivot") else trains(job)


def fingerprint_of(result: Mapping[str, Any]) -> str | None:
    """Of the base that a result stands on; of a base itself, its own."""
    base = result.get("base")
    return base.get("fingerprint") if isinstance(base, Mapping) else None
