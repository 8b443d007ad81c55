"""`graftmt export`: folders that translate without graftmt, refusals that leave nothing behind."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.base import Base
from graftmt.translator import Translator

LINES = ["καλο μενα ροπε", "", "  λαπο\tΜΕΝΑ ", "νορε κεμα, 12 — fada 漢! <lang:en>"]


@pytest.fixture
def world(graft_base: Callable[..., Path], make_pack: Callable[..., Any], tmp_path: Path) -> dict[str, Path]:
    """A base, and packs of it in folders."""
    folder = graft_base(placement="decoder", output_bias=True)
    base = Base.load(folder)
    recipes = {"el-source": "embed + enc-adapters-all(4)@trained", "uk-target": "embed + adapters-all(4) + non-tied"}
    found = {"base": folder}
    for name, recipe in recipes.items():
        language, side = name.split("-")
        pack = make_pack(base, side, recipe, language)
        pack.partners = ("en",)
        if side == "target":  # random models do not end by themselves
            pack.parameters["output.bias"].data[pack.tokenizer.end_id] += 4
        found[name] = tmp_path / name
        pack.save(found[name])
    return found


def translate_outside(folder: Path, source: str, target: str, lines: list[str]) -> list[str]:
    """What the folder's own Python file gives, in a process that has no graftmt."""
    blocker = folder.parent / "blocked"
    (blocker / "graftmt").mkdir(parents=True, exist_ok=True)
    (blocker / "graftmt" / "__init__.py").write_text("raise ImportError('graftmt is not here')")
    run = subprocess.run(
        [sys.executable, str(folder / "translate.py"), source, target],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(blocker), "OMP_NUM_THREADS": "1", "PATH": ""},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split("\n")[:-1]


def test_a_folder_translates_without_graftmt(world: dict[str, Path], tmp_path: Path, graftmt: Callable[..., Any]) -> None:
    packs = f"{world['el-source']},{world['uk-target']}"
    done = graftmt(
        *("export", "-b", str(world["base"]), "-p", packs, "-s", "el", "-t", "uk", "--to", "ctranslate2"),
        *("-o", str(tmp_path / "out"), "--json"),
    )
    assert done.code == 0, done.stderr
    assert [one["directions"] for one in json.loads(done.stdout)["exported"]] == [["el-uk"]]
    found = translate_outside(tmp_path / "out", "el", "uk", LINES)
    assert found == Translator(world["base"], [world["el-source"], world["uk-target"]]).translate(
        LINES, source="el", target="uk"
    )


def test_directions_share_a_folder_where_they_share_a_model(
    world: dict[str, Path], tmp_path: Path, graftmt: Callable[..., Any]
) -> None:
    """el → en has the parts that are for trained directions, el → fr has not."""
    done = graftmt(
        *("export", "-b", str(world["base"]), "-p", str(world["el-source"]), "-s", "el,en", "-t", "en,fr,ru"),
        *("--to", "ctranslate2", "-o", str(tmp_path / "out")),
    )
    assert done.code == 0, done.stderr
    documents = {path.name: json.loads((path / "export.json").read_text()) for path in (tmp_path / "out").iterdir()}
    assert documents.keys() == {"el-en", "el-fr+el-ru", "en-fr+en-ru"}
    recipes = {name: document["packs"][0]["recipe"] for name, document in documents.items() if document["packs"]}
    assert "@trained" in recipes["el-en"] and "@trained" not in recipes["el-fr+el-ru"]
    page = (tmp_path / "out" / "el-en" / "README.md").read_text()
    assert "el → en" in page and "pip install ctranslate2 sentencepiece" in page


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--to", "ctranslat"], "did you mean 'ctranslate2'"),
        (["--to", "ctranslate2", "--quantization", "int4"], "int8_float32"),
        (["--to", "ctranslate2", "-s", "xx"], "'xx'"),
        (["--to", "ctranslate2", "-t", "el"], "nothing to translate"),
        (["--to", "hugging-face", "--quantization", "int8"], "--to ctranslate2 --quantization int8"),
        (["--to", "ctranslate2", "-t", "uk"], "give it with --packs PACK"),
        (["--to", "ctranslate2", "--source-pack", "packs/el"], "by its path with --packs"),
    ],
)
def test_refusals_leave_nothing(
    world: dict[str, Path], tmp_path: Path, graftmt: Callable[..., Any], options: list[str], said: str
) -> None:
    given = ["-s", "el", "-t", "fr", *options]
    done = graftmt("export", "-b", str(world["base"]), "-p", str(world["el-source"]), *given, "-o", str(tmp_path / "out"))
    assert done.code == 1 and said in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_component_that_cannot_is_named(
    graft_base: Callable[..., Path], make_pack: Callable[..., Any], tmp_path: Path, graftmt: Callable[..., Any]
) -> None:
    base = Base.load(graft_base(norm="post"))
    make_pack(base, "source", "embed + enc-adapters-1,2(4)", "el").save(tmp_path / "pack")
    done = graftmt(
        *("export", "-b", str(base.folder), "-p", str(tmp_path / "pack"), "-s", "el", "-t", "fr"),
        *("--to", "ctranslate2", "-o", str(tmp_path / "out")),
    )
    assert done.code == 1 and "enc-adapters-1,2(4)" in done.stderr and "parallel" in done.stderr
    assert not (tmp_path / "out").exists()


def test_only_an_export_takes_the_place_of_an_export(
    world: dict[str, Path], tmp_path: Path, graftmt: Callable[..., Any]
) -> None:
    def export(folder: Path) -> Any:
        return graftmt("export", "-b", str(world["base"]), "-s", "en", "-t", "fr", "--to", "ctranslate2", "-o", str(folder))

    out = tmp_path / "out"
    assert export(out).code == 0 and export(out).code == 0
    (out / "notes.txt").write_text("mine")
    assert export(out).code == 1 and (out / "notes.txt").read_text() == "mine"
    copy = Path(shutil.copytree(world["el-source"], tmp_path / "copy"))
    before = sorted(copy.iterdir())
    for place in (copy, copy / "inside"):
        assert export(place).code == 1 and sorted(copy.iterdir()) == before


def test_packs_that_no_direction_uses_are_said(world: dict[str, Path], tmp_path: Path, graftmt: Callable[..., Any]) -> None:
    packs = f"{world['el-source']},{world['uk-target']}"
    given = ["export", "-b", str(world["base"]), "-p", packs, "--to", "ctranslate2", "-o", str(tmp_path / "out")]
    done = graftmt(*given, "-s", "el", "-t", "en,fr")
    assert done.code == 0 and "the pack uk-target, which is for uk as target" in done.stderr and "el-source" not in done.stderr
    assert "warning" not in graftmt(*given, "-s", "el", "-t", "uk", "-o", str(tmp_path / "both")).stderr


def test_languages_by_name_and_packs_by_name(world: dict[str, Path], tmp_path: Path, graftmt: Callable[..., Any]) -> None:
    """Of two packs for a language the export takes the one that is named."""
    other = Path(shutil.copytree(world["el-source"], tmp_path / "again"))
    packs = f"first={world['el-source']},second={other},{world['uk-target']}"
    given = ["export", "-b", str(world["base"]), "-p", packs, "--to", "ctranslate2", "-o", str(tmp_path / "out")]
    assert "--source-pack" in graftmt(*given, "-s", "el", "-t", "uk").stderr
    done = graftmt(*given, "-s", "Greek", "-t", "ukr", "--source-pack", "second", "--json")
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout)["exported"][0]["directions"] == ["el-uk"]


@pytest.mark.parametrize(
    ("option", "meant"),
    [("--dtype", "--quantization"), ("--format", "--to"), ("--overwrite", "--force"), ("--pack", "--packs")],
)
def test_options_of_other_names(graftmt: Callable[..., Any], option: str, meant: str) -> None:
    done = graftmt("export", "-b", "base", "-s", "el", "-t", "uk", "--to", "ctranslate2", "-o", "out", option, "int8")
    assert done.code == 2 and option in done.stderr and f"(Possible options: {meant}" in done.stderr
