"""The things that can be damaged, and for each the commands that read it, with what they must give if they accept it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from robustness.contents import say_base, say_pack
from robustness.leavings import result_of
from robustness.readers import SHORT, Case, Reader, Thing, command, output_of
from robustness.sharing_things import base_sharers, pack_sharers, sharing_things
from robustness.world import RECIPES, RESUMABLE, add_arguments, work_arguments

LINES = {"en": "bada kofe gelo\nlako\n", "el": "καλο μενα ροπε\nλαπο\n", "fr": "pazi tura sipu\n"}


def things() -> dict[str, Thing]:
    """All of them by name."""
    found = [
        Thing(name="base", path="base", readers=base_readers(), signed=True, weight=6),
        *(pack_thing(name, ending) for name in RECIPES for ending in ("", ".graftpack")),
        *(unfinished_thing(name) for name in RESUMABLE),
        Thing(name="translated", path="translate", readers=(resuming("translate", finished=True),)),
        Thing(
            name="augmented",
            path="augment",
            readers=(resuming("augment", finished=True), *corpus_readers("augmented")),
            text=True,
        ),
        Thing(name="evaluated", path="evaluate", readers=(resuming("evaluate"), COMPARE), weight=2),
        Thing(name="experiments", path="experiment", readers=experiment_readers(), weight=3),
        Thing(name="published", path="published", readers=published_readers(), weight=3),
        Thing(name="cache", path="cache", readers=cache_readers(), weight=3),
        Thing(name="clean", path="clean", readers=corpus_readers("clean"), text=True),
        Thing(name="corpus", path="corpus", readers=corpus_readers(), text=True),
        Thing(name="profile", path="profile.yaml", readers=(PROFILE_LIST, PROFILE_DRY_RUN)),
        Thing(name="training-configuration", path="train.yaml", readers=configuration_readers("train")),
        Thing(name="retraining-configuration", path="retrain.yaml", readers=configuration_readers("retrain")),
        *sharing_things(),
    ]
    return {thing.name: thing for thing in found}


def base_readers() -> tuple[Reader, ...]:
    def translate(*more: str) -> Callable[[Case], list[str]]:
        return lambda case: ["translate", "-b", str(case.thing), "-s", "en", "-t", "fr", *SHORT, *more]

    def with_pack(case: Case) -> list[str]:
        return ["translate", "-b", str(case.thing), "-p", str(case.world / "packs/el-source"), "-s", "el", "-t", "en", *SHORT]

    return (
        command("inspect", lambda case: ["inspect", str(case.thing)], weight=3),
        command("inspect --json", lambda case: ["inspect", str(case.thing), "--json"], weight=3),
        Reader(name="Base.load", action=lambda case: lambda: say_base(case.thing), result=output_of, weight=4),
        command("translate", translate(), stdin=LINES["en"], result=output_of, weight=4),
        command("translate --json", translate("--json"), stdin=LINES["en"], result=output_of, weight=2),
        command("translate --packs", with_pack, stdin=LINES["el"], result=output_of, weight=3),
        command("verify", lambda case: ["verify", "-b", str(case.thing), "-n", "1", "--beam", "1"], weight=2),
        command("evaluate", lambda case: _evaluate(case, case.thing), weight=1),
        command("add --dry-run", lambda case: _add(case, case.thing, "--dry-run"), weight=1),
        command("augment", lambda case: _augment(case, case.thing), weight=2),
        command("augment --teacher", lambda case: _augment(case, case.world / "base", "--teacher", str(case.thing)), weight=1),
        command(
            "retrain --dry-run",
            lambda case: ["retrain", str(case.world / "retrain.yaml"), "--base", str(case.thing), "--dry-run"],
            weight=2,
        ),
        command(
            "retrain",
            lambda case: [
                *("retrain", str(case.world / "retrain.yaml"), "--base", str(case.thing), "-q"),
                *(f"run={case.output / 'run'}", "stages.0.steps=1"),
            ],
        ),
        *base_sharers(),
    )


def _evaluate(case: Case, base: Path, *more: str) -> list[str]:
    corpus = str(case.world / "corpus")
    given = ["evaluate", "-b", str(base), "-c", corpus, "-n", "2", *SHORT, "-q", "--no-off-target"]
    return [*given, "-d", "en-fr", *more]


def _add(case: Case, base: Path, *more: str) -> list[str]:
    given = add_arguments(case.world, case.output / "run")
    given[given.index("--base") + 1] = str(base)
    return [*given, "-o", str(case.output / "pack"), *more]


def _augment(case: Case, base: Path, *more: str) -> list[str]:
    given = ["augment", "el", "--base", str(base), "--train", str(case.world / "corpus"), "--spec", "3-bt"]
    return [*given, "-o", str(case.output / "augmented"), "--device", "cpu", "-q", *more]


def pack_thing(name: str, ending: str) -> Thing:
    return Thing(name=name + ending, path=f"packs/{name}{ending}", readers=pack_readers(name), signed=True, weight=2)


def pack_readers(name: str) -> tuple[Reader, ...]:
    side, language, recipe = RECIPES[name]
    source, target = (language, "fr") if side == "source" else ("en", language)

    def translate(*more: str) -> Callable[[Case], list[str]]:
        given = ("-s", source, "-t", target, *SHORT, *more)
        return lambda case: ["translate", "-b", str(case.world / "base"), "-p", str(case.thing), *given]

    def go_on(case: Case) -> list[str]:
        given = _add(case, case.world / "base", "--continue", str(case.thing), "--dry-run")
        given[given.index("--side") + 1], given[1] = side, language
        for option in ("--recipe", "--merges"):  # the pack's own
            place = given.index(option)
            del given[place : place + 2]
        return given

    def named(case: Case) -> list[str]:
        return [*translate()(case), "-p", f"b={case.thing}", f"--{side}-pack", "b"]

    def beside(case: Case) -> list[str]:
        own = ["-o", str(case.thing), "--dry-run"]
        return [*add_arguments(case.world, case.output / "run", side, language, recipe), *own]

    return (
        command("inspect", lambda case: ["inspect", str(case.thing)], weight=3),
        command("inspect --json", lambda case: ["inspect", str(case.thing), "--json"], weight=3),
        Reader(name="load_pack", action=lambda case: lambda: say_pack(case.thing), result=output_of, weight=4),
        command("translate", translate(), stdin=LINES[source], result=output_of, weight=4),
        command("translate NAME=", named, stdin=LINES[source], result=output_of),
        command(
            "verify", lambda case: ["verify", "-b", str(case.world / "base"), "-p", str(case.thing), "-n", "1", "--beam", "1"]
        ),
        command(
            "evaluate", lambda case: _evaluate(case, case.world / "base", "-p", str(case.thing), "-d", f"{source}-{target}")
        ),
        command("add --continue", go_on, weight=2),
        command("add -o", beside),
        command("augment --packs", lambda case: _augment(case, case.world / "base", "-p", str(case.thing))),
        *pack_sharers(side, language),
    )


def resuming(name: str, weight: int = 3, *, finished: bool = False) -> Reader:
    """The command that made the thing, given again. What is finished is people's own, and may be edited."""
    return command(
        name,
        lambda case: work_arguments(case.world, name, Path(case.thing.name)),
        resumes=True,
        result=None if finished or name == "experiment" else lambda case, outcome: result_of(name, case.thing),
        weight=weight,
    )


def unfinished_thing(name: str) -> Thing:
    readers = [resuming(name)]
    if name in ("train", "retrain", "add"):
        readers.append(command("inspect", lambda case: ["inspect", str(case.thing / "run")]))
        readers.append(command("inspect --json", lambda case: ["inspect", str(case.thing / "run"), "--json"]))
    if name == "train":
        plot = ["--plot", "plots"]
        readers.append(
            command("inspect --plot", lambda case: ["inspect", str(case.thing / "run"), plot[0], str(case.output / plot[1])])
        )
    return Thing(name=f"unfinished-{name}", path=f"unfinished-{name}", readers=tuple(readers), weight=3)


COMPARE = command(
    "compare",
    lambda case: ["compare", str(case.world / "evaluate/scores"), str(case.thing / "scores"), "-n", "10", "-q"],
    weight=2,
)


def experiment_readers() -> tuple[Reader, ...]:
    def report(case: Case) -> list[str]:
        given = ["experiment", "report", "demo", "--results", str(case.thing / "experiments")]
        return [*given, "-o", str(case.output / "report"), "--figures", "none", "--agreement"]

    def again(*more: str) -> Callable[[Case], list[str]]:
        return lambda case: [*work_arguments(case.world, "experiment", Path(case.thing.name)), *more]

    def listing(case: Case) -> list[str]:
        given = work_arguments(case.world, "experiment", Path(case.thing.name))
        without = given.index("--corpus")
        return [
            "experiment",
            "list",
            "demo",
            *given[3:without],
            *given[without + 2 : given.index("-q")],
            *given[given.index("-q") + 1 :],
        ]

    return (
        command("experiment list", listing, weight=2),
        command("experiment report", report, weight=2),
        command("experiment run --dry-run", again("--dry-run"), weight=2),
        command("experiment run", again(), resumes=True),
    )


def published_readers() -> tuple[Reader, ...]:
    def report(case: Case) -> list[str]:
        return [
            "experiment",
            "report",
            "-r",
            str(case.thing / "report"),
            "-o",
            str(case.output / "report"),
            "--figures",
            "none",
        ]

    def check(*more: str) -> Callable[[Case], list[str]]:
        return lambda case: ["experiment", "check", str(case.thing / "page.md"), "-q", *more]

    return (
        command("experiment report", report, weight=2),
        command("experiment check", check(), weight=2),
        command("experiment check --recompute", check("--recompute"), weight=2),
    )


PROFILE_LIST = command("experiment list", lambda case: ["experiment", "list", str(case.thing), "--output", str(case.output)])
PROFILE_DRY_RUN = command(
    "experiment run --dry-run",
    lambda case: [
        *("experiment", "run", str(case.thing), "--corpus", str(case.world / "corpus"), "--output", str(case.output)),
        *("--dry-run", "--tables", "2,4"),
    ],
)


def cache_readers() -> tuple[Reader, ...]:
    return tuple(
        command(
            name,
            lambda case, name=name: work_arguments(case.world, name, case.output),
            cache=True,
            result=lambda case, outcome, name=name: result_of(name, case.output),
        )
        for name in ("train", "retrain", "add")
    )


def corpus_readers(inside: str = "") -> tuple[Reader, ...]:
    def folder(case: Case) -> str:
        return str(case.thing / inside)

    def with_corpus(arguments: list[str], case: Case) -> list[str]:
        return [argument.replace(str(case.world / "corpus"), folder(case)) for argument in arguments]

    return (
        command("prepare stats", lambda case: ["prepare", "stats", folder(case), "-q", "--text"]),
        command(
            "prepare clean",
            lambda case: ["prepare", "clean", folder(case), "-o", str(case.output / "clean"), "-q", "--no-language-id"],
        ),
        command("prepare join", lambda case: ["prepare", "join", folder(case), "-o", str(case.output / "joined"), "-q"]),
        command(
            "prepare split",
            lambda case: [
                "prepare",
                "split",
                folder(case),
                "-o",
                str(case.output / "split"),
                "--valid",
                "5",
                "--test",
                "5",
                "-q",
            ],
        ),
        command("evaluate", lambda case: with_corpus(_evaluate(case, case.world / "base"), case)),
        command("augment", lambda case: with_corpus(_augment(case, case.world / "base"), case)),
        command("add --dry-run", lambda case: with_corpus(_add(case, case.world / "base", "--dry-run"), case)),
        command(
            "train",
            lambda case: [
                *work_arguments(case.world, "train", case.output),
                f"data.corpus={folder(case)}",
                "--minutes",
                "0.01",
            ],
        ),
    )


def configuration_readers(name: str) -> tuple[Reader, ...]:
    return (
        command(f"{name} --dry-run", lambda case: [name, str(case.thing), "--dry-run"], weight=3),
        command(
            f"{name} --minutes",
            lambda case: [name, str(case.thing), f"run={case.output / 'run'}", "--minutes", "0.005", "-q"],
        ),
        command("experiment list", lambda case: ["experiment", "list", str(case.thing)]),
        command("inspect", lambda case: ["inspect", str(case.thing)]),
    )
