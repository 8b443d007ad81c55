"""Files translated as jobs, in a folder that several servers may share: whoever is free takes the next one. Layer 6.

Each job is a folder with `job.json`, `input`, and at the end `result` or `error.json`. Who works on one holds the lock on its
file `lock`, which goes with the process; a job whose server was killed is begun again by the next.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graftmt.documents import read_json, write_json
from graftmt.errors import GraftError
from graftmt.files import write_text
from graftmt.folders import claimed, make_folder
from graftmt.places import Kind, check_place
from graftmt.server.formats import FORMATS
from graftmt.server.refusals import Refused
from graftmt.server.service import Service

logger = logging.getLogger(__name__)

MARK = "jobs.json"
FOLDER = Kind(name="a folder of jobs", is_one=lambda folder: (folder / MARK).is_file())
MOST_JOBS = 1000
"""Jobs in the folder, finished ones too."""
LOOK = 0.5
"""Seconds between looks for new jobs."""
WRITE = 2.0
"""Seconds between notes of how far a job is."""
WHAT = "the job"
_ID = re.compile(r"[A-Za-z0-9_-]{22}")


@dataclass(frozen=True)
class Job:
    """What was asked for."""

    id: str
    name: str
    source: str
    target: str
    form: str
    owner: str
    created: float


@dataclass(frozen=True)
class Standing:
    """Where a job is: waiting, running, done or failed."""

    job: Job
    state: str
    done: int = 0
    total: int = 0
    error: str | None = None


class Jobs:
    """The jobs of one folder."""

    def __init__(self, folder: Path, days: float) -> None:
        check_place(folder, FOLDER)
        make_folder(folder)
        if not (folder / MARK).exists():
            write_json(folder / MARK, {"kind": "jobs", "format": 1})
        self.folder, self.days = folder, days

    def create(self, name: str, content: str, *, source: str, target: str, form: str, owner: str) -> Job:
        """Stores a job; whichever server is free first takes it."""
        if sum(1 for _ in self._ids()) >= MOST_JOBS:
            raise Refused(429, f"there are {MOST_JOBS:,} jobs already; delete some.", retry_after=30)
        job = Job(secrets.token_urlsafe(16), name[:200], source, target, form, owner, time.time())
        place = self.folder / job.id
        try:
            make_folder(place)
            write_text(place / "input", content, tidy=False)
            write_json(place / "job.json", asdict(job))  # last: from now on it is one
        except GraftError:
            shutil.rmtree(place, ignore_errors=True)
            logger.error("a job could not be stored")
            raise Refused(503, "the file could not be stored; try again later.", retry_after=60) from None
        return job

    def find(self, identity: str, owner: str) -> Standing:
        """Where a job is; other people's are not there."""
        if _ID.fullmatch(identity):
            with suppress(GraftError):
                job = self._read(identity)
                if job.owner == owner:
                    return self._standing(job)
        raise Refused(404, "there is no such job.")

    def result(self, job: Job) -> Path:
        return self.folder / job.id / "result"

    def delete(self, job: Job) -> None:
        """Forgets a job; one that runs ends when it finds its folder gone."""
        shutil.rmtree(self.folder / job.id, ignore_errors=True)

    async def work(self, service: Service) -> None:
        """Takes one job after the other until it is cancelled; a job that is interrupted waits for the next server."""
        while True:
            try:
                taken = await self._take_next(service)
                self._forget_old()
            except (GraftError, OSError) as error:
                logger.warning("jobs: %s", type(error).__name__)
                taken = False
            if not taken:
                await asyncio.sleep(LOOK)

    async def _take_next(self, service: Service) -> bool:
        for job in await asyncio.to_thread(self._unfinished):
            with claimed(self.folder / job.id / "lock") as mine:
                if mine and self._standing_of_files(job) is None:
                    await self._run(job, service)
                    return True
        return False

    async def _run(self, job: Job, service: Service) -> None:
        place = self.folder / job.id
        progress = {"done": 0, "total": 0}
        written = 0.0

        def hear(done: int) -> None:
            nonlocal written
            progress["done"] += done
            if time.monotonic() - written > WRITE and place.is_dir():
                written = time.monotonic()
                with suppress(GraftError):
                    write_json(place / "progress.json", progress)

        try:
            route = service.route(job.source, job.target)
            content = (place / "input").read_text(encoding="utf-8")
            progress["total"] = await asyncio.to_thread(service.count_sentences, route, content, job.form)
            (way,) = (await service.translate_text(route, content, job.form, on_done=hear, patient=True))[:1]
            if place.is_dir():
                write_text(place / "result", way.text)
        except (GraftError, OSError) as error:
            message = str(error) if isinstance(error, Refused) else "it could not be translated; the server's log has more."
            logger.error("job %s failed: %s", job.id, type(error).__name__)
            if place.is_dir():
                write_json(place / "error.json", {"error": message})

    def _ids(self) -> Iterator[str]:
        return (path.name for path in self.folder.iterdir() if _ID.fullmatch(path.name))

    def _read(self, identity: str) -> Job:
        document = read_json(self.folder / identity / "job.json", WHAT)
        try:
            return Job(**document)
        except TypeError:
            raise GraftError(f"{WHAT} {identity} is damaged; delete its folder.") from None

    def _unfinished(self) -> list[Job]:
        found = []
        for identity in self._ids():
            with suppress(GraftError):  # one that is being written, or deleted
                job = self._read(identity)
                if self._standing_of_files(job) is None:
                    found.append(job)
        return sorted(found, key=lambda job: job.created)

    def _standing_of_files(self, job: Job) -> Standing | None:
        """Where it is if it is over."""
        place = self.folder / job.id
        if (place / "result").is_file():
            return Standing(job, "done")
        if (place / "error.json").is_file():
            return Standing(job, "failed", error=str(read_json(place / "error.json", WHAT).get("error")))
        return None

    def _standing(self, job: Job) -> Standing:
        place = self.folder / job.id
        if (over := self._standing_of_files(job)) is not None:
            return over
        document: dict[str, Any] = {}
        with suppress(GraftError):
            document = read_json(place / "progress.json", WHAT) if (place / "progress.json").is_file() else {}
        with claimed(place / "lock") as free:
            return Standing(job, "waiting" if free else "running", int(document.get("done", 0)), int(document.get("total", 0)))

    def _forget_old(self) -> None:
        oldest = time.time() - self.days * 86_400
        for identity in list(self._ids()):
            with suppress(GraftError):
                job = self._read(identity)
                if job.created < oldest and self._standing_of_files(job) is not None:
                    self.delete(job)


def media_type_of(job: Job) -> str:
    return FORMATS[job.form].media_type
