"""What of a plan is done, what is missing, and how long the rest may take. Layer 7."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graftmt.experiments.jobs import Job, in_order
from graftmt.experiments.planning import Plan
from graftmt.experiments.store import Store, kind_of


def job_states(plan: Plan, store: Store) -> list[dict[str, Any]]:
    """Every job in the order in which it would be done; `others` counts its results of other settings."""
    expected = store.expected()
    return [
        {
            "job": job.key,
            "name": store.addresses.name(job),
            "done": store.is_done(job),
            "failed": store.failure(job),
            "others": store.others(job),
            "minutes": expected.get(kind_of(job)),
        }
        for job in plan.jobs
    ]


def row_states(plan: Plan, store: Store) -> list[dict[str, Any]]:
    """Every row with its jobs; `missing` are those it waits for and all that they need first."""
    expected = store.expected()
    done = {job: store.is_done(job) for job in plan.jobs}

    def state(jobs: Sequence[Job]) -> dict[str, Any]:
        missing = [job for job in in_order([job for job in jobs if not done[job]], store.profile) if not done[job]]
        times = [expected.get(kind_of(job)) for job in missing]
        return {
            "jobs": [job.key for job in jobs],
            "done": [job.key for job in jobs if done[job]],
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
