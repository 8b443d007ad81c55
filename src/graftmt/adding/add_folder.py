"""The folder in which a language is added: free to work in, tidy after a refusal, of the same settings as before. Layer 6."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from graftmt.adding.more_text import plan_more_text
from graftmt.adding.plan import Request, make_plan
from graftmt.base import Base
from graftmt.configuration import differences, to_mapping
from graftmt.devices import choose_device
from graftmt.errors import ConfigError, GraftError
from graftmt.folders import exclusive, make_folder, watched
from graftmt.places import begin_run
from graftmt.training import PackConfig
from graftmt.training.checkpoints import CannotGoOn, Checkpoints, as_today
from graftmt.training.run_configuration import MAY_CHANGE
from graftmt.training.run_folder import move_aside, settle


@contextmanager
def work_folder(request: Request, base: Base, *, first: bool) -> Iterator[Path]:
    """The run's folder, free of an earlier run where --fresh asks for that; a temporary one for a dry run.

    Of several processes the `first` alone looks whether the folder is free, for a look is a lock on it, and two at a time would
    refuse each other. What is refused before it trains leaves no folder behind that was not there before.
    """
    options, folder = request.options, request.run
    if options.dry_run:
        with TemporaryDirectory(prefix="graftmt-") as temporary:
            yield Path(temporary)
        return
    if first and folder.exists():
        with exclusive(folder, "the run"):  # another process may be writing here: better to hear of it now
            if not options.fresh:
                settle(Checkpoints(folder / "checkpoints", 1))
    if options.fresh and folder.exists():
        if options.parent is not None and options.parent.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(f"--fresh would move the pack to continue, {options.parent}, aside; choose another --run.")
        with TemporaryDirectory(prefix="graftmt-") as temporary:  # a mistake in the text leaves the earlier run where it is
            plan = make_plan(request, base, Path(temporary), choose_device(options.device))
            if plan.augment is not None:
                plan_more_text(plan, timed=False)
        move_aside(folder)
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    if first:
        make_folder(folder)
        begin_run(folder, "pack")
    try:
        with watched(folder):
            yield folder
    except GraftError:
        if first and missing:
            remove_untrained(folder, missing[1:])
        raise


def remove_untrained(folder: Path, parents: Sequence[Path]) -> None:
    """Text that was held out and a vocabulary are soon made again; text that was translated, or a run that began, is kept."""
    if not folder.exists() or (folder / "config.yaml").exists() or any(folder.glob("augmented*")):
        return
    with suppress(GraftError), exclusive(folder, "the run"):  # unless another process has come to work here
        shutil.rmtree(folder, ignore_errors=True)
    for parent in parents:
        with suppress(OSError):  # another run may be in there by now
            parent.rmdir()


def check_earlier_run(config: PackConfig, *, only: Sequence[str] = ()) -> None:
    """A run that was begun here with other settings is not to be continued: said before the text is tokenised.

    `only` these settings are looked at, where others are not known yet.
    """
    checkpoints = Checkpoints(config.run / "checkpoints", 1)
    latest = checkpoints.latest()
    if latest is None:
        return
    today = as_today(checkpoints.read_document(latest)["config"], PackConfig)
    changed = [line for line in differences(today, to_mapping(config)) if line.partition(":")[0] not in MAY_CHANGE]
    changed = [line for line in changed if not only or line.partition(":")[0] in only]
    if changed:
        raise CannotGoOn(f"{config.run} holds a run with other settings ({'; '.join(changed)}). Use the same ones to resume it")


def steps_done(config: PackConfig) -> int:
    """Over all stages."""
    latest = Checkpoints(config.run / "checkpoints", 1).latest()
    if latest is None:
        return 0
    stage, _, step = latest.name.removeprefix("stage").partition("-step")
    return sum(one.steps for one in config.stages[: int(stage) - 1]) + int(step)
