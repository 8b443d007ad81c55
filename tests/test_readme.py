"""The README says what is true: its Python runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import re
from importlib import resources
from pathlib import Path

from typer.testing import CliRunner

from graftmt.cli.app import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_prints_what_its_comment_says() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    expected = block.strip().splitlines()[-1].removeprefix("# ")
    printed = io.StringIO()
    with resources.as_file(resources.files("graftmt.demo") / "base") as folder, contextlib.redirect_stdout(printed):
        exec(block.replace("runs/demo/base", str(folder)), {})
    assert printed.getvalue().strip() == expected


def test_every_command_of_the_table_exists_and_every_command_is_in_it() -> None:
    named = set(re.findall(r"\| `graftmt ([a-z]+)", README))
    known = {command.name for command in (*app.registered_commands, *app.registered_groups)}
    assert named == known
    for command in named:
        assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0


def test_links_lead_to_files_and_make_targets_exist() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        for link in re.findall(r"\]\(([^)#]+?)\)", page.read_text(encoding="utf-8")):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name} links to {link}"
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert set(re.findall(r"make ([a-z]+)", README)) <= targets


def test_no_page_has_a_gap_left_to_fill() -> None:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        assert "@@" not in page.read_text(encoding="utf-8"), page.name


def test_files_and_functions_that_the_overview_names_are_there() -> None:
    """`training/loop.py` is a file, and after `adding/plan.py`, `make_plan` comes a name that it defines."""
    text = (ROOT / "docs" / "overview.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "graftmt"
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)`", text))
    assert len(named) > 60
    assert not sorted(name for name in named if not (package / name).is_file() and not (ROOT / name).is_file())
    for file, function in re.findall(r"`((?:\w+/)*\w+\.py)`, `(\w+)`", text):
        source = (package / file).read_text(encoding="utf-8")
        assert re.search(rf"^\s*(?:def|class) {function}\b", source, flags=re.MULTILINE), f"{file} has no {function}"


def test_the_readme_is_a_front_door() -> None:
    assert len(README.splitlines()) <= 150
