"""The results of experiments: one small JSON file a job, kept for good. Layer 7.

Where they are is for `addresses.py` to say.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from graftmt.documents import read_json, write_json
from graftmt.errors import DataError
from graftmt.experiments.addresses import Addresses
from graftmt.experiments.jobs import Job, directions_of, trains
from graftmt.experiments.score_files import from_document

Result = dict[str, Any]
FORMAT = 2
"""Of result files; those of 1 have no hash in their names, and one set of settings a folder."""


class Store:
    """The results in one output folder, for the settings given."""

    def __init__(self, addresses: Addresses) -> None:
        self.addresses, self.profile = addresses, addresses.profile
        self.folder = addresses.output / "results"
        self._read: dict[Path, tuple[tuple[int, ...], Result]] = {}
        """Result files that were read, each with the marks of the file as it was then."""

    def path(self, job: Job) -> Path:
        """A job that fails before its base is there has no name yet."""
        return self.addresses.result(self.addresses.name(job) or f"{job.key}.failed")

    def work(self, job: Job) -> Path:
        """Where an evaluation that is not finished keeps what it has."""
        return self.addresses.output / "work" / self.addresses.known_name(job)

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
        """An earlier result of another model is kept next to it: one that was made again may come out otherwise."""
        path, before = self.path(job), self.read(job)
        if before is not None and before["fingerprint"] != result["fingerprint"]:
            write_json(path.with_name(f"{path.stem}.{before['fingerprint'][:12]}.json"), before)
        write_json(path, result)
        self.addresses.result(f"{job.key}.failed").unlink(missing_ok=True)
        shutil.rmtree(self.work(job), ignore_errors=True)

    def write_failure(self, job: Job, result: Result) -> None:
        """In the place of no result: one that there is stays."""
        if self.read(job) is None:
            write_json(self.path(job), result)

    def is_done(self, job: Job) -> bool:
        result = self.read(job)
        return result is not None and self.is_whole(job, result)

    def is_whole(self, job: Job, result: Result) -> bool:
        """Whether it has every test set in every direction."""
        wanted, scores = set(map(str, directions_of(job, self.profile))), result["scores"]
        return all(name in scores and wanted <= scores[name]["directions"].keys() for name in self.addresses.sets_of(job))

    def outstanding(self, jobs: Sequence[Job]) -> dict[Job, int | None]:
        """Jobs without a whole result → when they failed, if they did."""
        return {job: self.failed_at(job) for job in jobs if not self.is_done(job)}

    def settled_since(self, outstanding: Mapping[Job, int | None]) -> tuple[list[str], dict[str, str]]:
        """Of what was outstanding: the keys of jobs that are done now, and those that failed since, with their messages."""
        done = [job.key for job in outstanding if self.is_done(job)]
        failed = {
            job.key: self.failure(job) or "" for job, before in outstanding.items() if self.failed_at(job) not in (None, before)
        }
        return done, failed

    def others(self, job: Job) -> int:
        """Results of the same job with other settings, another text or another base, or of an earlier version."""
        own = self.path(job)
        found = [*self.folder.glob(f"{job.key}.*.json"), *self.folder.glob(f"{job.key}.json")]
        return sum(path != own and not (self._file(path) or {}).get("failed") for path in found)

    def expected(self) -> dict[str, float]:
        """Kind of job → minutes that such jobs took here or, where there are none yet, that the profile says."""
        took: dict[str, list[float]] = {}
        for path in sorted(self.folder.glob("*.json")):
            result = self._file(path) or {}
            if result.get("profile") == self.profile.name and result.get("seconds") and not result.get("failed"):
                took.setdefault(str(result.get("trains")), []).append(sum(result["seconds"].values()) / 60)
        return {**self.profile.expected, **{kind: fmean(minutes) for kind, minutes in took.items()}}


def _checked(result: Result, path: Path) -> Result:
    """The result, if all that is read of one later is of its kind."""
    try:
        if not isinstance(result.get("failed") or "", str):
            raise TypeError(f"{result['failed']!r} is no message")
        for name, one in ({} if result.get("failed") else result["scores"]).items():
            from_document(one, name, "", "averages")
            rows = from_document(one, name, "")
            if not all(row.signature for row in rows if row.metric == "bleu"):
                raise KeyError("signatures")
        sum((result.get("seconds") or {}).values())
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"the result {path} is damaged ({type(error).__name__}: {error}). Restore it from a copy, or delete it to have the "
            "job done again."
        ) from None
    return result


def kind_of(job: Job) -> str:
    """What a job costs as much as: the kind of its training, or that it trains nothing."""
    return job.kind if job.kind in ("composition", "pivot") else trains(job)
