"""Where the models of jobs are made, and the settings that each was made or begun with. Layer 7.

OUTPUT/bases/4              a base; its settings are in 4.json beside it
OUTPUT/runs/base-4          the run that it comes out of, with those before it
OUTPUT/runs/JOB             of a bilingual model
OUTPUT/runs/BASE/JOB        of a pack or a re-training, by the beginning of the base's fingerprint

A run that has begun has its settings in begun.json, one whose model is finished in made.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graftmt.base import read_base_document
from graftmt.configuration import differences, from_mapping
from graftmt.errors import ConfigError, DataError, first_few
from graftmt.experiments.definitions import chain_of, run_owner
from graftmt.experiments.jobs import Job, base_job, initial_of, trained, trains
from graftmt.experiments.profiles import Profile
from graftmt.experiments.settings import as_noted, settings_of
from graftmt.files import read_json, write_json
from graftmt.training.checkpoints import Checkpoints

BEGUN, MADE = "begun.json", "made.json"


@dataclass(frozen=True)
class Runs:
    """The models of one output folder."""

    profile: Profile
    output: Path
    given: Mapping[int, Path] = field(default_factory=dict)
    """Number of a model → the folder of a base to take for it."""

    # Bases

    def base(self, number: int) -> Path:
        return self.given.get(number) or self.output / "bases" / str(number)

    def has_base(self, number: int) -> bool:
        return (self.base(number) / "base.json").is_file()

    def chain(self, number: int) -> list[int]:
        """The bases that come out of one run: where another one follows, this one is its first stage."""
        owner = run_owner(number)
        alone = owner in self.given or str(owner) in self.profile.left_out
        return chain_of(number if alone else owner)

    def base_run(self, number: int) -> Path:
        return self.output / "runs" / f"base-{self.chain(number)[-1]}"

    def base_changed(self, number: int) -> str:
        """What the training of a base that is there was given otherwise; of one that was given, nothing is known."""
        note = self.base(number).with_suffix(".json")
        return "" if number in self.given else self.changed(base_job(number), note)

    # Runs

    def run(self, job: Job, base_fingerprint: str | None = None) -> Path:
        """Of a job that trains something on a base, or, without one, a bilingual model."""
        runs = self.output / "runs"
        return runs / job.key if base_fingerprint is None else runs / base_fingerprint[:12] / job.key

    def begin(self, run: Path, job: Job) -> None:
        """Before a training: notes its settings, unless it goes on from checkpoints, which are of those noted before."""
        if not _has_checkpoints(run):
            write_json(run / BEGUN, {"settings": self.settings(job)})

    def is_made(self, job: Job, run: Path) -> bool:
        return (run / MADE).is_file() and not self.changed(job, run / MADE)

    def begun_otherwise(self, job: Job) -> tuple[Path, str]:
        """The base of other settings, or the unfinished run of such, that is in the way of a job; and what differs."""
        nothing = Path(), ""
        if job.kind in ("composition", "pivot"):
            return nothing
        if trains(job) == "base":
            number = trained(job).id
            if self.has_base(number):
                return self.base(number), self.base_changed(number)
            job, run = base_job(self.chain(number)[-1]), self.base_run(number)
        else:
            number_of_base = initial_of(job)
            if number_of_base is None:
                run = self.run(job)
            elif self.has_base(number_of_base):
                run = self.run(job, read_base_document(self.base(number_of_base))["fingerprint"])
            else:
                return nothing  # on a base that is still to be made, all is made anew
        # A run without checkpoints starts over anyway, and a model that is finished but was never scored is made again.
        unfinished = _has_checkpoints(run) and not (run / MADE).is_file()
        return (run, self.changed(job, run / BEGUN)) if unfinished else nothing

    def settings(self, job: Job) -> Any:
        return settings_of(self.profile, job)["training"]

    def changed(self, job: Job, note: Path) -> str:
        """What its training was given and would not be given now; nothing where there is no note of it."""
        before = read_json(note, "the note of a model").get("settings") if note.is_file() else None
        return "" if before is None else in_short(differences(before, as_noted(self.settings(job), before), "training"))


@dataclass(frozen=True, kw_only=True)
class _Facts:
    """made.json of a run, besides its settings."""

    curve: list[dict[str, Any]]
    recipe: str | None = None
    parameters: int | None = None
    steps: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    verified: dict[str, bool] = field(default_factory=dict)


def made_facts(note: Path) -> dict[str, Any]:
    """What is noted of a model that is finished."""
    found = read_json(note, "the note of a model")
    found.pop("settings", None)
    try:
        from_mapping(_Facts, found)
    except ConfigError as error:
        raise DataError(
            f"{note} is damaged ({str(error).rstrip('.')}). Restore it from a copy, or delete its folder to have the "
            "model made again."
        ) from None
    return found


def in_short(differing: list[str]) -> str:
    return first_few(differing, separator="; ")


def _has_checkpoints(run: Path) -> bool:
    return Checkpoints(run / "checkpoints", 1).latest() is not None
