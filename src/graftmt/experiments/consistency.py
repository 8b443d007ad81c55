"""What of an output folder was made or begun with other settings than those given now, found before any job begins. Layer 7.

Results that stand side by side are made in one way. What was made in another way is neither used nor replaced unasked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graftmt.errors import ConfigError
from graftmt.experiments.claims import Claims
from graftmt.experiments.definitions import run_owner
from graftmt.experiments.jobs import Job, base_job, in_order, trained, trains
from graftmt.experiments.runs import Runs
from graftmt.experiments.settings import settings_of
from graftmt.experiments.store import Store, other_settings

NAMED = 3
"""Files and folders that are named with what differs; the others are counted."""


@dataclass(frozen=True)
class Otherwise:
    """A result, a base or an unfinished run of other settings."""

    path: Path
    changed: str
    """What differs, for people."""
    held: bool = False
    """Another process is at it now."""


def made_otherwise(jobs: Sequence[Job], store: Store, runs: Runs) -> dict[Job, Otherwise]:
    """Jobs that are neither done nor to be done with the settings given → what is in their way."""
    found = {}
    for job in jobs:
        result = store.read(job)
        if result is not None and (changed := other_settings(result["settings"], settings_of(runs.profile, job))):
            found[job] = Otherwise(store.path(job), changed)
    missing = [job for job in jobs if job not in found and not store.is_done(job, runs.profile)]
    for job in in_order(missing, runs.profile):  # with what these need, which is made again where it is gone
        path, changed = runs.begun_otherwise(job)
        if changed and job not in found:
            found[job] = Otherwise(path, changed, held=_is_held(job, store))
    return found


def _is_held(job: Job, store: Store) -> bool:
    maker = base_job(run_owner(trained(job).id)) if trains(job) == "base" else job
    return Claims(store.folder / "locks", lambda text: None).is_held(maker.key)


def refusal(found: Mapping[Job, Otherwise], store: Store) -> str:
    """Why jobs cannot be done, and what to do; nothing where they can."""
    if not found:
        return ""
    for job, one in found.items():
        if one.held:
            return busy(job, one.changed)
    ways = {one.path: one.changed for one in found.values()}  # two bases may come out of one run
    lines = [f"  {path.relative_to(store.folder)}: {changed}" for path, changed in list(ways.items())[:NAMED]]
    more = [f"  and {len(ways) - NAMED} more, which --dry-run names"] if len(ways) > NAMED else []
    kinds = {"results": ("result", "file"), "bases": ("base", "folder"), "runs": ("unfinished run", "folder")}
    counts = {kind: sum(path.relative_to(store.folder).parts[0] == kind for path in ways) for kind in kinds}
    what = " and ".join(f"{n} {kinds[kind][0]}{'s' * (n > 1)}" for kind, n in counts.items() if n)
    many = len(ways) > 1
    things = " and ".join(dict.fromkeys(f"{kinds[kind][1]}{'s' * many}" for kind, n in counts.items() if n))
    after = ", also what stands on the base" if counts["bases"] else ""
    return "\n".join(
        [
            f"{what} in {store.folder} {'were' if many else 'was'} made with other settings than those given now:",
            *lines,
            *more,
            f"Give the settings of then, or another --output folder, or delete {'these' if many else 'this'} {things} to have "
            f"the work done again{after}.",
        ]
    )


def busy(job: Job, changed: str) -> str:
    return f"another process is at {job.key} with other settings ({changed}). Give the same, or another --output folder."


def check_settings(jobs: Sequence[Job], store: Store, runs: Runs) -> None:
    """All that is in the way is named at once, before anything is done."""
    if message := refusal(made_otherwise(jobs, store, runs), store):
        raise ConfigError(message)
