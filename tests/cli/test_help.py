"""`--help` of every command: plain text of 80 columns, options with help, commands made from dataclasses."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from graftmt.cli.app import app
from graftmt.cli.declared import takes
from graftmt.cli.help import first_sentence, set_help
from graftmt.options import argument, field_docs, option

ROOT = Path(__file__).parents[2]


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if hasattr(command, "commands"):
        for name, one in command.commands.items():
            yield from commands(one, (*path, name))
    else:
        yield path


@pytest.mark.parametrize("path", list(commands(get_command(app))), ids=" ".join)
def test_help_fits_a_terminal_and_explains_every_option(path: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= 80
    for page in re.findall(r"docs/[a-z-]+\.md", result.output):
        assert (ROOT / page).is_file(), page
    found: Any = get_command(app)
    for name in path:
        found = found.commands[name]
    for parameter in found.params:
        assert getattr(parameter, "help", None), f"{parameter.name} has no help"


@pytest.mark.parametrize("path", [(), ("prepare",), ("packs",), ("experiment",)], ids=" ".join)
def test_no_summary_of_a_command_is_cut(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80"}).output
    listed = shown.partition("Commands:\n")[2].splitlines()
    assert listed and max(map(len, shown.splitlines())) <= 80
    for line in listed:
        assert not line.rstrip().endswith(("...", "…")), line


def test_commands_have_a_line_each_in_the_readmes_order() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output
    listed = [line.split(maxsplit=1) for line in shown.partition("Commands:\n")[2].splitlines() if line.strip()]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name, _ in listed] == re.findall(r"^\| `graftmt ([a-z]+)", readme, flags=re.MULTILINE)
    assert all(summary[0].isupper() and summary.endswith(".") for _, summary in listed)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Read files:\na.en and b.fr. Then\nmore.\n\nExamples:", "Read files: a.en and b.fr."),
        ("Join corpora", "Join corpora"),
        ("One.\n\nTwo.", "One."),
    ],
)
def test_the_first_sentence_is_whole(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wishes:
    names: tuple[str, ...] = argument(commas=True)
    """Who"""
    files: tuple[str, ...] = option("--file", "-f", default=(), group="Places")
    """From where,
    one after the other"""
    count: int | None = option("--count", default=None, least=1)
    """How many"""
    loud: bool = False
    """Loudly"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("a,b", Wishes(names=("a", "b"))),
        ("a --file x -f y --count 3 --loud", Wishes(names=("a",), files=("x", "y"), count=3, loud=True)),
    ],
)
def test_a_command_is_made_from_a_dataclass(words: str, expected: Wishes) -> None:
    seen: list[Wishes] = []
    program = typer.Typer()

    @program.command()
    @takes(Wishes)
    def wish(wishes: Wishes, shout: Annotated[bool, typer.Option("--shout", help="More")] = False) -> None:
        """Make a wish."""
        seen.append(wishes)

    set_help(program)
    runner = CliRunner()
    assert runner.invoke(program, words.split()).exit_code == 0
    assert seen == [expected]
    assert runner.invoke(program, ["a", "--count", "0"]).exit_code == 2
    shown = runner.invoke(program, ["--help"]).output
    assert "Places:" in shown and "From where, one after the other" in shown and "--shout" in shown
    assert field_docs(Wishes) == {
        "names": "Who",
        "files": "From where, one after the other",
        "count": "How many",
        "loud": "Loudly",
    }
