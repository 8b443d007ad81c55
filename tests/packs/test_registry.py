"""Kinds of components are found: our own files, and those that other packages register, as docs/components.md shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import PATIENCE

import graftmt
from graftmt.errors import CheckpointError
from graftmt.packs import Recipe, load_pack
from graftmt.packs.component import Component
from graftmt.packs.registry import GROUP, kinds, package_of, packages_of

DOCS = Path(__file__).parents[2] / "docs" / "components.md"
SOURCE = str(Path(graftmt.__file__).parents[1])

USE = """
import sys
from pathlib import Path
from graftmt import Base, Translator
from graftmt.cli.app import main
from graftmt.data import Corpus
from graftmt.packs import load_pack
from graftmt.training import PackConfig, PackDataConfig, StageConfig, SubwordConfig, ValidationConfig, train_pack

folder, base, corpus, subwords = map(Path, sys.argv[1:])
for arguments in (["--components"], ["embed + enc-scale"]):
    sys.argv = ["graftmt", "recipes", *arguments, "--json"]
    try:
        main()
    except SystemExit as leaving:
        assert not leaving.code
stage = StageConfig(name="pack", directions=(), batch_tokens=200, learning_rate=0.02, warmup=1, steps=3)
config = PackConfig(
    run=folder / "run", side="source", recipe="embed + ENC-scale", languages=("el",), stages=(stage,), threads=1,
    data=PackDataConfig(partners=("en",), cache=folder / "cache"), subwords=SubwordConfig(model=subwords), tensorboard=False,
    validation=ValidationConfig(every=3, lines=4),
)
trained = train_pack(config, Base.load(base), Corpus.open(corpus, "train"), Corpus.open(corpus, "valid"))
assert all((trained.parameters[f"encoder.scale.{layer}"] != 1).any() for layer in range(3))
stored = load_pack(folder / "run" / "pack")
assert str(stored.recipe) == "embed + enc-scale" and list(stored.parameters) == list(trained.parameters)
lines = [Translator(base, [pack]).translate(["καλο μενα", "λαπο"] * 4, source="el", target="en") for pack in (trained, stored)]
assert lines[0] == lines[1] and len(lines[0]) == 8
"""


def documented_package(folder: Path) -> Path:
    """The package of the section "Write your own component", as pip would leave it on the path."""
    section = DOCS.read_text(encoding="utf-8").split("# Write your own component")[1]
    code, settings = (re.findall(rf"```{kind}\n(.*?)```", section, re.DOTALL)[0] for kind in ("python", "toml"))
    project = tomllib.loads(settings)["project"]
    folder.mkdir()
    (folder / code.splitlines()[0].removeprefix("# ")).write_text(code, encoding="utf-8")
    return register(folder, project["name"], project["version"], project["entry-points"][GROUP])


def register(folder: Path, name: str, version: str, entries: dict[str, str]) -> Path:
    information = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"[{GROUP}]", *(f"{key} = {value}" for key, value in entries.items())]
    (information / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def run(package: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process that has the package on its path."""
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{package}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.slow
def test_the_documented_component_works_everywhere(
    tmp_path: Path, graft_base: Callable[..., Path], graft_corpus: Path, graft_subwords: Callable[..., Path]
) -> None:
    package = documented_package(tmp_path / "site")
    used = run(package, USE, *map(str, (tmp_path, graft_base(), graft_corpus, graft_subwords("el"))))
    assert used.returncode == 0, used.stderr
    listed, end = json.JSONDecoder().raw_decode(used.stdout)
    assert {"form": "enc-scale", "package": "graftmt-scale"}.items() <= listed[-1].items()
    counted, _ = json.JSONDecoder().raw_decode(used.stdout[end:].lstrip())
    assert counted["groups"]["encoder.scale"] == {"layers": [1, 2, 3, 4, 5, 6], "tensors": 6, "parameters": 6 * 512}
    # Where the package is missing, as here.
    pack = tmp_path / "run" / "pack"
    assert json.loads((pack / "pack.json").read_text())["packages"] == ["graftmt-scale"]
    with pytest.raises(CheckpointError) as caught:
        load_pack(pack)
    assert all(fact in str(caught.value) for fact in (str(pack), "'enc-scale'", "graftmt-scale"))


@pytest.mark.slow
def test_a_package_that_does_not_work_is_left_out_with_a_warning(tmp_path: Path) -> None:
    entries = {"missing": "not_there:Kind", "function": "json:dumps", "abstract": "graftmt.packs.component:Component"}
    package = register(tmp_path / "site", "broken", "1.0", entries)
    shown = run(package, "from graftmt.packs import Recipe; print(Recipe.parse('embed + enc-norm'))")
    assert shown.stdout == "embed + enc-norm\n", shown.stderr
    assert all(f"'{name}' of the package broken" in shown.stderr for name in entries)


def test_ours_are_found_in_the_order_of_a_recipe() -> None:
    found = kinds()
    assert all(issubclass(kind, Component) and kind.descriptions for kind in found)
    assert [kind.position for kind in found] == sorted(kind.position for kind in found)
    files = {path.stem for path in (Path(graftmt.__file__).parent / "packs" / "components").glob("[!_]*.py")}
    assert {kind.__module__.rpartition(".")[2] for kind in found} == files
    assert {package_of(kind) for kind in found} == {None}
    assert packages_of(Recipe.parse("embed + enc-lora-all(4)")) == []


def test_every_form_that_is_shown_can_be_written() -> None:
    for kind in kinds():
        for description in kind.descriptions:
            recipe = Recipe.parse(f"embed + {description.form}" if description.form != "embed" else "embed")
            assert any(type(component) is kind for component in recipe.components), description
            assert all(component.export.__qualname__ != Component.export.__qualname__ for component in recipe.components)
