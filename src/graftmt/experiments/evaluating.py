"""One job into its result: the model from the workshop, scored on every test set, stored with all that it stands on. Layer 7.

What a job needs and is not there is made and scored on the way. Which job is next, and what follows where another process has
what this one needs (`Held`) or a job fails, is for `scheduling.py`.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from graftmt.assessment.evaluation_folder import digest
from graftmt.base import Base
from graftmt.data import Direction
from graftmt.evaluation import Scores
from graftmt.experiments.job_settings import data_words, set_settings, training_settings
from graftmt.experiments.jobs import Job, base_job, directions_of, hops, initial_of, needs, trained, trains
from graftmt.experiments.made import Made
from graftmt.experiments.score_files import from_document, to_document
from graftmt.experiments.set_scores import SetScores, score, score_in_hops
from graftmt.experiments.store import FORMAT, Result, Store, kind_of
from graftmt.experiments.workshop import Workshop
from graftmt.packs import load_pack, read_pack_document
from graftmt.translator import Translator

ScoreSet = Callable[[str, Sequence[Direction]], SetScores]
"""A test set and the directions that it lacks → their scores."""


class Evaluator:
    """Jobs into results, one at a time."""

    def __init__(self, workshop: Workshop, store: Store, stored: Callable[[str], None]) -> None:
        """`stored` is told of each result, by its job's key."""
        self.workshop, self.store, self._stored = workshop, store, stored
        self.addresses, self.profile = workshop.addresses, workshop.profile

    def evaluate(self, job: Job) -> Result:
        """The result of one job, and before it of whatever it needs that is not there."""
        combined = job.kind in ("composition", "pivot")
        parts = [self.workshop.model(one) for one in (needs(job, self.profile) if combined else [job])]
        if job.model is None:  # a pack whose result is of another model, or lacks something, is scored now
            for needed, made in zip(needs(job, self.profile), parts, strict=True):
                self._scored(needed, made)
        if trains(job) not in ("base", "bilingual"):
            # Before the job's own scores: where another process is at it, these would be made in vain.
            self._base_result(job)
        fingerprint = "+".join(part.fingerprint for part in parts)
        scored, seconds = self._scores(job, fingerprint, self._scorer(job, parts))
        spent = {"evaluation": round(seconds, 1)}
        facts: dict[str, Any] = {
            "parts": self.addresses.parts(job) if combined else [],
            "fingerprint": fingerprint,
            "parameters": sum(part.parameters or 0 for part in parts) or None,
            "recipe": " / ".join(part.recipe for part in parts if part.recipe) or None,
            "seconds": spent,
        }
        if not combined:
            (made,) = parts
            facts |= {"steps": made.steps, "curve": made.curve, "verified": made.verified, "seconds": {**made.seconds, **spent}}
            facts |= {} if made.codes is None else {"codes": made.codes}
        return self._store(job, facts, scored)

    def record_failure(self, job: Job, message: str) -> None:
        self.store.write_failure(job, {**self._about(job), "failed": message, "finished": _now()})

    # What it needs

    def _scored(self, job: Job, made: Made) -> Result:
        """The result of a model that is here; where the one kept is of another, or lacks something, it is scored now."""
        result = self._result_of(job, made)
        if result is None:
            with self.workshop.locks.take(self.addresses.known_name(job)):
                result = self._result_of(job, made) or self.evaluate(job)
        return result

    def _result_of(self, job: Job, made: Made) -> Result | None:
        result = self._before(job, made.fingerprint)
        return result if result is not None and self.store.is_whole(job, result) else None

    def _before(self, job: Job, fingerprint: str) -> Result | None:
        """An earlier result of the same model; one that was trained again may have other scores."""
        result = self.store.read(job)
        return result if result is not None and result["fingerprint"] == fingerprint else None

    def _base_result(self, job: Job) -> Result:
        """Of the base that a job's packs or re-training start from."""
        number = initial_of(job)
        assert number is not None
        return self._scored(base_job(number), self.workshop.base(number))

    # Scores

    def _scores(self, job: Job, fingerprint: str, score_set: ScoreSet) -> tuple[dict[str, Result], float]:
        """Every test set as the result has it, with those of other settings; and how long that took, then and now."""
        started = time.monotonic()
        before = self._before(job, fingerprint) or {"scores": {}, "seconds": {}}
        found: dict[str, Result] = dict(before["scores"])
        name = self.addresses.known_name(job)
        made: dict[str, SetScores] = {}
        for set_name, plain in self.addresses.sets_of(job).items():
            scores = from_document(found.get(set_name, {}), set_name, name)
            lacking = [one for one in directions_of(job, self.profile) if str(one) not in scores.directions]
            if lacking:
                self.workshop.check_time()
                made[plain] = more = self._of_best(job, fingerprint, plain, lacking, made) or score_set(set_name, lacking)
                translations = self.addresses.output / "translations"
                more.keep(translations, name, set_name, self.profile.evaluation.keep_lines)
                rows = Scores((*scores, *more.scores.labelled(set=set_name, job=name)))
                found[set_name] = {
                    "set": plain,
                    "settings": set_settings(self.profile, plain),
                    "text": self.addresses.test_text(plain),
                    **to_document(rows, self.profile.pivot, self._new(job)),
                }
        return found, before["seconds"].get("evaluation", 0.0) + time.monotonic() - started

    def _of_best(
        self, job: Job, fingerprint: str, plain: str, directions: Sequence[Direction], made: Mapping[str, SetScores]
    ) -> SetScores | None:
        """Scores of the best checkpoint, made just now, for a set that asks for the last one, where that is the best."""
        sets = self.profile.evaluation.sets
        if sets[plain].checkpoint != "last" or read_pack_document(self.workshop.last_pack(job))["fingerprint"] != fingerprint:
            return None
        twins = (scored for name, scored in made.items() if sets[name] == replace(sets[plain], checkpoint="best"))
        return next((scored for scored in twins if set(map(str, directions)) == scored.translations.keys()), None)

    def _scorer(self, job: Job, parts: Sequence[Made]) -> ScoreSet:
        """With one model, perhaps in two hops, or with two bilingual ones, which have one direction together."""
        corpus_of, profile = self.workshop.test_corpus, self.profile
        if job.kind == "pivot" and trains(job) == "bilingual":
            translators = [Translator(Base.load(part.folder, device=self.workshop.device)) for part in parts]
            steps = list(zip(translators, hops(Direction(*job.languages), profile.pivot), strict=True))

            def in_hops(set_name: str, directions: Sequence[Direction]) -> SetScores:
                plain = self.addresses.sets[set_name]
                return score_in_hops(profile, plain, corpus_of(plain), steps)

            return in_hops
        translator, fingerprint = self._translator(job, parts), "+".join(part.fingerprint for part in parts)

        def at_once(set_name: str, directions: Sequence[Direction]) -> SetScores:
            plain = self.addresses.sets[set_name]
            asked = digest(fingerprint, list(map(str, directions)))  # what is scored in other directions is kept apart
            last = profile.evaluation.sets[plain].checkpoint == "last"
            return score(
                *(profile, plain, corpus_of(plain), self._last_translator(job) if last else translator, directions),
                through=profile.pivot if job.kind == "pivot" else None,
                work=self.store.work(job) / asked / set_name,
            )

        return at_once

    def _translator(self, job: Job, parts: Sequence[Made]) -> Translator:
        if job.model is None or (job.kind != "pivot" and trains(job) == "pack"):
            packs = {side: load_pack(part.folder) for side, part in zip("st", parts, strict=False)}
            return Translator(self.workshop.reside(self.workshop.base_of(job).folder).scorer, packs)
        (made,) = parts
        if job.kind == "pivot" or trains(job) == "base":
            return Translator(self.workshop.reside(made.folder).scorer)
        return Translator(Base.load(made.folder, device=self.workshop.device))

    def _last_translator(self, job: Job) -> Translator:
        """With the weights that a pack's training ended with."""
        pack = load_pack(self.workshop.last_pack(job))
        return Translator(self.workshop.reside(self.workshop.base_of(job).folder).scorer, {"s": pack})

    # Results

    def _store(self, job: Job, facts: Mapping[str, Any], scored: Mapping[str, Result]) -> Result:
        """The result, whole: after this the job is done."""
        result = {
            **self._about(job),
            "base": self._base_facts(job, facts["fingerprint"], scored),
            **facts,
            "scores": scored,
            "finished": _now(),
        }
        self.store.write(job, result)
        self._stored(job.key)
        return result

    def _new(self, job: Job) -> list[str]:
        return [one for one in self.profile.new if one in job.languages]

    def _about(self, job: Job) -> Result:
        """Which job it is, and how its model is made; of one that is given or combined, nothing is known here."""
        is_trained = job.kind not in ("composition", "pivot") and not self.addresses.is_given(job)
        proxy = self.addresses.proxy(job)
        settings = training_settings(self.profile, job, None if proxy is None else proxy.language) if is_trained else None
        return {
            "format": FORMAT,
            "job": job.key,
            "name": self.addresses.name(job),
            "kind": job.kind,
            "trains": kind_of(job),
            "profile": self.profile.name,
            "model": job.model,
            "source": job.source,
            "target": job.target,
            "initial": job.initial,
            "plus": job.plus,
            "languages": list(job.languages),
            "seed": job.seed,
            "lines": job.lines,
            "recipe": None,
            "data": data_words(job, self.profile),
            "steps": None,
            "machine": self._machine,
            "versions": self._versions,
            "settings": settings,
            "text": self.addresses.text(job) if is_trained else {},
            **({} if proxy is None else {"proxy": asdict(proxy)}),
        }

    def _base_facts(self, job: Job, fingerprint: str, scored: Mapping[str, Result]) -> Result | None:
        """The base that a result stands on, by fingerprint and averages; a base stands on itself, a bilingual model on none."""
        kind = trains(job)
        if kind == "bilingual":
            return None
        number = trained(job).id if kind == "base" else initial_of(job)
        assert number is not None
        if kind != "base":
            base = self._base_result(job)
            fingerprint, scored = base["fingerprint"], base["scores"]
        found = {name: {key: one[key] for key in ("set", "settings", "averages")} for name, one in scored.items()}
        return {
            "id": number,
            "name": self.addresses.name(base_job(number)),
            "fingerprint": fingerprint,
            "scores": found,
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
