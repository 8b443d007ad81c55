"""The folder of a run: held by the processes that train together and no other; put in order before it resumes. Layer 4.

Damaged checkpoints are found and named, moved aside, and made again from an earlier one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from safetensors import SafetensorError, safe_open

from graftmt.checked import check_files, write_checksums
from graftmt.documents import write_json
from graftmt.errors import CheckpointError, GraftError
from graftmt.files import atomic_folder, kind_of_path, sweep
from graftmt.folders import exclusive
from graftmt.places import RUNS, begin_run, check_place
from graftmt.progress import say, silence
from graftmt.training.checkpoints import FORMAT, CannotGoOn, Checkpoints, RunState, read_best_document, read_state_document
from graftmt.training.distribution import Processes, processes


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


def settle(checkpoints: Checkpoints) -> None:
    """Before a run resumes: moves damaged checkpoints aside, so that it resumes from the last whole one.

    It then ends as it would have, because a batch depends on seed and step alone. Best weights that are damaged are made again.
    If that takes a checkpoint that is no longer there, it is an error: the run would have to start over, which needs --fresh.
    """
    checkpoints.sweep()
    found = checkpoints.newest_first()
    problems: dict[Path, GraftError] = {}
    for path in found:
        if (problem := _problem(path)) is None:
            break
        problems[path] = problem
    if found and len(problems) == len(found):
        raise CannotGoOn(f"{problems[found[0]]} There is no earlier checkpoint: restore {found[0]} from a copy")
    for path, problem in problems.items():
        say(f"{problem} It is kept as {_put_aside(path, 'damaged')}; the run resumes at the checkpoint before it.")
    if whole := found[len(problems) :]:
        _settle_best(checkpoints, whole)


def _settle_best(checkpoints: Checkpoints, found: Sequence[Path]) -> None:
    """The best weights of the stage that the newest checkpoint belongs to: whole, or made again."""
    state = _state(found[0])
    problem = None if state is None else _problem_of_best(checkpoints, state)
    if state is None or problem is None:
        return
    best = checkpoints.best(state.stage)
    for number, path in enumerate(found):
        earlier = state if number == 0 else _state(path)
        if earlier is None or (number > 0 and _problem(path) is not None):
            continue
        if _holds_best(earlier, state):
            _say_damaged(best, problem, f"it is made again from {path.name}")
            _restore_best(path, earlier, best)
            return
        if _comes_before_best(checkpoints, earlier, state):
            _say_damaged(best, problem, f"it is made again: the run resumes at {path.name}")
            for later in found[:number]:
                _put_aside(later, "later")
            return
    raise checkpoints.advised(best, problem)


def _holds_best(earlier: RunState, state: RunState) -> bool:
    """Whether a checkpoint was saved at the very step whose weights are the best."""
    placed = (earlier.stage, earlier.step, earlier.best_step) == (state.stage, state.best_step, state.best_step)
    return placed and earlier.best_validation is not None


def _comes_before_best(checkpoints: Checkpoints, earlier: RunState, state: RunState) -> bool:
    """Whether a run that resumes from a checkpoint reaches the step whose weights are the best."""
    if earlier.stage == state.stage:
        return earlier.best_score is None or earlier.step < state.best_step
    return _problem_of_best(checkpoints, earlier) is None  # the later stage begins again, with the best of this one


def _restore_best(path: Path, state: RunState, best: Path) -> None:
    with atomic_folder(best) as temporary:
        shutil.copyfile(path / "model.safetensors", temporary / "model.safetensors")
        write_json(temporary / "best.json", state.best_validation)
        write_checksums(temporary)


def _say_damaged(best: Path, problem: GraftError, what: str) -> None:
    kept = f"It is kept as {_put_aside(best, 'damaged')}, and " if os.path.lexists(best) else ""
    say(f"{problem} {kept}{what if kept else what.capitalize()}.")


def _put_aside(path: Path, why: str) -> str:
    aside = next(p for n in range(1, 10_000) if not os.path.lexists(p := path.with_name(f"{why}-{n}-{path.name}")))
    path.rename(aside)
    return aside.name


def _state(path: Path) -> RunState | None:
    """The counters of a checkpoint; None if it is damaged, or of another version; the reader reports it."""
    try:
        document = read_state_document(path)
    except GraftError:
        return None
    return RunState(**document["state"]) if document["format"] == FORMAT else None


def _problem(path: Path) -> GraftError | None:
    """What is wrong with a checkpoint: each file has its checksum or, without one, can be read as far as its lengths go."""
    try:
        read_state_document(path)
        _check_contents(path, "the checkpoint", "model.safetensors", "optimizer.safetensors")
    except GraftError as error:
        return error
    return None


def _problem_of_best(checkpoints: Checkpoints, state: RunState) -> GraftError | None:
    """What is wrong with the best weights of a stage. Before the first validation there need be none."""
    best = checkpoints.best(state.stage)
    try:
        if best.is_dir():
            _check_contents(best, "the best checkpoint", "model.safetensors")
            read_best_document(best)
        elif os.path.lexists(best):
            raise CheckpointError(f"the best checkpoint: {best} is {kind_of_path(best)}; a folder was expected.")
        elif state.best_score is not None:
            raise CheckpointError(f"the best checkpoint: there is no folder {best}.")
    except GraftError as error:
        return error
    return None


def _check_contents(path: Path, what: str, *tensors: str) -> None:
    """Each file has its checksum; a tensor file of an earlier version, which has none, is as long as its header says."""
    check_files(path, what)
    for name in tensors:
        if not (path / name).is_file():
            raise CheckpointError(f"{what}: there is no file {path / name}.")
        try:
            with safe_open(path / name, framework="pt"):
                pass
        except (OSError, SafetensorError) as error:
            raise CheckpointError(f"{what}: {path / name} is truncated or damaged ({error}).") from None
