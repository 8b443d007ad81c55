"""Where graftmt may write: each kind of folder is known for what it is, and no other takes its place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from graftmt.errors import GraftError
from graftmt.places import (
    BASE,
    CHUNKS,
    CORPUS,
    DEMO,
    EVALUATION,
    EXPERIMENTS,
    FILES,
    PACK,
    REPORT,
    RUNS,
    Kind,
    begin_run,
    check_file,
    check_place,
)

KINDS = {"base": BASE, "pack": PACK, "evaluation": EVALUATION, "corpus": CORPUS, "chunks": CHUNKS, "demo": DEMO}
KINDS |= {"experiments": EXPERIMENTS, "report": REPORT, **{f"run of a {of}": kind for of, kind in RUNS.items()}}

CONFIG = """run: runs/x
stages:
- name: first
  steps: 3
validation:
  every: 2
seed: 1
checkpoint_every: 5
keep_checkpoints: 2
"""
"""As it is written by graftmt."""


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


MADE = {
    "base": {"base.json": '{"kind": "base"}', "model.safetensors": "", "subwords.model": "", "README.md": ""},
    "pack": {"pack.json": '{"kind": "pack"}', "pack.safetensors": "", "subwords.model": "", "README.md": ""},
    "evaluation": {"evaluation.json": '{"format": 1, "base": "", "split": "test", "directions": []}', "test.en-fr.txt": ""},
    "corpus": {"corpus.json": '{"languages": {"train": ["en"]}}', "train.en.txt": "", "report.json": "{}"},
    "chunks": {"work.json": '{"new": ["el"], "pivot": "en"}', "fr-000001.json": "{}"},
    "demo": {"base/base.json": "{}", "report.json": "{}", "corpus/corpus.json": "{}", "packs/el/pack.json": "{}"},
    "experiments": {"results/a.json": '{"job": "a", "kind": "model", "profile": "docs"}', "notes.txt": "", "locks/a.lock": ""},
    "report": {"results.json": "{}", "README.md": "", "table-02.md": ""},
    "run of a base": {"run.json": '{"kind": "run", "of": "base"}', "config.yaml": CONFIG, "notes.txt": "mine"},
    "run of a pack": {"run.json": '{"kind": "run", "of": "pack"}', "data/train.en.txt": ""},
    "run of a retrained base": {"config.yaml": f"{CONFIG}method: retrain\n", "log.jsonl": ""},
}
EARLIER = {
    "run of a base": [
        {"config.yaml": CONFIG, "checkpoints/stage1-best/best.json": "", "log.jsonl": "", "my-own.yaml": "mine"},
        {"subwords.model": "", "subwords.json": "{}", ".lock": ""},
        {"subwords.model": "", ".lock": ""},
        {"begun.json": "{}"},
    ],
    "run of a pack": [
        {"config.yaml": f"{CONFIG}recipe: embed\n", "log.jsonl": ""},
        {"data/corpus.json": "{}", "subwords.model": ""},
        {"augmented.work/work.json": "{}"},
    ],
}
"""Runs of earlier versions, which wrote no run.json."""
OTHERS = [
    {"thesis.txt": "years of work"},
    {"config.yaml": "run: own\nstages: [{steps: 3}]  # mine\n"},
    {"config.yaml": CONFIG},  # a copy of another run's, to be changed
    {"config.yaml": f"# mine\n{CONFIG}", "log.jsonl": "mine"},
    {"log.jsonl": "mine"},
    {"subwords.model": "mine"},
    {"run.json": '{"distance": 10}'},
    {"evaluation.json": '{"accuracy": 1}'},
    {"data": "a file", "other.txt": ""},
]


@pytest.mark.parametrize("name", MADE)
def test_each_kind_is_known_and_goes_on_in_its_own_place(tmp_path: Path, name: str) -> None:
    check_place(tmp_path / "new" / "deep", KINDS[name])
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / ".lock").touch()  # of a process that was killed at its very beginning
    (tmp_path / "empty" / ".run.json.123456789012.tmp").touch()
    check_place(tmp_path / "empty", KINDS[name])
    check_place(write(tmp_path / "made", MADE[name]), KINDS[name])


@pytest.mark.parametrize(("name", "files"), [(name, files) for name, runs in EARLIER.items() for files in runs])
def test_runs_of_earlier_versions_go_on(tmp_path: Path, name: str, files: dict[str, str]) -> None:
    check_place(write(tmp_path / "run", files), KINDS[name])


SHARED = [("experiments", "demo")]
"""Both have a base and a corpus, and no file of the same name."""
PAIRS = [(wanted, there) for wanted in KINDS for there in MADE if wanted != there and (wanted, there) not in SHARED]


@pytest.mark.parametrize(("wanted", "there"), PAIRS)
def test_no_kind_takes_the_place_of_another(tmp_path: Path, wanted: str, there: str) -> None:
    folder = write(tmp_path / "there", MADE[there])
    with pytest.raises(GraftError, match=r"there is .*stays as it is"):
        check_place(folder, KINDS[wanted])


@pytest.mark.parametrize("wanted", KINDS)
@pytest.mark.parametrize("files", OTHERS, ids=[" ".join(files) for files in OTHERS])
def test_a_folder_of_others_stays(tmp_path: Path, wanted: str, files: dict[str, str]) -> None:
    folder = write(tmp_path / "own", files)
    with pytest.raises(GraftError, match=rf"own is not empty and not .*{min(files)}"):
        check_place(folder, KINDS[wanted])


@pytest.mark.parametrize("name", ["base", "pack", "corpus"])
def test_what_is_replaced_whole_may_have_nothing_else_in_it(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path / "there", {**MADE[name], "notes/mine.txt": ""})
    with pytest.raises(GraftError, match=r"with other things in it \(notes\)"):
        check_place(folder, KINDS[name])


@pytest.mark.parametrize("model", ["base", "pack"])
@pytest.mark.parametrize("kind", [*KINDS.values(), FILES], ids=[*KINDS, "files"])
@pytest.mark.parametrize("inside", ["x", "x/deep", "link/x"])
def test_nothing_is_written_into_a_base_or_a_pack(tmp_path: Path, model: str, kind: Kind, inside: str) -> None:
    folder = write(tmp_path / "model", MADE[model])
    (folder / "link").symlink_to(folder)
    for place in (folder / inside, *([folder] if kind is FILES else [])):
        with pytest.raises(GraftError, match=rf"model, which is a {model}"):
            check_place(place, kind)
    with pytest.raises(GraftError, match=rf"model, which is a {model}"):
        check_file(folder / inside)
    (folder / f"{model}.json").write_text("{", encoding="utf-8")  # damaged, it is still one
    with pytest.raises(GraftError, match=rf"model, which is a {model}"):
        check_file(folder / inside)


def test_a_document_of_another_kind_makes_no_base_of_the_folders_above(tmp_path: Path) -> None:
    write(tmp_path, {"base.json": '{"kind": "something else"}', "model.safetensors": ""})
    check_place(tmp_path / "x", BASE)
    check_file(tmp_path / "x.txt")


@pytest.mark.parametrize("kind", [*KINDS.values(), FILES], ids=[*KINDS, "files"])
def test_a_file_is_no_folder(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GraftError, match="file is a file"):
        check_place(tmp_path / "file", kind)
    with pytest.raises(GraftError, match="file is no folder"):
        check_place(tmp_path / "file" / "inside", kind)


def test_a_link_leads_to_the_place_that_counts(tmp_path: Path) -> None:
    for name in ("base", "pack"):
        (tmp_path / f"to-{name}").symlink_to(write(tmp_path / name, MADE[name]))
    check_place(tmp_path / "to-base", BASE)
    with pytest.raises(GraftError, match="to-pack is a pack"):
        check_place(tmp_path / "to-pack", BASE)
    (tmp_path / "dangling").symlink_to(tmp_path / "not-there")
    check_place(tmp_path / "dangling", BASE)
    (tmp_path / "far").symlink_to(tmp_path / "not-there" / "nor-this")
    with pytest.raises(GraftError, match=r"far is a link to .*there is no folder"):
        check_place(tmp_path / "far", BASE)
    (tmp_path / "round").symlink_to(tmp_path / "round")
    with pytest.raises(GraftError, match="round is a link that leads back"):
        check_place(tmp_path / "round", BASE)


def test_a_run_that_begins_is_marked_and_keeps_its_kind(tmp_path: Path) -> None:
    begin_run(tmp_path / "run", "pack")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["of"] == "pack"
    check_place(tmp_path / "run", RUNS["pack"])
    with pytest.raises(GraftError, match="is the run of a pack"):
        check_place(tmp_path / "run", RUNS["base"])


def test_a_finished_run_of_today_and_of_earlier_versions_is_known(toy_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(toy_run, tmp_path / "run"))
    check_place(run, RUNS["base"])
    (run / "run.json").unlink()
    check_place(run, RUNS["base"])
    with pytest.raises(GraftError, match="is the run of a base"):
        check_place(run, RUNS["pack"])
