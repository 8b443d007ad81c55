"""The command line as a whole: help that teaches, the version, a quick start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import graftmt as package
from graftmt.cli.app import app

COMMANDS = [command.name for command in app.registered_commands]


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
