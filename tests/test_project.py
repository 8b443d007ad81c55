"""The project's own files agree with each other and hold nothing of one machine."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
CODE = ("src", "tests", "benchmarks")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return dict(tomllib.load(file)["project"])


def package_name(requirement: str) -> str:
    """`Babel` of `Babel>=2.16`, as package indexes compare names: lower case, runs of -, _ and . the same."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None, f"{requirement!r} does not begin with a package's name"
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def constraints() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_the_package_and_the_project_state_the_same_version(project: dict[str, Any]) -> None:
    assert importlib.import_module("graftmt").__version__ == project["version"]


def test_the_changelog_has_an_entry_for_the_version(project: dict[str, Any]) -> None:
    assert f"## [{project['version']}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_direct_dependency_has_a_constraint(project: dict[str, Any]) -> None:
    extras = project["optional-dependencies"]
    requirements = [*project["dependencies"], *(name for extra in extras.values() for name in extra)]
    direct = {package_name(requirement) for requirement in requirements} - {project["name"]}
    assert direct - {package_name(line) for line in constraints()} == set()


@pytest.fixture(scope="module")
def imported() -> set[str]:
    """The packages that some module of ours, a test or a benchmark imports."""
    pattern = re.compile(r"\b(?:import|from) (?:torch\.utils\.)?(\w+)|import(?:_module|orskip)\(\"(\w+)")
    texts = (path.read_text(encoding="utf-8") for folder in CODE for path in (ROOT / folder).rglob("*.py"))
    return {name for text in texts for names in pattern.findall(text) for name in names}


def test_every_extra_installs_what_some_code_imports(project: dict[str, Any], imported: set[str]) -> None:
    extras = {name: extra for name, extra in project["optional-dependencies"].items() if name != "dev"}  # tools are run
    wanted = {package_name(requirement).replace("-", "_") for extra in extras.values() for requirement in extra}
    assert wanted - imported - {project["name"]} == set()


def test_every_package_whose_types_are_left_out_is_imported(imported: set[str]) -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        overrides = tomllib.load(file)["tool"]["mypy"]["overrides"]
    assert {name.removesuffix(".*") for override in overrides for name in override["module"]} - imported == set()


def test_constraints_are_exact_and_without_local_builds() -> None:
    assert [line for line in constraints() if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line)] == []
    names = [package_name(line) for line in constraints()]
    assert len(names) == len(set(names))


def tracked_files() -> list[Path]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_path_of_one_machine() -> None:
    # Put together here, so that this file does not hold what it looks for.
    needles = [f"/{folder}/".encode() for folder in ("work", "root")]
    found = []
    for path in tracked_files():
        content = path.read_bytes()
        if b"\0" in content:
            continue  # not text
        # Only where a path begins there: a relative path may well have such a folder inside.
        if any(re.search(rb"(?<![\w.~-])" + needle, content) for needle in needles):
            found.append(str(path.relative_to(ROOT)))
    assert found == []
