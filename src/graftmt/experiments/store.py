"""The results of experiments: one small JSON file a job, kept for good. Layer 7.

OUTPUT/results/JOB.json                    scores, and how they came to be; of a job that failed, its message
OUTPUT/results/JOB.base-FINGERPRINT.json   an earlier result, on a base that has been trained again since
OUTPUT/translations/JOB/SET.DIRECTION.txt  translations
OUTPUT/translations/lines/SET.LANG.txt     the lines that these are scored with
OUTPUT/bases, text, runs, work             what is needed to go on, and can be deleted
OUTPUT/text.json                           which text all of these are of (text.py)
OUTPUT/locks                               which process is at what
OUTPUT/logs                                what processes say that were started by another one
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from graftmt.configuration import differences
from graftmt.errors import DataError
from graftmt.experiments.jobs import Job, directions_of, trains
from graftmt.experiments.profiles import Profile
from graftmt.experiments.runs import in_short
from graftmt.experiments.settings import as_noted
from graftmt.files import read_json, write_json

Result = dict[str, Any]

FOLDERS = ("results", "translations", "bases", "text", "runs", "work")
"""Those with what is made from the text."""


@dataclass(frozen=True)
class Store:
    """The folder of a profile's experiments."""

    folder: Path
    _read: dict[Path, tuple[tuple[int, ...], Result]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Result files that were read, each with the marks of the file as it was then."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was made here; folders without a file are nothing."""
        return not any(files for name in FOLDERS for _, _, files in os.walk(self.folder / name, followlinks=True))

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
        result = self._file(self.path(job))
        return None if result is None or result.get("failed") else result

    def failure(self, job: Job) -> str | None:
        result = self._file(self.path(job))
        return None if result is None else result.get("failed")

    def _file(self, path: Path) -> Result | None:
        """What it holds, read again only where it has been replaced: lists and waits ask for all of them many times."""
        if not path.is_file():
            return None
        stat = path.stat()
        mark = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        if path not in self._read or self._read[path][0] != mark:
            self._read[path] = mark, _checked(read_json(path, "the result"), path)
        return self._read[path][1]

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

    def is_done(self, job: Job, profile: Profile) -> bool:
        result = self.read(job)
        return result is not None and is_whole(result, job, profile)

    def outstanding(self, jobs: Sequence[Job], profile: Profile) -> dict[Job, int | None]:
        """Jobs without a whole result → when they failed, if they did."""
        return {job: self.failed_at(job) for job in jobs if not self.is_done(job, profile)}

    def settled_since(self, outstanding: Mapping[Job, int | None], profile: Profile) -> tuple[list[str], dict[str, str]]:
        """Of what was outstanding: the keys of jobs that are done now, and those that failed since, with their messages."""
        done = [job.key for job in outstanding if self.is_done(job, profile)]
        failed = {
            job.key: self.failure(job) or "" for job, before in outstanding.items() if self.failed_at(job) not in (None, before)
        }
        return done, failed

    def expected(self, profile: Profile) -> dict[str, float]:
        """Kind of job → minutes that such jobs took here or, where there are none yet, that the profile says."""
        took: dict[str, list[float]] = {}
        for path in sorted((self.folder / "results").glob("*.json")):
            result = self._file(path) or {}
            if result.get("profile") == profile.name and result.get("seconds") and not result.get("failed"):
                took.setdefault(str(result.get("trains")), []).append(sum(result["seconds"].values()) / 60)
        return {**profile.expected, **{kind: fmean(minutes) for kind, minutes in took.items()}}


def _checked(result: Result, path: Path) -> Result:
    """The result, if all that is read of one later is of its kind."""
    try:
        _check_result(result)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"the result {path} is damaged ({type(error).__name__}: {error}). Restore it from a copy, or delete it to have the "
            "job done again."
        ) from None
    return result


def _check_result(result: Result) -> None:
    """Raises what reading it would."""
    if result.get("failed"):
        _expect(result["failed"], str)
        return
    _expect(result["settings"]["evaluation"]["sets"], dict)
    for one in _expect(result["scores"], dict).values():
        signatures = _expect(one["signatures"]["bleu"], dict)
        for entry in _expect(one["directions"], dict).values():
            for key, kind in ENTRY.items():
                _expect(entry[key], kind)
            _expect(signatures[entry["tokenize"]], str)
        for average in _expect(one["averages"], dict).values():
            _expect(average["bleu"], float | int), _expect(average["chrf"], float | int)
    for seconds in _expect(result.get("seconds") or {}, dict).values():
        _expect(seconds, float | int)


ENTRY: dict[str, Any] = {
    **dict.fromkeys(("source", "target", "tokenize"), str),
    **dict.fromkeys(("bleu", "chrf"), float | int),
    "lines": int,
    "off_target": float | int | None,
}


def _expect(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {getattr(kind, '__name__', 'number')}")
    return value


def is_whole(result: Result, job: Job, profile: Profile) -> bool:
    """Whether it has every test set in every direction."""
    wanted, scores = set(map(str, directions_of(job, profile))), result["scores"]
    return all(name in scores and wanted <= scores[name]["directions"].keys() for name in profile.evaluation.sets)


def other_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs, for people; nothing where results may stand side by side."""
    training = before.get("training")  # none of what was not trained here, such as a base that was given
    now = {**now, "training": as_noted(now["training"], training) if training else training}
    both = before["evaluation"]["sets"].keys() & now["evaluation"]["sets"].keys()  # a test set more is no difference
    return in_short(differences(_with_sets(before, both), _with_sets(now, both)))


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
