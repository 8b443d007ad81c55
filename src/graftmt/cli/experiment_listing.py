"""What `graftmt experiment run` and `list` show: jobs and rows with their states and minutes, and how a call ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftmt.cli.output import plain, tell
from graftmt.progress import announce

if TYPE_CHECKING:
    from graftmt.experiments.profiles import Profile


def show_jobs(profile: Profile, jobs: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=plain(f"{profile.title}: {len(jobs)} jobs, in this order"), title_justify="left")
    for name in ("job", "state", "minutes"):
        table.add_column(name, justify="right" if name == "minutes" else "left")
    for job in jobs:
        table.add_row(plain(job["job"]), plain(_state(job)), "" if job["done"] else _minutes(job["minutes"]))
    console = Console()
    console.print(table)
    console.print(_total(jobs), highlight=False)


def show_rows(profile: Profile, rows: list[dict[str, Any]], jobs: list[dict[str, Any]], folder: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=plain(f"{profile.title}, in {folder}"), title_justify="left")
    for name in ("", "model", "row", "done", "minutes left"):
        table.add_column(name, justify="right" if name in ("model", "done", "minutes left") else "left")
    for row in rows:
        state = f"{len(row['done'])}/{len(row['jobs'])}" if row["jobs"] else "–"
        state += " (failed)" if row["failed"] else ""
        label = f"{row['label']} (not here: {row['not_here']})" if row["not_here"] else row["label"]
        cells = (row["where"], row["number"], label, state, _minutes(row["minutes"]) if row["missing"] else "")
        table.add_row(*map(plain, cells))
    console = Console()
    console.print(table)
    shared = len({key for row in rows for key in row["missing"]}) < sum(len(row["missing"]) for row in rows)
    if shared:
        console.print("A row's minutes are with all that it still needs, also where other rows need the same.", highlight=False)
    console.print(_total(jobs), highlight=False)


def _jobs(count: int) -> str:
    return f"{count} job{'s' * (count != 1)}"


def _minutes(minutes: float | None) -> str:
    return "?" if minutes is None else f"{minutes:.1f}" if minutes < 10 else f"{minutes:.0f}"


def _state(job: dict[str, Any]) -> str:
    return "done" if job["done"] else f"failed: {job['failed']}" if job["failed"] else "to do"


def _total(jobs: list[dict[str, Any]]) -> str:
    minutes = [job["minutes"] for job in jobs if not job["done"]]
    count = sum(job["others"] for job in jobs)
    others = f" {count} result{'s' * (count != 1)} of these jobs are of other settings, text or bases." if count else ""
    if not minutes:
        return f"Everything is done.{others}"
    unknown = minutes.count(None)
    if unknown == len(minutes):
        return f"{_jobs(unknown)} to do; how long they take is not known yet.{others}"
    known = sum(one for one in minutes if one is not None)
    more = f", and {unknown} of which nothing is known yet" if unknown else ""
    return f"{_jobs(len(minutes))} to do: about {_minutes(known)} minutes{more}.{others}"


def say_outcome(
    done: list[str],
    here: list[str],
    failed: dict[str, str],
    skipped: dict[str, str],
    left: list[str],
    stopped: str,
    folder: Path,
) -> None:
    for job, reason in skipped.items():
        announce(f"left out: {job}: {reason}")
    for job, message in failed.items():
        announce(f"failed: {job}: {message}")
    if stopped:
        announce(f"graftmt: {stopped}; everything is saved. Rerun the command to resume.")
    others = len(done) - len(here)
    by = f" ({len(here)} here, {others} by other processes)" if others else ""
    tell(f"{_jobs(len(done))} done now{by}, {len(failed)} failed, {len(left)} left; results in {folder / 'results'}")
