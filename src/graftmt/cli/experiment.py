"""`graftmt experiment`: the paper's tables and figures run, listed and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli import experiment_check, experiment_report
from graftmt.cli.declared import AsJson, Minutes, Quiet
from graftmt.cli.experiment_listing import say_outcome, show_jobs, show_rows
from graftmt.cli.experiment_request import Asked, Selected
from graftmt.cli.output import json_text, tell

app = typer.Typer(
    help="Run the paper's tables and figures, list what is done, and write reports.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ProfileName = Annotated[
    str | None,
    typer.Argument(
        metavar="PROFILE",
        help="docs, ted, paracrawl, demo, or your own YAML file",
        show_default=False,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(help="Changes to the profile: packs.source.steps=600 evaluation.beam=5"),
]
Tables = Annotated[str | None, typer.Option("--tables", "-t", help="The paper's tables: 2,3,4; 101 and 102 are our own")]
Figures = Annotated[str | None, typer.Option("--figures", "-f", help="Its figures: 3,4")]
Rows = Annotated[
    str | None,
    typer.Option(
        "--rows",
        help="Only these models, in this order: 7,12; 14+31 is a composition",
    ),
]
Languages = Annotated[str | None, typer.Option("--languages", "-l", help="New languages: el,uk (default: those of the tables)")]
Seeds = Annotated[str, typer.Option("--seeds", help="Train each pack once with each of these seeds")]
CorpusFolder = Annotated[Path | None, typer.Option("--corpus", "-c", help="Corpus folder (default: the profile's)")]
Bases = Annotated[
    list[str] | None,
    typer.Option("--base", "-b", help="4=FOLDER: use this base as model 4; repeatable"),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Folder for results (default: runs/experiments/PROFILE)")]


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
        typer.Option("--processes", min=1, max=1024, help="Jobs at a time, each on its own GPU if there are several"),
    ] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the jobs in order; do nothing")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the paper's tables and figures: train and score what is missing. A
    profile says on which corpus, with which languages and for how long: docs
    (software documentation, one H200), ted and paracrawl (as in the paper),
    or demo (minutes on a CPU, no data needed). Rerun the command to resume.
    Other settings or text make other jobs; no result is replaced. If a job
    fails, the others are still run, and the exit code is 1.

    Examples:
      graftmt experiment run demo --tables 2,4 --rows 7,30
      graftmt experiment run docs --tables 2,3,4 -c corpus --minutes 25
      graftmt experiment run docs --figures 4 -c corpus --base 4=BASE

    More: docs/experiments.md
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
    """Show the rows of the paper's tables and figures: done, missing, and how
    long the missing ones may take. A row's minutes include all that it still
    needs. Rows count as done for the settings, corpus and bases given.

    Example:
      graftmt experiment list docs --tables 2,3,4 -l el,uk -c corpus

    More: docs/experiments.md
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
app.command("check")(experiment_check.check)
