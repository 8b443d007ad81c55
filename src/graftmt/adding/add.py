"""`graftmt add`: look at the text, say what it will cost, train the pack, judge it, write all of that on its card. Layer 6."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from graftmt.adding.add_folder import check_earlier_run, steps_done, work_folder
from graftmt.adding.add_options import AddOptions
from graftmt.adding.defaults import FEWEST_LINES, choose_steps, default_recipe, make_config
from graftmt.adding.estimate import Estimate, duration, estimate
from graftmt.adding.examination import Examination, examine
from graftmt.adding.given_text import TextCheck
from graftmt.adding.judgement import Judgement, is_still_improving, judged
from graftmt.adding.more_text import PlannedText, plan_more_text, poor_text, with_more_text
from graftmt.adding.plan import AddPlan, Request, make_plan, without_more_text
from graftmt.adding.result import AddResult
from graftmt.adding.verdict import Verdict, judge, no_verdict
from graftmt.base import Base
from graftmt.devices import choose_device, world_size
from graftmt.documents import read_json, write_json
from graftmt.packs import Pack, check_recipe, pack_tokenizer, save_pack
from graftmt.progress import say, silence
from graftmt.text import languages_of
from graftmt.training import train_pack
from graftmt.training.checkpoints import way_out
from graftmt.training.distribution import processes
from graftmt.training.journal import OnStep, draw_if_possible, read_log
from graftmt.training.pack_job import PackJob, other_side, resolved_recipe
from graftmt.training.pack_training import pack_subwords, prepare_pack
from graftmt.training.stopping import Stopped

WAY_OUT = "use another folder (--run FOLDER), or --fresh to start over; the earlier run is then kept next to the new one"


def add_languages(requests: Sequence[Request], base: Base, *, on_step: OnStep | None = None) -> Iterator[AddResult]:
    """The packs that were asked for, one after the other, within the minutes that there are for all of them."""
    started = time.monotonic()
    told: Examination | None = None
    made: list[str] = []
    check = TextCheck(force=requests[0].options.force)
    for request in requests:
        if len(requests) > 1:
            say(f"{', '.join(request.languages)} as {request.side}")
        minutes = request.options.minutes
        left = None if minutes is None else max(0.0, minutes - (time.monotonic() - started) / 60)
        limited = replace(request, options=replace(request.options, minutes=left))
        try:
            result = add_language(limited, base, told=told, check=check, on_step=on_step)
        except Stopped as stop:
            stop.standing["made"] = made
            raise
        told = result.examination if told is None else told
        made.append(str(result.path))
        yield result


def add_language(
    request: Request,
    base: Base,
    *,
    told: Examination | None = None,
    check: TextCheck | None = None,
    on_step: OnStep | None = None,
) -> AddResult:
    """Makes one pack on a resident base.

    `told`: messages about the text for the other side; none is repeated. `check` remembers what it has checked.
    Of the processes that `torchrun` started, the first one alone speaks and gives a verdict. `on_step` hears of each line of
    the training's log.
    """
    started = time.monotonic()
    device = choose_device(request.options.device)
    with processes(device) as team, ExitStack() as opened, way_out(WAY_OUT):
        if not team.first:
            request = replace(request, options=replace(request.options, fresh=False))
            opened.enter_context(silence())
        with team.first_alone():  # the others find the files that it leaves: held-out text, new text, the vocabulary
            folder = opened.enter_context(work_folder(request, base, first=team.first))
            check = (check or TextCheck(force=request.options.force)) if team.first else None
            plan = make_plan(request, base, folder, device, check)
            if plan.reason:
                say(plan.reason)
            # Of several processes the others wait for the first here, and could not be told to stop.
            left = minutes_left(request.options, started) if world_size() == 1 else None
            plan, planned, making = _with_more_text(plan, left)
            result = look(plan, planned)
            result.alignment = check.to_list() if check else []
        if request.options.dry_run:
            return _only_estimated(result)
        result.seconds |= {"more text": making} if making else {}
        result.seconds["looking at the text"] = time.monotonic() - started - making
        _introduce(result, told)
        if team.first:
            write_json(folder / "plan.json", plan.to_dict())
        _train(result, started, on_step)
        if team.first:
            judging = time.monotonic()
            give_verdict(result)
            if result.config.tensorboard:
                draw_if_possible(result.config.run)
            result.seconds["verdict"] = time.monotonic() - judging
            phases = ", ".join(f"{phase} {seconds:,.0f} s" for phase, seconds in result.seconds.items())
            say(f"Took {time.monotonic() - started:,.0f} s: {phases}.")
        team.wait()
    return result


def _only_estimated(result: AddResult) -> AddResult:
    """What a dry run ends with."""
    plan, corpus = result.plan, result.corpus
    job = prepare_pack(result.config, plan.base, corpus.train, corpus.valid)
    result.estimate = estimate(job)
    result.config = replace(result.config, run=plan.request.run)
    return result


def _introduce(result: AddResult, told: Examination | None) -> None:
    """What is known before training."""
    for line in result.lines(told):
        say(line)
    corpus = result.corpus
    if corpus.held_out:
        count = sum(1 for _ in corpus.valid.lines(corpus.new[0]))
        left_out = read_json(corpus.valid.folder / "corpus.json", "the held-out split").get("lines", {}).get("left_out", 0)
        repeats = f"; {left_out:,} that repeat one of them are not trained on" if left_out else ""
        say(f"{count:,} lines are held out for validation, in {corpus.valid.folder}{repeats}")


def _train(result: AddResult, started: float, on_step: OnStep | None) -> None:
    plan, options, ready = result.plan, result.plan.options, time.monotonic()

    def on_ready(job: PackJob) -> None:
        result.estimate = estimate(job, done=steps_done(job.config))
        say(result.estimate_line())
        if warning := too_little_time(result.estimate, options.minutes, time.monotonic() - started):
            say(f"warning: {warning}")

    try:
        result.pack = train_pack(
            result.config,
            plan.base,
            result.corpus.train,
            result.corpus.valid,
            minutes=minutes_left(options, started),
            on_ready=on_ready,
            on_step=on_step,
        )
    except Stopped as stop:
        found = stop.standing
        say(f"there is no pack yet: {found['step']:,} of {found['steps']:,} steps are done, in {found['run']}")
        whose = {"languages": list(result.config.languages), "side": result.config.side}
        stop.standing = {**whose, **found, "pack": None}
        raise
    taken = time.monotonic() - ready
    trained = min(taken, float(result.pack.card.get("training_seconds", 0.0)))  # of a run gone on with, now and before
    result.seconds |= {"preparing": taken - trained, "training": trained}


def minutes_left(options: AddOptions, started: float) -> float | None:
    return None if options.minutes is None else options.minutes - (time.monotonic() - started) / 60


def _with_more_text(plan: AddPlan, minutes: float | None) -> tuple[AddPlan, PlannedText | None, float]:
    """The plan with the lines that it adds, made, or for a dry run only counted; and the seconds that took."""
    if plan.augment is None:
        return plan, None, 0.0
    if plan.options.dry_run:
        return plan, plan_more_text(plan, timed=True), 0.0
    started = time.monotonic()
    plan = add_text(plan, minutes)
    return plan, None, time.monotonic() - started


def add_text(plan: AddPlan, minutes: float | None) -> AddPlan:
    """The plan with its text made; without it where the lines are no good and nobody asked for them."""
    folder = plan.folder
    config = make_config(plan)
    if not (folder / "augmented").exists():  # before text is translated
        check_earlier_run(config, only=("recipe", "stages.0.temperature"))
    try:
        made = replace(plan, corpus=with_more_text(plan, minutes))
    except Stopped as stop:
        found = stop.standing
        say(
            f"there is no pack yet: of {found['lines']:,} lines in other languages {found['translated']:,} are translated, in "
            f"{folder}"
        )
        whose = {"languages": list(plan.request.languages), "side": plan.side, "run": str(folder)}
        stop.standing = {**whose, **found, "step": 0, "steps": None, "pack": None}
        raise
    problem = poor_text(made.corpus, FEWEST_LINES)
    if problem and plan.request.augment is None and plan.parent is None:  # what they protect is not trained without them
        made = without_more_text(plan)
        problem += f". Embeddings alone are trained instead: {made.recipe}"
    if problem:
        say(f"warning: {problem}.")
    return made


def look(plan: AddPlan, planned: PlannedText | None = None) -> AddResult:
    """The text under the base's vocabulary and the pack's, and the configuration that follows from it."""
    base, parent, corpus = plan.base, plan.parent, plan.corpus
    config = make_config(plan)
    resolved = resolved_recipe(config, base) if parent is None else parent.recipe
    check_recipe(resolved, config.side, config.languages, base)
    text = parent.tokenizer if parent else pack_tokenizer(pack_subwords(config, corpus.train), config.side, base.tokenizer)
    told = plan.given if corpus.few else corpus  # not the few lines that were added
    examination = examine(told, base.tokenizer.side(config.side), text, known=base.languages)
    if plan.options.steps is None:
        counted = planned.counted_in(examination) if planned else examination
        config = make_config(plan, choose_steps(counted, plan.side, config.stages[0].batch_tokens))
    check_earlier_run(config)
    return AddResult(plan, config, examination, planned=planned)


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


def judgement_of(result: AddResult, verdict: Verdict) -> Judgement | None:
    """What the scores come to, for this much text and this recipe."""
    assert result.pack is not None
    plan, log = result.plan, result.config.run / "log.jsonl"
    events = read_log(log) if log.is_file() else []
    several = len(result.corpus.partners) > 1
    default = default_recipe(plan.side, plan.base, augmented=several).components
    # Of a pack that is trained with all of the base's languages no direction is zero-shot.
    trained = {*result.corpus.partners} - {*result.corpus.few}
    untrained = {*languages_of(plan.base.tokenizer, other_side(plan.side))} - trained
    return judged(
        verdict,
        plan.side,
        max(result.examination.pairs.values(), default=0),
        costly=[component for component in result.pack.recipe.components if untrained and component not in default],
        several=several,
        still_improving=is_still_improving([event for event in events if event["event"] == "validation"]),
        out_of_step=max((entry["share"] for entry in result.alignment), default=0.0),
    )


def give_verdict(result: AddResult) -> None:
    """Scores the pack on held-out text, the one it continues too, and stores what was found on its card."""
    plan, options, pack = result.plan, result.plan.options, result.pack
    base, parent = plan.base, plan.parent
    assert pack is not None
    split = result.corpus.test or result.corpus.valid
    if result.corpus.augmentation is not None:
        pack.card["augmentation"] = result.corpus.augmentation

    stated = {"licence": options.licence, "author": options.author}
    pack.card |= {key: value for key, value in stated.items() if value is not None}
    pack.card["trained_on"] = [Path(text.partition("=")[2] or text).name for text in options.train]

    def verdict_on(judged: Pack) -> Verdict | None:
        return judge(
            base,
            judged,
            split,
            pack.partners,  # of a pack gone on with, those of before too
            few=pack.few,
            lines=options.test_lines,
            beam=options.beam,
        )

    result.verdict = verdict_on(pack)
    if result.verdict is None:
        result.unjudged = no_verdict(split)
    else:
        pack.card |= result.verdict.facts()
        result.judgement = judgement_of(result, result.verdict)
        if result.judgement is not None:
            pack.card["verdict"] = result.judgement.level
    text = result.examination.to_dict()
    for check in text["wrong_language"].values():
        del check["examples"]  # a pack travels; lines of the training text stay at home
    pack.card["text"] = text
    result.before = None if parent is None else verdict_on(parent.to(base.model.device))
    if result.before is not None:
        pack.card["parent"]["scores_here"] = result.before.scores
    result.path = result.config.run / "pack"
    save_pack(pack, result.path, base.model.config, dtype=result.config.store_dtype)
    if plan.request.output is not None:
        save_pack(pack, plan.request.output, base.model.config, dtype=result.config.store_dtype)
        result.path = plan.request.output
