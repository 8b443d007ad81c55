"""A job: one model of the paper, or two combined, to be trained and scored here; what it needs first. Layer 7."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from graftmt.data import Direction
from graftmt.experiments.definitions import PROXY, Model, Trains, models
from graftmt.experiments.profiles import Profile

Kind = Literal["model", "composition", "pivot", "size"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One thing to train or to combine, and to score: one result file."""

    kind: Kind
    model: int | None = None
    source: int | None = None
    target: int | None = None
    initial: int | None = None
    """The base of its packs, where it is not the one that they name."""
    plus: str | None = None
    """A component more than the model's recipe has."""
    languages: tuple[str, ...] = ()
    """The new ones; of compositions and bilingual models source and target, of bases none."""
    seed: int = 1
    lines: int | None = None
    """Of training text, where they are limited."""

    @property
    def key(self) -> str:
        """The name of its result: model-7-el-seed1, compose-14+31-el-uk-seed1, model-4."""
        words: list[str] = [{"composition": "compose"}.get(self.kind, self.kind)]
        words.append(f"{self.source}+{self.target}" if self.model is None else str(self.model))
        together = self.model is not None and trained(self).trains != "bilingual"
        words += ["+".join(self.languages)] if together and self.languages else self.languages
        if self.initial is not None:
            words.append(f"on{self.initial}")
        if self.plus is not None:
            words.append(re.sub(r"[^\w]+", "-", self.plus))
        if self.lines is not None:
            words.append(str(self.lines))
        if self.languages:
            words.append(f"seed{self.seed}")
        return "-".join(words)


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """The language whose code a pack takes for `code:proxy`."""

    language: str
    by: str | None = None
    """The name of the re-trained model in which its code is the nearest; None where the profile names the language."""
    distances: Mapping[str, float] = field(default_factory=dict)
    """Of all candidates."""

    def __str__(self) -> str:
        near = [f"{language} {far:.2f}" for language, far in sorted(self.distances.items(), key=lambda one: one[1])[:3]]
        return f"{self.language}, " + (f"the nearest code in {self.by} ({', '.join(near)})" if near else "named by the profile")


def trained(job: Job) -> Model:
    """The model that is trained for a job: the one that `(44) + pivot` or `(59) @100k steps` is about, otherwise its own."""
    assert job.model is not None
    found = models()[job.model]
    if found.trains == "none" and found.initial is not None and found.updates is None:
        return models()[found.initial]
    return found


def trains(job: Job) -> Trains | Literal["composition"]:
    """What kind of training a job is; a checkpoint after fewer updates is a training of the same kind, cut short."""
    if job.model is None:
        return "composition"
    model = trained(job)
    if model.trains == "none" and model.initial is not None:
        return models()[model.initial].trains
    return model.trains


def described(job: Job) -> Model:
    """The model whose languages, recipe and text a job has; `(59) @100k steps` has those of (59)."""
    model = trained(job)
    return models()[model.initial] if model.updates is not None and model.initial is not None else model


def initial_of(job: Job) -> int | None:
    """The number of the base that a job's model starts from."""
    if job.initial is not None:
        return job.initial
    if job.model is None:
        assert job.source is not None
        return models()[job.source].initial
    return described(job).initial


# What a job needs first


def needs(job: Job, profile: Profile) -> list[Job]:
    """The jobs whose models must be there: its base, its text's teacher, its proxy's oracle, the models that it combines."""
    if job.kind == "composition" or (job.kind == "pivot" and job.model is None):
        source, target = job.languages
        return [
            pack_job(number, language, job.seed, profile, initial=job.initial)
            for number, language in ((job.source, source), (job.target, target))
            if number is not None
        ]
    kind = trains(job)
    if job.kind == "pivot":
        if kind == "bilingual":
            return [replace(job, kind="model", languages=hop) for hop in hops(Direction(*job.languages), profile.pivot)]
        return [replace(job, kind="model", model=trained(job).id)]
    if kind == "base":
        return []
    found = []
    start = initial_of(job)
    if start is not None:
        found.append(base_job(start))
    teacher = profile.augmentation.teacher
    if trained(job).data.back_translated and teacher is not None and teacher != start:
        found.append(base_job(teacher))
    if (oracle := oracle_of(job, profile)) is not None:
        found.append(oracle)
    return found


def oracle_of(job: Job, profile: Profile) -> Job | None:
    """The re-trained model that says which code `code:proxy` is: of those on the job's base, the one with most new languages.

    None where the profile names the proxy itself, and where no model of the paper is re-trained so.
    """
    if job.plus != PROXY or job.languages[0] in profile.proxies:
        return None
    found = [model for model in models().values() if model.trains == "retrain" and model.initial == initial_of(job)]
    knowing = [model for model in found if job.languages[0] in _together(model, profile)]
    if not knowing:
        return None
    chosen = max(knowing, key=lambda model: len(model.languages))
    return Job(kind="model", model=chosen.id, languages=_together(chosen, profile), seed=profile.seed)


def no_oracle(job: Job) -> str:
    """Why the nearest code cannot be computed."""
    return f"no model that starts from ({initial_of(job)}) is re-trained with {job.languages[0]}, so no code is known"


def name_proxy(job: Job) -> str:
    """What to do where the nearest code cannot be computed."""
    return f"Name the initial language whose code it takes in the profile, proxies: {{{job.languages[0]}: LANGUAGE}}."


def hops(direction: Direction, pivot: str) -> list[Direction]:
    if pivot in direction:
        return [direction]
    return [Direction(direction.source, pivot), Direction(pivot, direction.target)]


def base_job(number: int) -> Job:
    return Job(kind="model", model=number)


def pack_job(number: int, language: str, seed: int, profile: Profile, *, initial: int | None = None) -> Job:
    """The pack of a model for a language: its own, or the one that it shares with others."""
    together = _together(models()[number], profile)
    languages = together if len(models()[number].languages) > 1 and language in together else (language,)
    return Job(kind="model", model=number, languages=languages, seed=seed, initial=initial)


def _together(model: Model, profile: Profile) -> tuple[str, ...]:
    """The new languages that a model has at once; of the paper's, those that the profile has."""
    return tuple(language for language in profile.new if language in model.languages)


# What is scored


def directions_of(job: Job, profile: Profile) -> list[Direction]:
    """All directions that a job is scored in, so that any table can be filled from its result."""
    old = (profile.pivot, *profile.others)
    if job.model is None:
        return [Direction(*job.languages)]
    kind = trains(job)
    if kind == "bilingual":
        return [Direction(*job.languages)]
    if kind == "pack":
        pairs = [(new, other) for new in job.languages for other in old]
        return [Direction(*(pair if trained(job).side == "source" else pair[::-1])) for pair in pairs]
    known = (*old, *job.languages)
    return [Direction(a, b) for a in known for b in known if a != b]


# In which order


def in_order(wanted: Sequence[Job], profile: Profile) -> tuple[Job, ...]:
    """Bases, then packs base by base, what they are combined to, then what is costly; and all that these need.

    A pack that needs a re-trained model comes after it, with the last.
    """
    found: dict[Job, int] = {}

    def add(job: Job) -> int:
        if job not in found:
            needed = [add(one) for one in needs(job, profile)]
            found[job] = max(_rank(job), *needed) if needed else _rank(job)
        return found[job]

    for job in wanted:
        add(job)
    return tuple(sorted(found, key=lambda job: (found[job], initial_of(job) or 0)))


def _rank(job: Job) -> int:
    kind = trains(job)
    if kind == "base":
        return 0 if job.kind == "model" else 2
    if kind in ("pack", "composition"):
        return 1 if kind == "pack" else 2
    return (3 if kind == "bilingual" else 5) + (job.kind == "pivot")
