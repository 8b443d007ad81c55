"""The things that can be damaged, and for each the commands that read it, with what they must give if they accept it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustness.contents import say_base, say_pack
from robustness.isolation import Outcome, command_line
from robustness.leavings import result_of
from robustness.world import RECIPES, RESUMABLE, World, add_arguments, work_arguments

LINES = {"en": "bada kofe gelo\nlako\n", "el": "καλο μενα ροπε\nλαπο\n", "fr": "pazi tura sipu\n"}
SHORT = ("--beam", "2", "--max-length", "8", "--device", "cpu")


@dataclass(frozen=True)
class Case:
    """Where one reader finds the damaged thing, and where it may write."""

    world: World
    thing: Path
    output: Path


@dataclass(frozen=True, kw_only=True)
class Reader:
    """One command, or one function of the library, that reads a thing."""

    name: str
    action: Callable[[Case], Callable[[], None]]
    stdin: str = ""
    resumes: bool = False
    """It goes on with the work in the thing itself, and so changes it."""
    cache: bool = False
    """The thing is the folder that graftmt keeps things in for later."""
    result: Callable[[Case, Outcome], Any] | None = None
    """What must be the same whether the thing is sound or damaged, where the reader accepts it."""
    weight: int = 1


@dataclass(frozen=True, kw_only=True)
class Thing:
    """A file or folder of the world."""

    name: str
    path: str
    readers: tuple[Reader, ...]
    signed: bool = False
    """It has a fingerprint: what decides translations cannot change unnoticed."""
    weight: int = 1
    text: bool = False
    """It is people's own text: all of it is read, however long."""


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
        Thing(name="cache", path="cache", readers=cache_readers(), weight=3),
        Thing(name="clean", path="clean", readers=corpus_readers("clean"), text=True),
        Thing(name="corpus", path="corpus", readers=corpus_readers(), text=True),
        Thing(name="profile", path="profile.yaml", readers=(PROFILE_LIST, PROFILE_DRY_RUN)),
        Thing(name="training-configuration", path="train.yaml", readers=configuration_readers("train")),
        Thing(name="retraining-configuration", path="retrain.yaml", readers=configuration_readers("retrain")),
    ]
    return {thing.name: thing for thing in found}


def _command(name: str, arguments: Callable[[Case], list[str]], **options: Any) -> Reader:
    return Reader(name=name, action=lambda case: command_line(*arguments(case)), **options)


def _output(case: Case, outcome: Outcome) -> bytes:
    return outcome.stdout


def base_readers() -> tuple[Reader, ...]:
    def translate(*more: str) -> Callable[[Case], list[str]]:
        return lambda case: ["translate", "-b", str(case.thing), "-s", "en", "-t", "fr", *SHORT, *more]

    def with_pack(case: Case) -> list[str]:
        return ["translate", "-b", str(case.thing), "-p", str(case.world / "packs/el-source"), "-s", "el", "-t", "en", *SHORT]

    return (
        _command("inspect", lambda case: ["inspect", str(case.thing)], weight=3),
        _command("inspect --json", lambda case: ["inspect", str(case.thing), "--json"], weight=3),
        Reader(name="Base.load", action=lambda case: lambda: say_base(case.thing), result=_output, weight=4),
        _command("translate", translate(), stdin=LINES["en"], result=_output, weight=4),
        _command("translate --json", translate("--json"), stdin=LINES["en"], result=_output, weight=2),
        _command("translate --packs", with_pack, stdin=LINES["el"], result=_output, weight=3),
        _command("verify", lambda case: ["verify", "-b", str(case.thing), "-n", "1", "--beam", "1"], weight=2),
        _command("evaluate", lambda case: _evaluate(case, case.thing), weight=1),
        _command("add --dry-run", lambda case: _add(case, case.thing, "--dry-run"), weight=1),
        _command("augment", lambda case: _augment(case, case.thing), weight=2),
        _command("augment --teacher", lambda case: _augment(case, case.world / "base", "--teacher", str(case.thing)), weight=1),
        _command(
            "retrain --dry-run",
            lambda case: ["retrain", str(case.world / "retrain.yaml"), "--base", str(case.thing), "--dry-run"],
            weight=2,
        ),
        _command(
            "retrain",
            lambda case: [
                *("retrain", str(case.world / "retrain.yaml"), "--base", str(case.thing), "-q"),
                *(f"run={case.output / 'run'}", "stages.0.steps=1"),
            ],
        ),
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
        _command("inspect", lambda case: ["inspect", str(case.thing)], weight=3),
        _command("inspect --json", lambda case: ["inspect", str(case.thing), "--json"], weight=3),
        Reader(name="load_pack", action=lambda case: lambda: say_pack(case.thing), result=_output, weight=4),
        _command("translate", translate(), stdin=LINES[source], result=_output, weight=4),
        _command("translate NAME=", named, stdin=LINES[source], result=_output),
        _command(
            "verify", lambda case: ["verify", "-b", str(case.world / "base"), "-p", str(case.thing), "-n", "1", "--beam", "1"]
        ),
        _command(
            "evaluate", lambda case: _evaluate(case, case.world / "base", "-p", str(case.thing), "-d", f"{source}-{target}")
        ),
        _command("add --continue", go_on, weight=2),
        _command("add -o", beside),
        _command("augment --packs", lambda case: _augment(case, case.world / "base", "-p", str(case.thing))),
    )


def resuming(name: str, weight: int = 3, *, finished: bool = False) -> Reader:
    """The command that made the thing, given again. What is finished is people's own, and may be edited."""
    return _command(
        name,
        lambda case: work_arguments(case.world, name, Path(case.thing.name)),
        resumes=True,
        result=None if finished or name == "experiment" else lambda case, outcome: result_of(name, case.thing),
        weight=weight,
    )


def unfinished_thing(name: str) -> Thing:
    readers = [resuming(name)]
    if name in ("train", "retrain", "add"):
        readers.append(_command("inspect", lambda case: ["inspect", str(case.thing / "run")]))
        readers.append(_command("inspect --json", lambda case: ["inspect", str(case.thing / "run"), "--json"]))
    if name == "train":
        plot = ["--plot", "plots"]
        readers.append(
            _command("inspect --plot", lambda case: ["inspect", str(case.thing / "run"), plot[0], str(case.output / plot[1])])
        )
    return Thing(name=f"unfinished-{name}", path=f"unfinished-{name}", readers=tuple(readers), weight=3)


COMPARE = _command(
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
        _command("experiment list", listing, weight=2),
        _command("experiment report", report, weight=2),
        _command("experiment run --dry-run", again("--dry-run"), weight=2),
        _command("experiment run", again(), resumes=True),
    )


PROFILE_LIST = _command("experiment list", lambda case: ["experiment", "list", str(case.thing), "--output", str(case.output)])
PROFILE_DRY_RUN = _command(
    "experiment run --dry-run",
    lambda case: [
        *("experiment", "run", str(case.thing), "--corpus", str(case.world / "corpus"), "--output", str(case.output)),
        *("--dry-run", "--tables", "2,4"),
    ],
)


def cache_readers() -> tuple[Reader, ...]:
    return tuple(
        _command(
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
        _command("prepare stats", lambda case: ["prepare", "stats", folder(case), "-q", "--text"]),
        _command(
            "prepare clean",
            lambda case: ["prepare", "clean", folder(case), "-o", str(case.output / "clean"), "-q", "--no-language-id"],
        ),
        _command("prepare join", lambda case: ["prepare", "join", folder(case), "-o", str(case.output / "joined"), "-q"]),
        _command(
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
        _command("evaluate", lambda case: with_corpus(_evaluate(case, case.world / "base"), case)),
        _command("augment", lambda case: with_corpus(_augment(case, case.world / "base"), case)),
        _command("add --dry-run", lambda case: with_corpus(_add(case, case.world / "base", "--dry-run"), case)),
        _command(
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
        _command(f"{name} --dry-run", lambda case: [name, str(case.thing), "--dry-run"], weight=3),
        _command(
            f"{name} --minutes",
            lambda case: [name, str(case.thing), f"run={case.output / 'run'}", "--minutes", "0.005", "-q"],
        ),
        _command("experiment list", lambda case: ["experiment", "list", str(case.thing)]),
        _command("inspect", lambda case: ["inspect", str(case.thing)]),
    )
