"""What of a plan is done, what is missing or was made otherwise, and how long the rest may take. Layer 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graftmt.experiments.consistency import Otherwise
from graftmt.experiments.jobs import Job, in_order
from graftmt.experiments.planning import Plan
from graftmt.experiments.profiles import Profile
from graftmt.experiments.store import Store, kind_of


def job_states(profile: Profile, plan: Plan, store: Store, otherwise: Mapping[Job, Otherwise]) -> list[dict[str, Any]]:
    """Every job in the order in which it would be done."""
    expected = store.expected(profile)
    return [
        {
            "job": job.key,
            "done": store.is_done(job, profile) and job not in otherwise,
            "other_settings": otherwise[job].changed if job in otherwise else None,
            "failed": store.failure(job),
            "minutes": expected.get(kind_of(job)),
        }
        for job in plan.jobs
    ]


def row_states(profile: Profile, plan: Plan, store: Store, otherwise: Mapping[Job, Otherwise]) -> list[dict[str, Any]]:
    """Every row with its jobs; `missing` are those it waits for and all that they need first.

    One made or begun with other settings is neither done nor missing: `run` does not touch it.
    """
    expected = store.expected(profile)
    done = {job: store.is_done(job, profile) and job not in otherwise for job in plan.jobs}

    def state(jobs: Sequence[Job]) -> dict[str, Any]:
        wanted = [job for job in jobs if not done[job] and job not in otherwise]
        missing = [job for job in in_order(wanted, profile) if not done[job] and job not in otherwise]
        times = [expected.get(kind_of(job)) for job in missing]
        return {
            "jobs": [job.key for job in jobs],
            "done": [job.key for job in jobs if done[job]],
            "other_settings": {job.key: otherwise[job].changed for job in jobs if job in otherwise},
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
