"""The command line as a whole: help that teaches, the version, a quick start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from patience import PATIENCE
from typer.testing import CliRunner

import graftmt as package
from graftmt.cli.app import app, calm_threads, main
from graftmt.cli.help import help_text

COMMANDS = [command.name for command in app.registered_commands]


def all_commands(commands: typer.Typer, *names: str) -> Iterator[tuple[str, ...]]:
    """As they are typed: ("prepare", "moses")."""
    yield from ((*names, str(command.name)) for command in commands.registered_commands)
    for group in commands.registered_groups:
        yield from all_commands(group.typer_instance, *names, str(group.name))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example_of_itself(graftmt, command: str) -> None:
    result = graftmt(command, "--help")
    assert result.code == 0
    _, _, example = result.stdout.partition("Example")
    assert f"graftmt {command}" in example
    assert graftmt(command, "-h").stdout == result.stdout


def test_the_help_lists_every_command_and_comes_without_arguments_too(graftmt) -> None:
    assert {"demo", "train", "translate", "evaluate", "inspect"} <= set(COMMANDS)
    result = graftmt("--help")
    for command in COMMANDS:
        assert f" {command} " in result.stdout
    bare = graftmt()
    assert (bare.stdout + bare.stderr).strip() == result.stdout.strip()


@pytest.mark.parametrize("command", list(all_commands(app)), ids=" ".join)
def test_every_command_has_an_example(command: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    typed = f"graftmt {' '.join(command)} "
    lines = [line.strip() for line in result.stdout.splitlines() if not line.startswith("Usage: ")]
    assert any(typed in f"{line} " for line in lines)


def test_examples_keep_their_lines() -> None:
    text = """One
    and the same.

    Examples:
      a
      b
    """
    assert help_text(text) == "One\nand the same.\n\n\b\nExamples:\n  a\n  b"


def test_the_version_is_the_package_s(graftmt) -> None:
    assert graftmt("--version") == (0, f"graftmt {package.__version__}\n", "")


@pytest.mark.parametrize("arguments", [["tranlsate"], ["translate"], ["translate", "--baes", "x"], ["inspect"]])
def test_a_command_that_is_not_understood_is_exit_code_2(graftmt, arguments: list[str]) -> None:
    result = graftmt(*arguments)
    assert (result.code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr


def test_help_does_not_wait_for_torch() -> None:
    code = "import sys, graftmt.cli.app; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_threads_that_wait_do_not_spin_for_long_unless_one_has_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    calm_threads()
    assert os.environ["GOMP_SPINCOUNT"] == "1000"
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    calm_threads()
    assert os.environ["GOMP_SPINCOUNT"] == "7"
    monkeypatch.delenv("GOMP_SPINCOUNT")
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    calm_threads()
    assert "GOMP_SPINCOUNT" not in os.environ


@pytest.mark.parametrize("chosen", [None, "max_split_size_mb:64"])
def test_memory_of_a_gpu_is_shared_out_as_training_wants_it_unless_one_has_chosen(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None
) -> None:
    name = "PYTORCH_CUDA_ALLOC_CONF"
    monkeypatch.setenv(name, "")  # so that it is put back
    monkeypatch.setenv(name, chosen) if chosen else monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "argv", ["graftmt", "--version"])
    with pytest.raises(SystemExit):
        main()
    assert os.environ[name] == (chosen or "expandable_segments:True")


INTERRUPTED = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored by what a script runs in the background
import graftmt.cli.inspect as inspect
from graftmt.cli import app

def slow(*_):
    print("ready", flush=True)
    time.sleep(60)

if sys.argv.pop(1) == "typer":  # which makes an exit code of it
    inspect.describe = slow
else:
    app.app = slow
sys.argv = ["graftmt", "inspect", "x"]
app.main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["typer", "plain"])
def test_an_interrupted_command_says_so(way: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])}
    command = [sys.executable, "-c", INTERRUPTED, way]
    with subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE)[1] == "graftmt: interrupted\n"
    assert process.returncode == 130


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "config.yaml", "--minutes"],
        ["translate", "-b", "x", "-s", "en", "-t", "fr", "--length-penalty"],
        ["prepare", "stats", "x", "--temperature"],
        ["prepare", "clean", "x", "-o", "y", "--max-ratio"],
        ["prepare", "tsv", "x", "-o", "y", "--max-ratio"],
    ],
    ids=lambda arguments: arguments[-1],
)
def test_numbers_that_are_none_are_refused(graftmt, arguments: list[str], value: str) -> None:
    result = graftmt(*arguments[:-1], f"{arguments[-1]}={value}")
    assert result.code == 2
    assert arguments[-1] in result.stderr


@pytest.mark.parametrize(
    "arguments", [["tran\x1b[31mslate"], ["inspect", "--\x1b[31m"], ["inspect", "a", "b\x1b[31m", "c\u202e"]]
)
def test_what_was_typed_comes_back_without_control_characters(graftmt, arguments: list[str]) -> None:
    result = graftmt(*arguments)
    assert result.code == 2
    assert "\\x1b[31m" in result.stderr
    assert not set(result.stderr) & set("\x1b\u202e")


def test_an_error_message_commands_no_terminal(graftmt) -> None:
    result = graftmt("inspect", "no\x1b[31mwhere\x07\u202e")
    assert (result.code, result.stdout) == (1, "")
    assert "no\\x1b[31mwhere\\x07\\u202e" in result.stderr
    assert not set(result.stderr) & set("\x1b\x07\u202e")


@pytest.mark.parametrize(
    "error", [MemoryError("Unable to allocate 32.0 GiB"), RuntimeError("DefaultCPUAllocator: can't allocate memory: x")]
)
def test_memory_that_is_not_there_is_an_error_and_bugs_are_not_hidden(
    graftmt, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("graftmt.cli.inspect.describe", fail)
    result = graftmt("inspect", "x")
    assert result.code == 1 and "out of memory" in result.stderr and "Traceback" not in result.stderr
    error = RuntimeError("a bug")
    with pytest.raises(RuntimeError, match="a bug"):
        graftmt("inspect", "x")
