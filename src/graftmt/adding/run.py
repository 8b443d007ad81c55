"""`graftmt add`: look at the text, say what it will cost, train the pack, judge it, write all of that on its card. Layer 6."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from graftmt.adding.corpus import AddCorpus, open_add_corpus
from graftmt.adding.estimate import Estimate, duration, estimate
from graftmt.adding.examination import Examination, examine
from graftmt.adding.more_text import PlannedText, plan_more_text, poor_text, with_more_text
from graftmt.adding.request import (
    FEWEST_LINES,
    NO_AUGMENTATION,
    AddOptions,
    check_early,
    choose_steps,
    default_words,
    make_config,
    recipe_of,
    run_folder,
    with_defaults,
)
from graftmt.adding.verdict import Verdict, judge, no_verdict
from graftmt.base import Base, choose_device, world_size
from graftmt.configuration import differences, to_mapping
from graftmt.errors import ConfigError, GraftError
from graftmt.files import exclusive
from graftmt.folders import make_folder, watched
from graftmt.packs import Pack, check_recipe, pack_tokenizer, save_pack
from graftmt.places import begin_run
from graftmt.training import PackConfig, train_pack
from graftmt.training.checkpoints import CannotGoOn, Checkpoints, as_today, way_out
from graftmt.training.configuration import MAY_CHANGE
from graftmt.training.distribution import processes
from graftmt.training.pack_preparation import PackJob, pack_subwords, prepare_pack, resolved_recipe
from graftmt.training.run import move_aside
from graftmt.training.stopping import Stopped

Say = Callable[[str], None]

WAY_OUT = "use another folder (--run FOLDER), or --fresh to start over; the earlier run is then kept beside the new one"


@dataclass
class AddResult:
    """What was found at each step; the later ones are missing after a dry run."""

    config: PackConfig
    corpus: AddCorpus
    examination: Examination
    estimate: Estimate | None = None
    pack: Pack | None = None
    path: Path | None = None
    verdict: Verdict | None = None
    """None where the held-out text had no line for one; `unjudged` says so."""
    unjudged: str = ""
    before: Verdict | None = None
    """Of the pack that was continued."""
    planned: PlannedText | None = None
    """What --augment would add, which a dry run does not make."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Phase → how long it took."""

    def lines(self, told: Examination | None = None) -> list[str]:
        """What is known before training, for a person; of the text nothing where the same was `told` for the other side."""
        whose = f"{', '.join(self.config.languages)} as {self.config.side}"
        lines = [f"The recipe, {whose}: {self.config.recipe}"]
        lines += [] if self.examination == told else self._text_lines()
        if self.planned is not None:
            lines += [str(self.planned), *(f"note: {note}" for note in self.planned.notes)]
        return lines

    def estimate_line(self) -> str:
        return f"Estimate for {', '.join(self.config.languages)} as {self.config.side}: {self.estimate}."

    def _text_lines(self) -> list[str]:
        rows = self.examination.rows()
        width = max(len(name) for name, _ in rows)
        lines = ["The text:", *(f"  {name:<{width}}  {value}" for name, value in rows)]
        return lines + [f"warning: {warning}" for warning in self.examination.warnings]

    def to_dict(self) -> dict[str, Any]:
        return {
            "languages": list(self.config.languages),
            "side": self.config.side,
            "recipe": str(self.pack.recipe) if self.pack else self.config.recipe,
            "run": str(self.config.run),
            "steps": sum(stage.steps for stage in self.config.stages),
            "partners": [name for name in self.corpus.partners if name not in self.corpus.few],
            "few_lines": list(self.corpus.few),
            "augmentation": self.corpus.augmentation,
            "held_out": self.corpus.held_out,
            "text": self.examination.to_dict(),
            "planned": self.planned.to_dict() if self.planned else None,
            "estimate": self.estimate.to_dict() if self.estimate else None,
            "pack": str(self.path) if self.path else None,
            "fingerprint": self.pack.fingerprint if self.pack else None,
            "parameters": self.pack.size if self.pack else None,
            "seconds": self.pack.card.get("training_seconds") if self.pack else None,
            "seconds_by_phase": {phase: round(seconds, 1) for phase, seconds in self.seconds.items()},
            "verdict": self.verdict.facts() if self.verdict else None,
            "unjudged": self.unjudged or None,
            "before": self.before.facts() if self.before else None,
        }


def add_language(
    options: AddOptions, say: Say = print, base: Base | None = None, *, told: Examination | None = None
) -> AddResult:
    """Makes one pack. `base` is one that is resident already; it is loaded from its folder otherwise.

    `told`: what was said of the text for the other side; the same is not said again. Of the processes that `torchrun` started,
    the first one alone speaks and gives a verdict.
    """
    started = time.monotonic()
    device = choose_device(options.device)
    if base is None:
        base = Base.load(options.base, device=device, dtype=options.base_precision)
    making = 0.0
    with processes(device) as team, ExitStack() as opened, way_out(WAY_OUT):
        if not team.first:
            options, say = replace(options, quiet=True), lambda text: None
        with team.first_alone():  # the others find the files that it leaves: held-out text, new text, the vocabulary
            parent = check_early(options, base)
            fresh = options.fresh and team.first
            folder = opened.enter_context(work_folder(replace(options, fresh=fresh), parent, base, say, first=team.first))
            corpus = given = open_corpus(options, base, folder)
            request = options
            options = with_defaults(request, corpus, base, parent)
            planned = None
            if words := default_words(request, options, corpus, base, parent):
                say(words)
            if options.augment is not None and options.dry_run:
                planned = plan_more_text(corpus, options, base, folder, timed=True)
            elif options.augment is not None:
                asked = time.monotonic()
                # Of several processes the others wait for the first here, and could not be told to stop.
                left = minutes_left(options, started) if world_size() == 1 else None
                corpus, options = add_text(request, options, given, base, parent, folder, device, say, left)
                making = time.monotonic() - asked
            result = look(options, corpus, given if corpus.few else corpus, base, parent, folder, device, say, planned)
        if options.dry_run:
            job = prepare_pack(result.config, base, corpus.train, corpus.valid, quiet=options.quiet, say=say)
            result.estimate = estimate(job)
            result.config = replace(result.config, run=run_folder(options, parent))
            return result
        for line in result.lines(told):
            say(line)
        if corpus.held_out:
            count = sum(1 for _ in corpus.valid.lines(corpus.new[0]))
            say(f"{count:,} lines are held out for validation, in {corpus.valid.folder}")

        ready = time.monotonic()
        result.seconds |= {"more text": making} if making else {}
        result.seconds["looking at the text"] = ready - started - making

        def on_ready(job: PackJob) -> None:
            result.estimate = estimate(job, done=steps_done(job.config))
            say(result.estimate_line())
            if warning := too_little_time(result.estimate, options.minutes, time.monotonic() - started):
                say(f"warning: {warning}")

        try:
            result.pack = train_pack(
                result.config,
                base,
                corpus.train,
                corpus.valid,
                minutes=minutes_left(options, started),
                quiet=options.quiet,
                say=say,
                on_ready=on_ready,
            )
        except Stopped as stop:
            found = stop.standing
            say(f"there is no pack yet: {found['step']:,} of {found['steps']:,} steps are done, in {found['run']}")
            whose = {"languages": list(result.config.languages), "side": result.config.side}
            stop.standing = {**whose, **found, "pack": None}
            raise
        made = time.monotonic()
        trained = min(
            made - ready, float(result.pack.card.get("training_seconds", 0.0))
        )  # of a run gone on with, now and before
        result.seconds |= {"preparing": made - ready - trained, "training": trained}
        if team.first:
            give_verdict(result, options, base, parent)
            result.seconds["verdict"] = time.monotonic() - made
            phases = ", ".join(f"{phase} {seconds:,.0f} s" for phase, seconds in result.seconds.items())
            say(f"Took {time.monotonic() - started:,.0f} s: {phases}.")
        team.wait()
    return result


@contextmanager
def work_folder(options: AddOptions, parent: Pack | None, base: Base, say: Say, *, first: bool) -> Iterator[Path]:
    """The run's folder, free of an earlier run where --fresh asks for that; a temporary one for a dry run.

    Of several processes the `first` alone looks whether the folder is free, for a look is a lock on it, and two at a time would
    refuse each other. What is refused before it trains leaves no folder behind that was not there before.
    """
    if options.dry_run:
        with TemporaryDirectory(prefix="graftmt-") as temporary:
            yield Path(temporary)
        return
    folder = run_folder(options, parent)
    if first and folder.exists():
        with exclusive(folder, "the run"):  # another process may be writing here: better to hear of it now
            if not options.fresh:
                Checkpoints(folder / "checkpoints", 1).settle(say)
    if options.fresh and folder.exists():
        if options.parent is not None and options.parent.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(f"--fresh would move the pack to continue, {options.parent}, aside; choose another --run.")
        with TemporaryDirectory(prefix="graftmt-") as temporary:  # a mistake in the text leaves the earlier run where it is
            corpus = open_corpus(options, base, Path(temporary))
            resolved = with_defaults(options, corpus, base, parent)
            if resolved.augment is not None:
                plan_more_text(corpus, resolved, base, Path(temporary), timed=False)
        move_aside(folder, say)
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


def minutes_left(options: AddOptions, started: float) -> float | None:
    return None if options.minutes is None else options.minutes - (time.monotonic() - started) / 60


def open_corpus(options: AddOptions, base: Base, work: Path) -> AddCorpus:
    return open_add_corpus(
        options.train,
        new=options.languages,
        base_languages=base.languages,
        partners=options.partners,
        valid=options.valid,
        test=options.test,
        work=work,
        seed=options.seed,
    )


def add_text(
    request: AddOptions,
    options: AddOptions,
    given: AddCorpus,
    base: Base,
    parent: Pack | None,
    folder: Path,
    device: str,
    say: Say,
    minutes: float | None,
) -> tuple[AddCorpus, AddOptions]:
    """The text with that of `--augment`, and the options, which are others than those of the `request` where it is no good."""
    config = make_config(options, given, recipe_of(options, base, parent), folder, device)
    if not (folder / "augmented").exists():  # before text is translated
        check_earlier_run(config, only=("recipe", "stages.0.temperature"))
    try:
        corpus = with_more_text(given, options, base, folder, say, minutes)
    except Stopped as stop:
        found = stop.standing
        say(
            f"there is no pack yet: of {found['lines']:,} lines in other languages {found['translated']:,} are translated, in "
            f"{folder}"
        )
        whose = {"languages": list(options.languages), "side": options.side, "run": str(folder)}
        stop.standing = {**whose, **found, "step": 0, "steps": None, "pack": None}
        raise
    problem = poor_text(corpus, FEWEST_LINES)
    if problem and request.augment is None and parent is None:  # what they were to protect is not trained without them
        corpus, options = given, with_defaults(replace(request, augment=NO_AUGMENTATION), given, base, parent)
        problem += f". Embeddings alone are trained instead: {recipe_of(options, base, parent)}"
    if problem:
        say(f"warning: {problem}.")
    return corpus, options


def look(
    options: AddOptions,
    corpus: AddCorpus,
    told: AddCorpus,
    base: Base,
    parent: Pack | None,
    folder: Path,
    device: str,
    say: Say,
    planned: PlannedText | None = None,
) -> AddResult:
    """The text under the base's vocabulary and the pack's, and the configuration that follows from it.

    `told`: what is told of the text, without the few lines that were added to it.
    """
    recipe = recipe_of(options, base, parent)
    config = make_config(options, corpus, recipe, folder, device)
    resolved = resolved_recipe(config, base) if parent is None else parent.recipe
    check_recipe(resolved, config.side, config.languages, base)
    subwords = parent.tokenizer.subwords if parent else pack_subwords(config, corpus.train, say)
    examination = examine(told, base.tokenizer, pack_tokenizer(subwords, options.side, base.tokenizer))
    if options.steps is None:
        counted = planned.counted_in(examination) if planned else examination
        steps = choose_steps(counted, options.side, config.stages[0].batch_tokens)
        config = make_config(replace(options, steps=steps), corpus, recipe, folder, device)
    check_earlier_run(config)
    return AddResult(config, corpus, examination, planned=planned)


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
        raise CannotGoOn(
            f"{config.run} holds a run with other settings ({'; '.join(changed)}). Use the same ones to go on with it"
        )


def steps_done(config: PackConfig) -> int:
    """Over all stages."""
    latest = Checkpoints(config.run / "checkpoints", 1).latest()
    if latest is None:
        return 0
    stage, _, step = latest.name.removeprefix("stage").partition("-step")
    return sum(one.steps for one in config.stages[: int(stage) - 1]) + int(step)


def too_little_time(found: Estimate, minutes: float | None, spent: float) -> str:
    """Whether --minutes will end the command before there is a pack, in words."""
    left = found.steps - found.done
    if minutes is None or not left or found.seconds <= (available := 60 * minutes - spent):
        return ""
    fitting = int(left * max(0.0, available) / found.seconds * 0.8)  # the rest is for validation and the verdict
    return (
        f"training will take about {duration(found.seconds)}, and --minutes leaves {duration(max(0, available))}: there will "
        "be no pack until the same command is given again"
        + (f". For one in time, plan fewer steps: --steps {fitting}." if fitting > 0 and not found.done else ".")
    )


def give_verdict(result: AddResult, options: AddOptions, base: Base, parent: Pack | None) -> None:
    """Scores the pack on held-out text, the one it continues too, and stores what was found on its card."""
    assert result.pack is not None
    split = result.corpus.test or result.corpus.valid
    partners, few = result.pack.partners, result.pack.few  # of a pack gone on with, those of before too
    if result.corpus.augmentation is not None:
        result.pack.card["augmentation"] = result.corpus.augmentation

    def verdict_on(pack: Pack) -> Verdict | None:
        return judge(
            base,
            pack,
            split,
            partners,
            few=few,
            lines=options.test_lines,
            beam=options.beam,
            quiet=options.quiet,
        )

    result.verdict = verdict_on(result.pack)
    if result.verdict is None:
        result.unjudged = no_verdict(split)
    else:
        result.pack.card |= result.verdict.facts()
    text = result.examination.to_dict()
    for check in text["wrong_language"].values():
        del check["examples"]  # a pack travels; lines of the training text stay at home
    result.pack.card["text"] = text
    result.before = None if parent is None else verdict_on(parent.to(base.model.device))
    if result.before is not None:
        result.pack.card["parent"]["scores_here"] = result.before.scores
    result.path = result.config.run / "pack"
    save_pack(result.pack, result.path, base.model.config, dtype=result.config.store_dtype)
    if options.output is not None:
        save_pack(result.pack, options.output, base.model.config, dtype=result.config.store_dtype)
        result.path = options.output
