"""No command writes into a base, a pack or a folder of others: each refuses, and every byte stays."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

World = dict[str, Path]


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="session")
def things(tmp_path_factory: pytest.TempPathFactory, graft_corpus: Path, grafted: Any, toy_run: Path) -> World:
    """What commands take, and what they may not write to."""
    place = tmp_path_factory.mktemp("things")
    pair = {code: place / f"raw.{code}" for code in ("en", "fr")}
    for path in pair.values():
        path.write_text("one\ntwo\n", encoding="utf-8")
    (place / "own").mkdir()
    (place / "own" / "thesis.txt").write_text("years of work", encoding="utf-8")
    return {"corpus": graft_corpus, "base": grafted.base, "pack": grafted.el, "run": toy_run, **pair, "own": place / "own"}


@pytest.fixture
def world(things: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The same with copies of what may not change: BASE, PACK and OWN."""
    monkeypatch.chdir(tmp_path)
    copies = {name.upper(): Path(shutil.copytree(things[name], tmp_path / name)) for name in ("base", "pack", "own")}
    stage = {"directions": ["multi-parallel"], "steps": 2, "batch_tokens": 200}
    mapping = {
        "run": "run",
        "data": {"corpus": str(things["corpus"])},
        "stages": [stage],
        "model": {"size": "tiny", "model_dim": 16, "ffn_dim": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1},
        "subwords": {"merges": 60, "min_character_count": 1},
        "validation": {"lines": 2, "every": 2},
        "tensorboard": False,
        "threads": 1,
        "device": "cpu",
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    del mapping["model"]
    (tmp_path / "retrain.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    (tmp_path / "in.txt").write_text("fada\n", encoding="utf-8")
    return {**things, **copies, "tmp": tmp_path}


TRAIN = ("train", "config.yaml")
RETRAIN = ("retrain", "retrain.yaml", "-b", "{base}", "--new", "el")
ADD = ("add", "el", "-b", "{base}", "--train", "{corpus}", "--side", "source", "--steps", "1", "--merges", "30", "threads=1")
TRANSLATE = ("translate", "-b", "{base}", "-s", "en", "-t", "fr", "--input", "in.txt", "--beam", "1")
EVALUATE = ("evaluate", "-b", "{base}", "-c", "{corpus}", "-d", "en-fr", "-n", "1", "--beam", "1", "--no-off-target")
COMMANDS: dict[str, tuple[str, ...]] = {
    "train": (*TRAIN, "run={place}"),
    "train fresh": (*TRAIN, "run={place}", "--fresh"),
    "train dry": (*TRAIN, "run={place}", "--dry-run"),
    "retrain": (*RETRAIN, "run={place}"),
    "retrain fresh": (*RETRAIN, "run={place}", "--fresh"),
    "retrain dry": (*RETRAIN, "run={place}", "--dry-run"),
    "add run": (*ADD, "--run", "{place}"),
    "add fresh": (*ADD, "--run", "{place}", "--fresh"),
    "add dry": (*ADD, "--run", "{place}", "--dry-run"),
    "add output": (*ADD, "-o", "{place}"),
    "import": ("import", "{tmp}/nothing", "-o", "{place}"),
    "augment": ("augment", "el", "-b", "{base}", "--train", "{corpus}", "--spec", "1k-bt", "-o", "{place}"),
    "evaluate": (*EVALUATE, "-o", "{place}"),
    "evaluate fresh": (*EVALUATE, "-o", "{place}", "--fresh"),
    "experiment": ("experiment", "run", "demo", "--tables", "2", "--rows", "7", "-o", "{place}"),
    "demo": ("demo", "-f", "{place}", "--steps", "1", "--lines", "1"),
    "prepare moses": ("prepare", "moses", "{en}", "{fr}", "-o", "{place}"),
    "prepare clean": ("prepare", "clean", "{corpus}", "-o", "{place}"),
    "prepare split": ("prepare", "split", "{corpus}", "-o", "{place}"),
    "prepare segment": ("prepare", "segment", "{corpus}", "--languages", "en", "-o", "{place}"),
}
FILES: dict[str, tuple[str, ...]] = {
    "stats": ("prepare", "stats", "{corpus}", "-o", "{place}"),
    "plot": ("inspect", "{run}", "--plot", "{place}"),
}
OUTPUTS: dict[str, tuple[str, ...]] = {
    "translate": (*TRANSLATE, "--output", "{place}/model.safetensors", "--fresh"),
    "translate beside": (*TRANSLATE, "--output", "{place}/new.txt"),
    "archive": (*ADD, "-o", "{place}/new.graftpack"),
}


def refuse(graftmt: Callable[..., Any], world: World, command: Sequence[str], place: Path, *words: str) -> None:
    before = everything(world["tmp"])
    result = graftmt(*(word.format(**world, place=place) for word in command))
    assert result.code == 1, result.stderr
    for word in ("stays as it is", *words):
        assert word in result.stderr, result.stderr
    after = everything(world["tmp"])
    assert {name: after[name] for name in before if name != "standard-input"} == {
        name: content for name, content in before.items() if name != "standard-input"
    }
    assert {path.name for path in world["tmp"].iterdir()} <= {
        *("base", "pack", "own", "config.yaml", "retrain.yaml", "in.txt", "standard-input")
    }


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("place", ["BASE", "PACK", "BASE/x", "PACK/x/y", "OWN"])
def test_a_folder_is_refused(graftmt, world: World, command: Sequence[str], place: str) -> None:
    if command == COMMANDS["add output"] and place == "PACK":
        refuse(graftmt, world, command, world["PACK"], "another pack")  # which may be replaced by itself alone
        return
    name, _, inside = place.partition("/")
    refuse(graftmt, world, command, world[name] / inside, str(world[name]))


@pytest.mark.parametrize("command", [*FILES.values(), *OUTPUTS.values()], ids=[*FILES, *OUTPUTS])
@pytest.mark.parametrize("place", ["BASE", "PACK", "BASE/x"])
def test_a_file_is_refused(graftmt, world: World, command: Sequence[str], place: str) -> None:
    name, _, inside = place.partition("/")
    refuse(graftmt, world, command, world[name] / inside, str(world[name]))


@pytest.mark.parametrize("option", [(), ("--dry-run",), ("--fresh",)])
def test_the_configuration_of_a_user_is_not_replaced_by_the_run(graftmt, world: World, option: tuple[str, ...]) -> None:
    own = world["tmp"] / "own"
    shutil.copy(world["tmp"] / "config.yaml", own)
    (own / "log.jsonl").write_text("mine\n", encoding="utf-8")
    refuse(graftmt, world, ("train", str(own / "config.yaml"), "run={place}", *option), own, "config.yaml")


@pytest.mark.slow
def test_the_run_of_one_thing_is_not_that_of_another(graftmt, world: World) -> None:
    assert graftmt(*TRAIN).code == 0
    before = everything(world["tmp"] / "run")
    for command in (COMMANDS["add run"], COMMANDS["add fresh"], COMMANDS["retrain"]):
        result = graftmt(*(word.format(**world, place="run") for word in command))
        assert result.code == 1 and "run is the run of a base" in result.stderr
    assert everything(world["tmp"] / "run") == before
    assert graftmt("train", str(world["tmp"] / "run" / "config.yaml")).code == 0  # its own configuration goes on with it


def test_unfinished_work_of_an_augmentation_is_no_folder_of_others(graftmt, world: World) -> None:
    work = world["tmp"] / "out.work"
    work.mkdir()
    (work / "thesis.txt").write_text("mine", encoding="utf-8")
    result = graftmt(*(word.format(**world, place="out") for word in (*COMMANDS["augment"], "--fresh")))
    assert result.code == 1 and "out.work is not empty" in result.stderr
    assert (work / "thesis.txt").read_text(encoding="utf-8") == "mine"


def test_through_a_link_a_run_goes_where_the_link_leads(graftmt, world: World) -> None:
    (world["tmp"] / "elsewhere").mkdir()
    (world["tmp"] / "run").symlink_to("elsewhere")
    result = graftmt(*TRAIN, "--json")
    assert result.code == 0, result.stderr
    assert (world["tmp"] / "run").is_symlink()
    assert json.loads((world["tmp"] / "elsewhere" / "base" / "base.json").read_text(encoding="utf-8"))["kind"] == "base"
