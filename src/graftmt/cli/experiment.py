"""`graftmt experiment`: the paper's tables and figures run, listed and reported."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graftmt.cli import experiment_report
from graftmt.cli.common import AsJson, Minutes, Quiet, items, numbers, speaker
from graftmt.cli.experiment_listing import say_outcome, show_jobs, show_rows
from graftmt.errors import ConfigError

if TYPE_CHECKING:
    from graftmt.experiments.addresses import Addresses
    from graftmt.experiments.planning import Request
    from graftmt.experiments.profiles import Profile

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
    paracrawl (as in the paper), demo (minutes on a CPU, nothing needed). Jobs come in an order in which nothing stands before
    what it needs: bases, packs on one resident base, compositions and pivots of these, bilingual models, re-training.

    Each job leaves one small file, OUTPUT/results/JOB.HASH.json: scores with signatures, seconds, parameters, the fingerprint
    and scores of its base, and, for packs, that the base is unchanged. The hash is of all that decides the model, so other
    settings, another text or another base make other jobs; nothing is mixed or replaced. Stopped or killed at any moment, the
    same command resumes; a job with a result is never done again. A job that fails is recorded with its message, the others
    follow, and the exit code is 1. Several processes (--processes, or the same command given several times) share the jobs.

    Examples:

    graftmt experiment run demo --tables 2,4 --rows 7,30

    graftmt experiment run docs --tables 2,3,4 --languages el,uk --corpus corpus --minutes 25

    graftmt experiment run docs --figures 4 --corpus corpus --base 4=runs/docs-base/base packs.source.steps=600
    """
    from graftmt.experiments.addresses import Addresses
    from graftmt.experiments.listing import job_states
    from graftmt.experiments.planning import make_plan
    from graftmt.experiments.profiles import load_profile
    from graftmt.experiments.scheduling import run_experiments
    from graftmt.experiments.store import Store
    from graftmt.experiments.team import team
    from graftmt.experiments.workshop import RunOptions

    say = speaker(quiet)
    profile = _named(profile)
    chosen = load_profile(profile, overrides or ())
    bases, folder = _bases(base), output or _output(chosen)
    plan = make_plan(chosen, _request(chosen, tables, figures, rows, languages, seeds, bases))
    if dry_run:
        jobs = job_states(plan, Store(_addresses(chosen, folder, corpus, bases)))
        if as_json:
            print(json.dumps({"output": str(folder), "jobs": jobs}, ensure_ascii=False))
        else:
            show_jobs(chosen, jobs)
        return
    text = _corpus(chosen, corpus, folder, say)
    if chosen.corpus.provided == "demo" and DEMO_BASE not in bases:
        bases[DEMO_BASE] = _demo_base(folder, say)
    store = Store(Addresses(chosen, folder, text, bases))
    same = {
        "--tables": tables,
        "--figures": figures,
        "--rows": rows,
        "--languages": languages,
        "--seeds": seeds,
        "--minutes": minutes,
        "--corpus": corpus,
        "--output": folder,
    }
    arguments = ["experiment", "run", profile, *(overrides or ()), *(f"--base={one}" for one in base or ())]
    arguments += [f"{option}={value}" for option, value in same.items() if value is not None]
    outstanding = store.outstanding(plan.jobs)
    with team(processes, arguments, folder / "logs", say) as others:
        outcome = run_experiments(
            chosen, plan, RunOptions(output=folder, corpus=text, bases=bases, minutes=minutes, quiet=quiet), say
        )
        others_code = 0 if outcome.exit_code else others.wait(say)  # after a signal they are asked to stop
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
        print(json.dumps(document, ensure_ascii=False))
    else:
        say_outcome(done, here, failed, outcome.skipped, left, outcome.stopped, folder)
    raise typer.Exit(outcome.exit_code or (1 if failed or others_code else 0))


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

    Without --tables and --figures, all that the profile's part of the paper has. Minutes are those that such jobs took here;
    until there are some, those that the profile states. A row's minutes include all that it still needs, also where other rows
    need the same. What is done is looked up for the settings, corpus and bases given, as for `run`; results of others are
    counted.

    Example: graftmt experiment list docs --tables 2,3,4 --languages el,uk
    """
    from graftmt.experiments import definitions
    from graftmt.experiments.listing import job_states, row_states
    from graftmt.experiments.planning import make_plan
    from graftmt.experiments.profiles import load_profile
    from graftmt.experiments.store import Store

    chosen = load_profile(_named(profile), overrides or ())
    bases = _bases(base)
    request = _request(chosen, tables, figures, rows, languages, seeds, bases, needed=False)
    if not request.tables and not request.figures:
        request = replace(
            request,
            tables=tuple(n for n, one in definitions.tables().items() if one.corpus == chosen.paper),
            figures=tuple(n for n, one in definitions.figures().items() if one.corpus == chosen.paper),
        )
    folder = output or _output(chosen)
    store = Store(_addresses(chosen, folder, corpus, bases))
    plan = make_plan(chosen, request)
    found, jobs = row_states(plan, store), job_states(plan, store)
    if as_json:
        print(json.dumps({"profile": chosen.name, "output": str(folder), "rows": found, "jobs": jobs}, ensure_ascii=False))
    else:
        show_rows(chosen, found, jobs, folder)
        if store.addresses.corpus is None:
            print("There is no corpus folder, so nothing counts as done; give the one of `run` with --corpus.")


app.command("report")(experiment_report.report)


# What the options mean


def _named(profile: str | None) -> str:
    if profile is None:  # rather than an error about a missing argument, which would not say what there is
        raise ConfigError("say which profile: docs, ted, paracrawl, demo, or the path of a YAML file like them.")
    return profile


DEMO_BASE = 4
"""The model that the shipped base stands for: English-centric, then multi-parallel."""


def _request(
    profile: Profile,
    tables: str | None,
    figures: str | None,
    rows: str | None,
    languages: str | None,
    seeds: str,
    bases: dict[int, Path],
    *,
    needed: bool = True,
) -> Request:
    from graftmt.experiments.planning import Request

    request = Request(
        tables=tuple(dict.fromkeys(numbers(tables or "", "--tables"))),
        figures=tuple(dict.fromkeys(numbers(figures or "", "--figures"))),
        rows=tuple(dict.fromkeys(items(rows or ""))),
        languages=None if languages is None else tuple(dict.fromkeys(items(languages))),
        seeds=tuple(dict.fromkeys(numbers(seeds, "--seeds"))),
        bases=(*bases, *([DEMO_BASE] if profile.corpus.provided == "demo" else [])),
    )
    if needed and not request.tables and not request.figures:
        raise ConfigError("say what to run: --tables 2,3,4, --figures 3, or both; `graftmt experiment list PROFILE` shows all.")
    if not request.seeds:
        raise ConfigError("--seeds is empty; give at least one, such as 1.")
    return request


def _bases(values: list[str] | None) -> dict[int, Path]:
    found: dict[int, Path] = {}
    for value in values or []:
        match = re.fullmatch(r"(\d+)=(.+)", value)
        if match is None:
            raise ConfigError(f"--base {value}: expected the number of a model and a folder, such as 4=runs/docs/base.")
        folder = Path(match[2])
        if not (folder / "base.json").is_file():
            raise ConfigError(f"--base {value}: there is no base in {folder}; make one with `graftmt train`.")
        found[int(match[1])] = folder
    return found


def _output(profile: Profile) -> Path:
    return Path("runs/experiments") / profile.name


def _addresses(profile: Profile, output: Path, corpus: Path | None, bases: dict[int, Path]) -> Addresses:
    """For looking alone: what is not there is not made."""
    from graftmt.experiments.addresses import Addresses

    is_demo = profile.corpus.provided == "demo"
    folder = corpus or (output / "corpus" if is_demo else profile.corpus.folder)
    if is_demo and (_demo_place(output) / "base.json").is_file():
        bases = {DEMO_BASE: _demo_place(output), **bases}
    return Addresses(profile, output, folder if folder is not None and folder.is_dir() else None, bases)


def _corpus(profile: Profile, given: Path | None, output: Path, say: Any) -> Path:
    """The folder given, the profile's own, or text made here."""
    if given is None and profile.corpus.provided == "demo":
        from graftmt.demo.run import make_corpus
        from graftmt.experiments.job_locks import JobLocks

        with JobLocks(output / "locks", say).take("demo-corpus", wait=True):
            return make_corpus(output / "corpus", 1, lambda text: None)
    folder = given or profile.corpus.folder
    if folder is None or not folder.is_dir():
        how = "".join(f"\n  {command}" for command in profile.corpus.made_by)
        raise ConfigError(
            f"there is no corpus folder {folder}; give it with --corpus FOLDER." + (f" It is made by:{how}" if how else "")
        )
    return folder


def _demo_base(output: Path, say: Any) -> Path:
    from graftmt.demo.run import copy_shipped_base
    from graftmt.experiments.job_locks import JobLocks

    folder = _demo_place(output)
    with JobLocks(output / "locks", say).take("demo-base", wait=True):
        if not (folder / "base.json").is_file():
            copy_shipped_base(folder)
    return folder


def _demo_place(output: Path) -> Path:
    return output / "bases" / "demo"
