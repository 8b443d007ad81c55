"""What of a plan is done, what is missing or was made otherwise, and how long the rest may take. Layer 7."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graftmt.errors import ConfigError
from graftmt.experiments.jobs import Job, in_order
from graftmt.experiments.planning import Plan
from graftmt.experiments.profiles import Profile
from graftmt.experiments.settings import settings_of
from graftmt.experiments.store import Store, kind_of, other_settings

NAMED = 3
"""Files that are named with what differs; the others are counted."""


def made_otherwise(profile: Profile, plan: Plan, store: Store) -> dict[Job, str]:
    """Jobs whose result was made with other settings → what differs: neither done nor to be done again unasked."""
    found = {}
    for job in plan.jobs:
        result = store.read(job)
        if result is not None and (changed := other_settings(result["settings"], settings_of(profile, job))):
            found[job] = changed
    return found


def refusal(profile: Profile, plan: Plan, store: Store) -> str:
    """Why the plan cannot be run, and what to do; nothing where it can."""
    found = made_otherwise(profile, plan, store)
    if not found:
        return ""
    lines = [f"  {store.path(job).name}: {changed}" for job, changed in list(found.items())[:NAMED]]
    more = [f"  and {len(found) - NAMED} more, which --dry-run names"] if len(found) > NAMED else []
    count, them = (f"{len(found)} results", "these files") if len(found) > 1 else ("1 result", "this file")
    verb = "were" if len(found) > 1 else "was"
    return "\n".join(
        [
            f"{count} in {store.folder / 'results'} {verb} made with other settings than those given now:",
            *lines,
            *more,
            f"Give the settings of then, or another --output folder, or delete {them} to have the work done again.",
        ]
    )


def check_settings(profile: Profile, plan: Plan, store: Store) -> None:
    """Results that were made in another way are not mixed with new ones; all of them are named at once."""
    if message := refusal(profile, plan, store):
        raise ConfigError(message)


def job_states(profile: Profile, plan: Plan, store: Store) -> list[dict[str, Any]]:
    """Every job in the order in which it would be done."""
    expected = store.expected(profile)
    otherwise = made_otherwise(profile, plan, store)
    return [
        {
            "job": job.key,
            "done": store.is_done(job, profile) and job not in otherwise,
            "other_settings": otherwise.get(job),
            "failed": store.failure(job),
            "minutes": expected.get(kind_of(job)),
        }
        for job in plan.jobs
    ]


def row_states(profile: Profile, plan: Plan, store: Store) -> list[dict[str, Any]]:
    """Every row with its jobs; `missing` are those it waits for and all that they need first.

    One made with other settings is neither done nor missing: `run` does not touch it.
    """
    expected = store.expected(profile)
    otherwise = made_otherwise(profile, plan, store)
    done = {job: store.is_done(job, profile) and job not in otherwise for job in plan.jobs}

    def state(jobs: Sequence[Job]) -> dict[str, Any]:
        wanted = [job for job in jobs if not done[job] and job not in otherwise]
        missing = [job for job in in_order(wanted, profile) if not done[job] and job not in otherwise]
        times = [expected.get(kind_of(job)) for job in missing]
        return {
            "jobs": [job.key for job in jobs],
            "done": [job.key for job in jobs if done[job]],
            "other_settings": {job.key: otherwise[job] for job in jobs if job in otherwise},
            "missing": [job.key for job in missing],
            "failed": {job.key: message for job in jobs if (message := store.failure(job))},
            "minutes": None if None in times else sum(time for time in times if time is not None),
        }

    return [
        {
            "where": row.where,
            "number": row.number,
            "label": row.label,
            **state(row.jobs),
            "not_here": row.reason or None,
        }
        for row in plan.rows
    ]
