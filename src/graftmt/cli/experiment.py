"""`graftmt experiment`: the paper's tables and figures run, listed and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli import experiment_report
from graftmt.cli.common import AsJson, Minutes, Quiet, json_text, tell
from graftmt.cli.experiment_listing import say_outcome, show_jobs, show_rows
from graftmt.cli.experiment_request import Asked, Selected

app = typer.Typer(
    help="The paper's tables and figures as experiments: run what is missing, see what there is, compare with what is printed.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ProfileName = Annotated[
    str | None,
    typer.Argument(
        metavar="PROFILE",
        help="docs, ted, paracrawl, demo, or the path of a YAML file like them.",
        show_default=False,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        help="Changes to the profile: packs.source.steps=600 evaluation.beam=5 augmentation.teacher=3; see docs/experiments.md."
    ),
]
Tables = Annotated[
    str | None, typer.Option("--tables", "-t", help="Numbers of the paper's tables: 2,3,4; 101 and 102 are of ours.")
]
Figures = Annotated[str | None, typer.Option("--figures", "-f", help="Numbers of its figures: 3,4.")]
Rows = Annotated[
    str | None,
    typer.Option(
        "--rows",
        help="Only rows of these models, by the paper's bold numbers, the first ones first: 7,12; 14+31 for two composed.",
    ),
]
Languages = Annotated[
    str | None, typer.Option("--languages", "-l", help="New languages, such as el,uk, instead of those of the tables' columns.")
]
Seeds = Annotated[str, typer.Option("--seeds", help="Each model once with each of these; bases have the profile's.")]
CorpusFolder = Annotated[Path | None, typer.Option("--corpus", "-c", help="The corpus folder, instead of the profile's.")]
Bases = Annotated[
    list[str] | None,
    typer.Option("--base", "-b", help="4=FOLDER: a base that is there, to be taken for model (4); may be repeated."),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Where results go; runs/experiments/PROFILE unless given.")]


@app.command("run")
def run(
    profile: ProfileName = None,
    overrides: Overrides = None,
    *,
    tables: Tables = None,
    figures: Figures = None,
    rows: Rows = None,
    languages: Languages = None,
    seeds: Seeds = "1",
    minutes: Minutes = None,
    corpus: CorpusFolder = None,
    base: Bases = None,
    output: Output = None,
    processes: Annotated[
        int,
        typer.Option(
            "--processes", min=1, help="So many at once, on one GPU each where there are several, or together on a large one."
        ),
    ] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, in which order; do nothing.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train and score what rows of the paper's tables and points of its figures still lack.

    A profile says on which corpus, with which languages and for how long: docs (software documentation, one H200), ted and
    paracrawl (as in the paper), demo (minutes on a CPU, nothing needed). Each job leaves one small file with its scores.

    Rerun the command to resume; a job with a result is not done again. Other settings, another text or another base make other
    jobs, and nothing is replaced. If a job fails, the others are done and the exit code is 1.

    Examples:

    graftmt experiment run demo --tables 2,4 --rows 7,30

    graftmt experiment run docs --tables 2,3,4 --languages el,uk --corpus corpus --minutes 25

    graftmt experiment run docs --figures 4 --corpus corpus --base 4=runs/docs-base/base packs.source.steps=600
    """
    selected = Selected(tables=tables, figures=figures, rows=rows, languages=languages, seeds=seeds)
    asked = Asked.of(profile, overrides, selected, corpus, base, output)
    if dry_run:
        _show_plan(asked, as_json)
        return
    same = {**vars(selected), "minutes": minutes, "corpus": corpus, "output": asked.output}
    arguments = ["experiment", "run", str(profile), *(overrides or ()), *(f"--base={one}" for one in base or ())]
    arguments += [f"--{option}={value}" for option, value in same.items() if value is not None]
    raise typer.Exit(_run(asked, arguments, minutes=minutes, processes=processes, as_json=as_json))


def _show_plan(asked: Asked, as_json: bool) -> None:
    from graftmt.experiments.listing import job_states
    from graftmt.experiments.store import Store
    from graftmt.places import EXPERIMENTS, check_place

    check_place(asked.output, EXPERIMENTS)
    jobs = job_states(asked.plan(), Store(asked.found()))
    if as_json:
        print(json_text({"output": str(asked.output), "jobs": jobs}))
    else:
        show_jobs(asked.profile, jobs)


def _run(asked: Asked, arguments: list[str], *, minutes: float | None, processes: int, as_json: bool) -> int:
    """`arguments`: those of more processes. Returns the exit code."""
    from graftmt.experiments.scheduling import run_experiments
    from graftmt.experiments.store import Store
    from graftmt.experiments.team import team
    from graftmt.places import EXPERIMENTS, check_place

    folder = asked.output
    check_place(folder, EXPERIMENTS)
    plan = asked.plan()
    store = Store(asked.made())
    outstanding = store.outstanding(plan.jobs)
    with team(processes, arguments, folder / "logs") as others:
        outcome = run_experiments(store, plan, minutes=minutes)
        others_code = 0 if outcome.exit_code else others.wait()  # after a signal they are asked to stop
    left = [job.key for job in plan.jobs if not store.is_done(job) and job.key not in outcome.skipped]
    done, failed_anywhere = store.settled_since(outstanding)
    here, failed = [key for key in done if key in outcome.done], {**outcome.failed, **failed_anywhere}
    if as_json:
        document = {
            "output": str(folder),
            "done": done,
            "done_here": here,
            "failed": failed,
            "skipped": outcome.skipped,
            "left": left,
            "stopped": outcome.stopped or None,
        }
        print(json_text(document))
    else:
        say_outcome(done, here, failed, outcome.skipped, left, outcome.stopped, folder)
    return outcome.exit_code or (1 if failed or others_code else 0)


@app.command("list")
def list_rows(
    profile: ProfileName = None,
    overrides: Overrides = None,
    *,
    tables: Tables = None,
    figures: Figures = None,
    rows: Rows = None,
    languages: Languages = None,
    seeds: Seeds = "1",
    corpus: CorpusFolder = None,
    base: Bases = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show the rows of the paper's tables and figures: what is done, what is missing, and how long it may take.

    Without --tables and --figures, all that the profile's part of the paper has. Minutes are those that such jobs took here, or
    those that the profile states. A row's minutes include all that it still needs, also if other rows need the same. What is
    done is looked up for the settings, corpus and bases given; results of others are counted.

    Example: graftmt experiment list docs --tables 2,3,4 --languages el,uk --corpus corpus
    """
    from graftmt.experiments.listing import job_states, row_states
    from graftmt.experiments.store import Store

    selected = Selected(tables=tables, figures=figures, rows=rows, languages=languages, seeds=seeds)
    asked = Asked.of(profile, overrides, selected, corpus, base, output).with_everything
    store, plan = Store(asked.found()), asked.plan()
    found, jobs = row_states(plan, store), job_states(plan, store)
    if as_json:
        document = {"profile": asked.profile.name, "output": str(asked.output), "rows": found, "jobs": jobs}
        print(json_text(document))
        return
    show_rows(asked.profile, found, jobs, asked.output)
    if store.addresses.corpus is None:
        tell("There is no corpus folder, so nothing counts as done; give the one of `run` with --corpus.")


app.command("report")(experiment_report.report)
