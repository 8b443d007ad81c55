"""The folder of a run, held by the processes that train together and by no other. Layer 4."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from graftmt.files import sweep
from graftmt.folders import exclusive
from graftmt.places import RUNS, begin_run, check_place
from graftmt.progress import say, silence
from graftmt.training.checkpoints import Checkpoints
from graftmt.training.distribution import Processes, processes
from graftmt.training.settling import settle


def move_aside(run: Path) -> None:
    """--fresh: an earlier run is kept under another name."""
    if run.exists():
        aside = next(p for n in range(1, 10_000) if not (p := run.with_name(f"{run.name}.old-{n}")).exists())
        with exclusive(run, "the run"):
            run.rename(aside)
        say(f"the earlier run is kept as {aside}")


@contextmanager
def held_run(run: Path, device: str, *, of: str, fresh: bool, sharded: bool = False) -> Iterator[Processes]:
    """The run's folder for the processes that train together and no other; of these, the first one alone speaks.

    `of`: what the run makes, which is a kind of folder in `places.RUNS`.
    """
    check_place(run, RUNS[of])
    with processes(device, sharded=sharded) as team, nullcontext() if team.first else silence():
        if fresh and team.first:
            move_aside(run)
        team.wait()
        with exclusive(run, "the run", stays=True) if team.first else nullcontext():
            if team.first:
                sweep(run)
                begin_run(run, of)
                settle(Checkpoints(run / "checkpoints", 1))
            team.wait()
            yield team
