"""One job into its result: the model from the workshop, scored on every test set, stored with all that it stands on. Layer 7.

What a job needs and is not there is made and scored on the way. Which job is next, and what follows where another process has
what this one needs (`Held`) or a job fails, is for `running.py`.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from graftmt.assessment.folder import digest
from graftmt.base import Base
from graftmt.data import Direction
from graftmt.experiments.jobs import Job, base_job, directions_of, hops, initial_of, needs, trained, trains
from graftmt.experiments.making import Made, Workshop
from graftmt.experiments.scoring import Scored, score, score_in_hops
from graftmt.experiments.settings import data_words, settings_of
from graftmt.experiments.store import Result, Store, is_whole, kind_of
from graftmt.packs import load_pack
from graftmt.translator import Translator

ScoreSet = Callable[[str, Sequence[Direction]], Scored]
"""A test set and the directions that it lacks → their scores."""


class Evaluator:
    """Jobs into results, one at a time."""

    def __init__(self, workshop: Workshop, store: Store, stored: Callable[[str], None]) -> None:
        """`stored` is told of each result, by its job's key."""
        self.workshop, self.store, self._stored = workshop, store, stored
        self.profile, self.options = workshop.profile, workshop.options

    def evaluate(self, job: Job) -> Result:
        """The result of one job, and before it of whatever it needs that is not there."""
        if job.model is None:
            return self._combined(job)
        return self._pivot(job) if job.kind == "pivot" else self._model(job)

    def claim(self, job: Job) -> AbstractContextManager[None]:
        """Noted with its settings, so that a process with others finds out before there is a result."""
        settings = settings_of(self.profile, job)
        if trains(job) == "base" and trained(job).id in self.options.bases:
            settings = {**settings, "training": None}
        return self.workshop.claims.take(job.key, note=settings)

    def record_failure(self, job: Job, message: str) -> None:
        self.store.write_failure(job, {**self._about(job), "failed": message, "finished": _now()})

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
        scored, seconds = self._scores(job, made.fingerprint, self._scorer(job, made.fingerprint, translator))
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
        scored, seconds = self._scores(job, fingerprint, self._scorer(job, fingerprint, translator))
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
            with self.claim(job):
                result = self._result_of(job, made) or self._model(job)
        return result

    def _result_of(self, job: Job, made: Made) -> Result | None:
        result = self._before(job, made.fingerprint)
        return result if result is not None and is_whole(result, job, self.profile) else None

    def _pivot(self, job: Job) -> Result:
        """One model in two hops, or two bilingual ones."""
        parts = [self.workshop.model(needed) for needed in needs(job, self.profile)]
        self._score_base(job)
        fingerprint = "+".join(part.fingerprint for part in parts)
        if trains(job) == "bilingual":
            score_set = self._scorer_in_hops(job, parts)
        else:
            score_set = self._scorer(job, fingerprint, Translator(self.workshop.reside(parts[0].folder).scorer))
        scored, seconds = self._scores(job, fingerprint, score_set)
        facts = {
            "fingerprint": fingerprint,
            "parameters": sum(part.parameters or 0 for part in parts),
            "seconds": {"evaluation": round(seconds, 1)},
        }
        return self._store(job, facts, scored)

    def _score_base(self, job: Job) -> None:
        """Before the job's own scores: where another process is at it, these would be made in vain."""
        if trains(job) not in ("base", "bilingual"):
            self._base_result(job)

    def _base_result(self, job: Job) -> Result:
        """Of the base that a job's packs or re-training start from."""
        number = initial_of(job)
        assert number is not None
        return self._scored(base_job(number), self.workshop.base(number))

    # Scores and results

    def _scores(self, job: Job, fingerprint: str, score_set: ScoreSet) -> tuple[dict[str, Scored], float]:
        """Every test set, and those that an earlier result of the same model has; and how long that took, then and now."""
        started = time.monotonic()
        before = self._before(job, fingerprint)
        found = {} if before is None else {name: Scored.of(before, name) for name in before["scores"]}
        for name in self.profile.evaluation.sets:
            scored = found.get(name, Scored())
            lacking = [one for one in directions_of(job, self.profile) if str(one) not in scored.directions]
            if lacking:
                self.workshop.check_time()
                found[name] = scored.with_more(score_set(name, lacking))
        earlier = 0.0 if before is None else before["seconds"].get("evaluation", 0.0)
        return found, earlier + time.monotonic() - started

    def _scorer(self, job: Job, fingerprint: str, translator: Translator) -> ScoreSet:
        """With one model, perhaps in two hops."""
        settings = settings_of(self.profile, job)["evaluation"]

        def score_set(name: str, directions: Sequence[Direction]) -> Scored:
            asked = list(map(str, directions))  # what is searched for otherwise, or in other directions, is kept apart
            return score(
                self.profile,
                name,
                self.workshop.test_corpus(name),
                translator,
                directions,
                new=[one for one in self.profile.new if one in translator.languages],
                through=self.profile.pivot if job.kind == "pivot" else None,
                work=self.store.work(job) / digest(fingerprint, settings, asked) / name,
                quiet=self.options.quiet,
            )

        return score_set

    def _scorer_in_hops(self, job: Job, parts: Sequence[Made]) -> ScoreSet:
        """With two bilingual models, which have one direction together."""
        translators = [Translator(Base.load(part.folder, device=self.workshop.device)) for part in parts]
        steps = list(zip(translators, hops(Direction(*job.languages), self.profile.pivot), strict=True))
        return lambda name, _: score_in_hops(self.profile, name, self.workshop.test_corpus(name), steps)

    def _before(self, job: Job, fingerprint: str) -> Result | None:
        """An earlier result of the same model; one that was trained again, on another base perhaps, has other scores."""
        result = self.store.read(job)
        return result if result is not None and result["fingerprint"] == fingerprint else None

    def _settings(self, job: Job, fingerprint: str, given: bool) -> dict[str, Any]:
        """Those of now; of what an earlier result of the same model brings with it, those of then."""
        settings = {**settings_of(self.profile, job), **({"training": None} if given else {})}
        if before := self._before(job, fingerprint):
            noted, evaluation = before["settings"], settings["evaluation"]
            settings["evaluation"] = {**evaluation, "sets": {**noted["evaluation"]["sets"], **evaluation["sets"]}}
            if noted.get("training"):
                settings["training"] = noted["training"]
        return settings

    def _store(self, job: Job, facts: Mapping[str, Any], scored: Mapping[str, Scored], *, given: bool = False) -> Result:
        """The result, whole: after this the job is done."""
        pivot = self.profile.pivot
        new = [one for one in self.profile.new if one in job.languages]
        result = {
            **self._about(job),
            "base": self._base_facts(job, facts["fingerprint"], scored),
            **facts,
            "scores": {name: one.document(pivot, new) for name, one in scored.items()},
            "settings": self._settings(job, facts["fingerprint"], given),
            "finished": _now(),
        }
        for name, one in scored.items():
            one.keep(self.store.translations(job), name, self.profile.evaluation.keep_lines)
            one.keep_lines(self.store.lines, name)
        self.store.write(job, result)
        self._stored(job.key)
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
            number: int | None = trained(job).id
            averages = {name: one.averages(self.profile.pivot, ()) for name, one in scored.items()}
        else:
            number, base = initial_of(job), self._base_result(job)
            fingerprint = base["fingerprint"]
            averages = {name: one["averages"] for name, one in base["scores"].items()}
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


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
