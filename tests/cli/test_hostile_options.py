"""Every option of every command gets values that nobody should give: an error or a result, and never a traceback.

The commands are read from the program itself, so that a new option is tried too.
"""

from __future__ import annotations

import io
import os
import random
import resource
import shutil
import signal
import socket
import stat
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from patience import PATIENCE
from peers.foreign_models import m2m_100
from starlette.testclient import TestClient

from graftmt.cli.app import app, main
from graftmt.documents import write_json
from graftmt.errors import printable

SECONDS = int(PATIENCE)
"""For one command; most take a fraction of one."""
GIGABYTES = 6
"""That one may take beside what the tests themselves have."""
QUICK, SAMPLE = 3, 2
"""Options of each command in the default tier, with one value each; and values of each option in the slow tier."""

NUMBERS = ["-1", "0", "1", "7", "100000", str(2**31), str(2**63), str(10**30), "9" * 5000]
NUMBERS += ["nan", "inf", "-inf", "1e400", "-0.5", "1e-320", "0x10", "١٢"]
WORDS = ["", " ", ",", "=", "en=", "=en", "en", "xx", "en,en", "all", "meta", "cpu:7", "cuda:99", "[/x]", "[red]", ":smile:"]
WORDS += [
    "../../evil",
    "\x1b[31mred\x07",
    "\u202eabc\u2066",
    "\x9b31m",
    "a" * 300,
    "é" * 200,
    "a/" * 3000,
]
WORDS += ["~", "%s%n", "{0}", "'", "*", "{", "a\nb", "\r", "name\udcff", "-", "--", "@", "spm:", "spm:nowhere"]
PATHS = ["{file}", "{folder}", "{empty}", "{fifo}", "{socket}", "{null}", "{zero}", "{loop}", "{file}/below", "/proc"]
PATHS += ["{base}", "{pack}", "{corpus}", "{here}/missing/deep/er", "en={fifo}", "en={folder}", "en={zero}", "{bytes}"]
VALUES = NUMBERS + WORDS + PATHS


class Command(NamedTuple):
    """A command with arguments that work, to be changed one at a time."""

    names: tuple[str, ...]
    arguments: dict[str, list[str]]
    """Parameter → its values, options with their dashes."""
    stdin: bytes = b""


COMMANDS = [
    Command(("train",), {"config": ["{config}"], "overrides": ["run={out}"], "--minutes": ["0"]}),
    Command(
        ("add",),
        {
            "languages": ["el"],
            "--base": ["{base}"],
            "--train": ["{corpus}"],
            "--side": ["source"],
            "--recipe": ["embed"],
            "--augment": ["none"],
            "--run": ["{out}"],
            "--steps": ["1"],
            "--merges": ["20"],
            "--lines": ["1"],
            "--beam": ["1"],
            "--device": ["cpu"],
        },
    ),
    Command(("import",), {"source": ["{foreign}"], "--output": ["{out}"]}),
    Command(
        ("augment",),
        {"new": ["el"], "--base": ["{base}"], "--train": ["{corpus}"], "--spec": ["2-bt"], "--output": ["{out}"]},
    ),
    Command(
        ("retrain",),
        {
            "config": ["{reconfig}"],
            "overrides": ["run={out}"],
            "--base": ["{base}"],
            "--corpus": ["{corpus}"],
            "--new": ["el"],
            "--minutes": ["0"],
        },
    ),
    Command(("translate",), {"--base": ["{base}"], "--source": ["en"], "--target": ["fr"]}, b"fada\n\nbake lo\n"),
    Command(
        ("translate",),
        {"--base": ["{base}"], "--source": ["en"], "--target": ["fr"], "--input": ["{file}"], "--output": ["{out}"]},
    ),
    Command(
        ("evaluate",),
        {
            "--base": ["{base}"],
            "--corpus": ["{corpus}"],
            "--lines": ["2"],
            "--directions": ["en-fr,fr-en"],
            "--output": ["{out}"],
        },
    ),
    Command(("compare",), {"first": ["{scores}"], "second": ["{scores}"], "--resamples": ["2"]}),
    Command(("verify",), {"--base": ["{base}"], "--packs": ["{pack}"], "--lines": ["1"], "--beam": ["1"]}),
    Command(("inspect",), {"folder": ["{base}"]}),
    Command(
        ("export",),
        {"--base": ["{base}"], "--source": ["en"], "--target": ["fr"], "--to": ["hugging-face"], "--output": ["{out}"]},
    ),
    Command(("push",), {"thing": ["{pack}"], "destination": ["{out}"]}),
    Command(("pull",), {"source": ["{shop}"], "name": ["pack"], "--output": ["{out}"]}),
    Command(("packs", "list"), {"source": ["{shop}"]}),
    Command(("packs", "index"), {"folder": ["{shop}"]}),
    Command(("serve",), {"--base": ["{base}"], "--packs": ["{pack}"], "--port": ["0"]}),
    Command(("recipes",), {"recipe": ["embed"]}),
    *(
        Command(("prepare", name), {"inputs": [f"{{{name}}}"], "--output": ["{out}"]})
        for name in ("ted", "tsv", "jsonl", "tmx", "po", "moses", "parquet", "flores", "unpc", "paracrawl")
    ),
    Command(
        ("prepare", "fetch"), {"name": ["Books"], "pair": ["en-fr"], "--output": ["{out}"], "--downloads": ["{downloads}"]}
    ),
    Command(("prepare", "clean"), {"corpus": ["{corpus}"], "--output": ["{out}"]}),
    Command(("prepare", "align"), {"corpora": ["{corpus}"], "--output": ["{out}"]}),
    Command(("prepare", "split"), {"corpus": ["{corpus}"], "--output": ["{out}"], "--valid": ["2"], "--test": ["2"]}),
    Command(("prepare", "segment"), {"corpus": ["{corpus}"], "--output": ["{out}"], "--languages": ["en"]}),
    Command(("prepare", "join"), {"sources": ["{corpus}", "{moses}"], "--output": ["{out}"]}),
    Command(("prepare", "stats"), {"corpus": ["{corpus}"], "--output": ["{out}"]}),
    Command(("experiment", "run"), {"profile": ["docs"], "--tables": ["2"], "--dry-run": [], "--output": ["{out}"]}),
    Command(("experiment", "list"), {"profile": ["docs"], "--tables": ["2"], "--output": ["{out}"]}),
    Command(("experiment", "report"), {"--results": ["{results}"], "--output": ["{out}"], "--figures": ["none"]}),
    Command(("experiment", "check"), {"pages": ["{page}"]}),
    Command(("demo",), {"--folder": ["{out}"], "--corpus": ["{missing}"]}),
]


def parameters(names: tuple[str, ...]) -> dict[str, bool]:
    """Every parameter of a command → whether it is a flag, as the program itself knows them."""
    command: Any = typer.main.get_command(app)
    for name in names:
        command = command.commands[name]
    found = {}
    for one in command.params:
        if one.param_type_name == "argument":
            found[one.name] = False
        elif one.opts[0] != "--help":
            found[one.opts[0]] = bool(one.is_flag)
    return found


def all_commands(command: Any, *names: str) -> Iterator[tuple[str, ...]]:
    if hasattr(command, "commands"):
        for name, below in command.commands.items():
            yield from all_commands(below, *names, name)
    else:
        yield names


def test_every_command_is_tried() -> None:
    assert {command.names for command in COMMANDS} == set(all_commands(typer.main.get_command(app)))


class World(NamedTuple):
    """Where the placeholders are: good files, and what is no file at all."""

    folder: Path
    names: dict[str, str]

    def fill(self, text: str, out: Path) -> str:
        for name, value in {**self.names, "out": str(out)}.items():
            text = text.replace(f"{{{name}}}", value)
        return text


PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "one"\nmsgstr "un"\n'
TMX = '<tmx version="1.4"><header/><body><tu>{}</tu></body></tmx>'


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory,
    grafted: Any,
    graft_corpus: Path,
    graft_subwords: Callable[..., Path],
    toy_settings: Callable[..., dict[str, Any]],
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("hostile")
    names = {name: str(folder / name) for name in ("base", "pack", "foreign", "missing")}
    shutil.copytree(grafted.base, folder / "base")
    shutil.copytree(grafted.el, folder / "pack")
    corpus = folder / "corpus"
    corpus.mkdir()
    for path in graft_corpus.iterdir():  # less of it, so that a case takes a fraction of a second
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        (corpus / path.name).write_text("".join(lines[: 60 if "train" in path.name else 4]), encoding="utf-8")
    subwords = f"subwords.model={graft_subwords('el')}"
    config = toy_settings(
        folder / "run", f"data.corpus={corpus}", subwords, "validation.directions=[en-fr]", "stages.0.steps=1"
    )
    write_json(folder / "config.yaml", config)
    del config["model"]
    write_json(folder / "reconfig.yaml", {**config, "method": "retrain"})
    (folder / "file").write_text("fada bake\n", encoding="utf-8")
    (folder / "ted").mkdir()
    (folder / "ted" / "all_talks_train.tsv").write_text("talk_name\ten\tfr\nx\tone\tun\n", encoding="utf-8")
    (folder / "page.md").write_text("Text of `4.2`.\n", encoding="utf-8")
    (folder / "table.tsv").write_text("en\tfr\none\tun\n", encoding="utf-8")
    (folder / "x.jsonl").write_text('{"translation": {"en": "one", "fr": "un"}}\n', encoding="utf-8")
    units = "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in (("en", "one"), ("fr", "un")))
    (folder / "x.tmx").write_text(TMX.format(units), encoding="utf-8")
    (folder / "fr.po").write_text(PO, encoding="utf-8")
    (folder / "pairs").mkdir()
    (folder / "pairs" / "en-fr.txt").write_text("one\tun\n", encoding="utf-8")
    downloads = folder / "downloads" / "Books-en-fr-latest"
    downloads.mkdir(parents=True)
    for language in ("en", "fr"):
        (downloads / f"Books.en-fr.{language}").write_text("one\n", encoding="utf-8")
    m2m_100(folder / "foreign")
    (folder / "results").mkdir()
    shutil.copytree(grafted.el, folder / "shop" / "pack")
    for name in ("folder", "empty/deep/er"):
        (folder / name).mkdir(parents=True)
    (folder / "folder" / "something").write_text("else\n", encoding="utf-8")
    os.mkfifo(folder / "fifo")
    (folder / "loop").symlink_to("loop")
    for name, minor in (("null", 3), ("zero", 5)):
        try:
            os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        except PermissionError:  # never the real ones: root may replace them
            os.mkfifo(folder / name)
    (folder / "bytes").write_bytes(b"\xff\xfe\x00\x01" * 100)
    listener = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(folder)  # the name of a socket may not be long
    listener.bind("socket")
    os.chdir(here)
    files = {name: name for name in ("corpus", "file", "ted", "downloads", "results", "folder", "empty", "fifo", "scores")}
    files |= {name: name for name in ("loop", "null", "zero", "bytes", "socket")}
    files |= {"config": "config.yaml", "reconfig": "reconfig.yaml", "paracrawl": "pairs", "moses": "corpus", "here": "."}
    files |= {"page": "page.md", "shop": "shop", "tsv": "table.tsv", "jsonl": "x.jsonl", "tmx": "x.tmx", "po": "fr.po"}
    files |= dict.fromkeys(("parquet", "flores", "unpc"), "corpus")  # which is an error
    names |= {name: str(folder / file) for name, file in files.items()}
    found = World(folder, names)
    made = try_one(["evaluate", "-b", names["base"], "-c", names["corpus"], "-n", "2", "-o", names["scores"]], found, b"")
    assert made.problem == "" and made.code == 0, made
    yield found
    listener.close()


class TooSlow(BaseException):
    """No handler of the program's own may take it for an error."""


class Outcome(NamedTuple):
    code: int
    problem: str
    said: str


@contextmanager
def limited() -> Iterator[None]:
    """Time and memory for one command."""

    def slow(number: int, frame: object) -> None:
        raise TooSlow

    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + (GIGABYTES << 30), before[1]))
    handler = signal.signal(signal.SIGALRM, slow)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def try_one(arguments: list[str], world: World, stdin: bytes) -> Outcome:
    """The whole command line in this process; what is wrong with how it ended, if anything."""
    path = world.folder / "standard-input"
    path.write_bytes(stdin)
    output, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    problem, code = "", -1
    before = sys.argv, sys.stdin
    with (
        path.open(encoding="utf-8") as handle,
        redirect_stdout(output),
        redirect_stderr(errors),
        pytest.MonkeyPatch.context() as patch,
    ):
        sys.argv, sys.stdin = ["graftmt", *arguments], handle
        patch.setattr("os.cpu_count", lambda: 1)
        patch.setattr("uvicorn.Server.run", answer_once)  # a server that starts would wait for requests for ever
        patch.setitem(sys.modules, "ray", None)  # a cluster is many processes
        patch.chdir(world.folder / "empty" / "deep" / "er")
        try:
            with limited():
                main()
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 0 if leaving.code is None else -1
        except TooSlow:
            problem = f"more than {SECONDS} seconds:\n" + traceback.format_exc(limit=-4)
        except BaseException:
            problem = traceback.format_exc(limit=-4)
        finally:
            sys.argv, sys.stdin = before
    errors.flush()
    output.flush()
    said = errors.buffer.getvalue().decode() + output.buffer.getvalue().decode()  # type: ignore[attr-defined]
    problem = problem or ("" if code in (0, 1, 2, 130) else f"exit code {code}")
    told = "\n".join(line for line in said.split("\n") if line not in arguments)  # a path alone is for another program
    problem = problem or ("" if printable(told) == told else f"control characters: {said!r}")
    return Outcome(code, problem, said)


def answer_once(server: Any, sockets: list[socket.socket] | None = None) -> None:
    """What a server does here: starts, says which languages it has, and ends."""
    with TestClient(server.config.app) as client:
        assert client.get("/languages").status_code < 500


def written(command: Command, changed: str, value: str | None) -> list[str]:
    """The command line with one parameter changed; without a value, a flag."""
    known, values = parameters(command.names), dict(command.arguments)
    if changed:
        values[changed] = [] if value is None else [value]
    options, positional = [], []
    for name, given in values.items():
        if name.startswith("-"):
            options += [name] if known[name] else [part for one in given for part in (name, one)]
    for name in known:
        if not name.startswith("-"):
            positional += values.get(name, [])
    return [*command.names, *options, "--", *positional]


def cases(command: Command, values: int, options: int | None = None) -> Iterator[tuple[str, str | None]]:
    """So many values for each option, or for some of the options; the same in every run."""
    names = parameters(command.names)
    if options is not None and options < len(names):
        chosen = random.Random(str(command.names)).sample(sorted(names), options)
        names = {name: names[name] for name in chosen}
    for name, flag in names.items():
        if flag:
            yield name, None
            continue
        yield from ((name, value) for value in random.Random(f"{command.names} {name}").sample(VALUES, values))


def attack(command: Command, world: World, tmp_path: Path, values: int, options: int | None = None) -> int:
    count, problems = 0, []
    outside = set(world.folder.parent.iterdir())
    for name, value in cases(command, values, options):
        out = tmp_path / f"out-{count}"
        count += 1
        arguments = [world.fill(one, out) for one in written(command, name, value)]
        outcome = try_one(arguments, world, command.stdin)
        shown = value if value is None or len(value) < 60 else f"{value[:60]}…"
        asked_for = value == "100000" and outcome.problem.startswith("more than")  # so many lines, which take their time
        if outcome.problem and not asked_for:
            problems.append(f"{' '.join(command.names)}  {name} {shown!r}\n{outcome.problem}")
        shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(world.folder / "empty")
        (world.folder / "empty" / "deep" / "er").mkdir(parents=True)
    assert not problems, f"{len(problems)} of {count} cases:\n\n" + "\n\n".join(problems)
    assert set(world.folder.parent.iterdir()) == outside, "something was written outside"
    return count


linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited as on Linux")
by_name = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: "-".join(command.names))


@linux
@by_name
def test_some_hostile_values(command: Command, world: World, tmp_path: Path) -> None:
    attack(command, world, tmp_path, 1, QUICK)


@linux
@pytest.mark.slow
@by_name
def test_hostile_values_for_every_option(command: Command, world: World, tmp_path: Path) -> None:
    attack(command, world, tmp_path, SAMPLE)


@linux
@pytest.mark.long
@by_name
def test_all_hostile_values(command: Command, world: World, tmp_path: Path) -> None:
    count = attack(command, world, tmp_path, len(VALUES))
    print(f"{' '.join(command.names)}: {count} cases")


REFUSED = ("demo", "experiment report", "prepare parquet", "prepare flores", "prepare unpc")
"""Commands that take long, or need files that others make: an error is their result here."""


@pytest.mark.slow
@linux
@pytest.mark.parametrize(
    "command",
    [command for command in COMMANDS if " ".join(command.names) not in REFUSED],
    ids=lambda command: "-".join(command.names),
)
def test_what_is_changed_works(command: Command, world: World, tmp_path: Path) -> None:
    """Or the attack would only see the first refusal."""
    outcome = try_one([world.fill(one, tmp_path / "out") for one in written(command, "", None)], world, command.stdin)
    assert outcome.code == 0, outcome
