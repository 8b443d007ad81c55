"""The demo as a user runs it: the shipped base, the packs, the proof, the report, the table and the samples."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from graftmt.base import Base
from graftmt.configuration import from_mapping, load_yaml
from graftmt.data import Corpus
from graftmt.demo.demo_packs import GREEK, MERGES, make_pack, pack_config
from graftmt.demo.phrase_corpus import BASE_LANGUAGES, NEW_LANGUAGES, build_corpus, write_corpus
from graftmt.demo.story import DemoOptions, check_no_other_base, copy_shipped_base, put_base, run_demo
from graftmt.errors import GraftError
from graftmt.packs import Recipe, load_pack
from graftmt.packs.components.first_values import FirstValues
from graftmt.progress import heard_by
from graftmt.text import train_subwords
from graftmt.training import TrainConfig

LANGUAGES = (*BASE_LANGUAGES, *NEW_LANGUAGES)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's own test lines, which do not depend on how many training lines are made … but need names to be known."""
    folder = tmp_path_factory.mktemp("cldr")
    write_corpus(folder, LANGUAGES, train_lines=6000, valid_lines=20, test_lines=40)
    return folder


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """The real demo at reduced size: few test lines, packs that train for a moment."""
    folder = tmp_path_factory.mktemp("demo")
    run_demo(small(folder, corpus))
    return folder


def small(folder: Path, corpus: Path, **changes: Any) -> DemoOptions:
    return DemoOptions(**{"folder": folder, "corpus": corpus, "test_lines": 12, "pack_steps": 6, **changes})


@pytest.fixture(scope="module")
def report(demo: Path) -> dict[str, Any]:
    return json.loads((demo / "report.json").read_text(encoding="utf-8"))


def test_the_report_has_every_direction_with_its_route(report: dict[str, Any]) -> None:
    routes = {f"{a}-{b}": ("base", False) for a in BASE_LANGUAGES for b in BASE_LANGUAGES if a != b}
    routes |= {f"el-{b}": ("source pack", b != "en") for b in BASE_LANGUAGES}
    routes |= {f"{a}-uk": ("target pack", a != "en") for a in BASE_LANGUAGES}
    routes["el-uk"] = ("composition", True)
    assert {name: (entry["route"], entry["zero_shot"]) for name, entry in report["directions"].items()} == routes
    for entry in (*report["directions"].values(), *report["comparisons"]):
        assert 0 <= entry["chrf"] <= 100 and 0 <= entry["bleu"] <= 100 and entry["lines"] == 12
    assert report["averages"]["all"]["directions"] == 20
    assert report["averages"]["all"]["chrf"] >= 95
    assert report["seconds"] == pytest.approx(sum(report["seconds_by_step"].values()), abs=1)
    assert report["signatures"] and report["machine"]["cores"] > 0


def test_the_comparisons_are_the_pivot_and_the_adapters(report: dict[str, Any]) -> None:
    pivot, *adapters = report["comparisons"]
    assert (pivot["direction"], pivot["route"], pivot["zero_shot"]) == ("el-uk", "pivot", False)
    assert [entry["direction"] for entry in adapters] == ["el-en", "el-fr", "el-de", "el-es", "el-ru"]
    assert all(entry["name"] and entry["zero_shot"] == (entry["direction"] != "el-en") for entry in adapters)
    found = report["adapters_zero_shot"]
    assert found["adapters_chrf"] == pytest.approx(sum(entry["chrf"] for entry in adapters[1:]) / 4, abs=0.02)
    assert found["loss"] == pytest.approx(found["embed_chrf"] - found["adapters_chrf"], abs=0.02)


def test_the_packs_are_stored_with_their_scores(demo: Path, report: dict[str, Any]) -> None:
    assert list(report["packs"]) == ["el-source", "uk-target", "el-source-adapters"]
    for name, facts in report["packs"].items():
        pack = load_pack(demo / "packs" / name)  # recomputes the fingerprint
        assert facts["path"] == str(demo / "packs" / name) and facts["fingerprint"] == pack.fingerprint
        assert (facts["parameters"], facts["recipe"], facts["side"]) == (pack.size, str(pack.recipe), pack.side)
        assert facts["languages"] == list(pack.languages) and facts["bytes"] > 4 * pack.size and facts["seconds"] > 0
        assert len(pack.card["scores"]) == 5
    greek = Recipe.parse(report["packs"]["el-source"]["recipe"])
    assert greek.having(FirstValues()) == Recipe()  # embeddings and nothing else


def test_the_base_is_unchanged_and_all_packs_were_used(demo: Path, report: dict[str, Any]) -> None:
    assert report["base_unchanged"] is True
    proof = report["verification"]
    assert proof["base_unchanged"] and proof["stored_unchanged"] and proof["resident_unchanged"] and proof["outputs_identical"]
    assert proof["packs"] == ["el-source", "uk-target", "el-source-adapters"]
    assert sorted(proof["pack_directions"]) == ["de-uk", "el-de", "el-de", "el-uk", "el-uk"]  # alone, and combined
    assert report["base"]["fingerprint"] == proof["fingerprint"] == Base.load(demo / "base").fingerprint


@pytest.mark.slow
def test_the_proof_in_the_docs_is_what_verify_prints(demo: Path, corpus: Path, graftmt: Callable[..., Any]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "packs.md").read_text(encoding="utf-8")
    command, printed = re.findall(r"^\$ graftmt (verify .*)\n((?:.+\n)+?)```", page, flags=re.MULTILINE)[0]
    places = {
        "runs/demo/base": demo / "base",
        "packs/el-source": demo / "packs" / "el-source",
        "packs/uk-target.graftpack": demo / "packs" / "uk-target",
        "runs/demo/corpus": corpus,
    }
    for written, place in places.items():
        assert written in command
        command = command.replace(written, str(place), 1)
    result = graftmt(*command.split())
    assert (result.code, result.stderr) == (0, "")
    assert result.stdout == printed


def test_samples_table_and_figures(demo: Path, report: dict[str, Any]) -> None:
    assert len(report["samples"]) == 10
    directions = {sample["direction"] for sample in report["samples"]}
    assert len(directions) == 10 and "el-uk" in directions
    for figure in ("chrf.png", "curves.png"):
        assert (demo / figure).read_bytes().startswith(b"\x89PNG")
    table = (demo / "report.md").read_text(encoding="utf-8")
    assert "| el → uk | composition | zero-shot |" in table and "| en-fr |" in table


@pytest.mark.slow
def test_a_second_run_takes_what_is_finished(demo: Path, corpus: Path, report: dict[str, Any]) -> None:
    said: list[str] = []
    with heard_by(said.append):
        again = run_demo(small(demo, corpus)).report
    assert {name: pack["fingerprint"] for name, pack in again["packs"].items()} == {
        name: pack["fingerprint"] for name, pack in report["packs"].items()
    }
    assert again["directions"] == report["directions"]
    assert not any("starting over" in line for line in said)


@pytest.mark.slow
def test_other_settings_start_over_and_keep_the_earlier_run(tmp_path: Path, corpus: Path) -> None:
    said: list[str] = []
    train, valid = (Corpus.open(corpus, split, LANGUAGES) for split in ("train", "valid"))
    with resources.as_file(resources.files("graftmt.demo") / "base") as folder:
        base = Base.load(folder)
    configs = [pack_config(GREEK, tmp_path / "el", BASE_LANGUAGES, steps=2, seed=seed, device="cpu") for seed in (1, 2)]
    with heard_by(said.append):
        packs = [make_pack(config, base, train, valid) for config in configs]
    assert packs[0].fingerprint != packs[1].fingerprint
    assert sum("starting over" in line for line in said) == 1
    assert load_pack(tmp_path / "el.old-1" / "pack").fingerprint == packs[0].fingerprint


@pytest.mark.slow
def test_greek_reads_years_as_the_base_does() -> None:
    """What MERGES is chosen for: a year that is one piece to the base must not be two in a source pack."""
    years = [str(year) for year in range(1950, 2050)]
    with resources.as_file(resources.files("graftmt.demo") / "base") as folder:
        known = Base.load(folder).tokenizer.subwords
    assert all(len(known.encode_word(year)) == 1 for year in years)
    train = build_corpus(["el"], train_lines=40_000, valid_lines=0, test_lines=0)["train"]
    pack = train_subwords(train, merges=MERGES)
    assert [pack.encode_word(year) for year in years] == [known.encode_word(year) for year in years]


def test_the_shipped_base_is_small_whole_and_says_how_it_was_made(demo: Path) -> None:
    shipped = resources.files("graftmt.demo") / "base"
    with resources.as_file(shipped) as folder:
        assert sum(path.stat().st_size for path in folder.iterdir()) <= 4_000_000
        base = Base.load(folder)  # recomputes the fingerprint
    assert set(base.languages) == set(BASE_LANGUAGES)
    assert not set(base.languages) & set(NEW_LANGUAGES)
    assert base.fingerprint == Base.load(demo / "base").fingerprint
    with resources.as_file(resources.files("graftmt.demo") / "base.yaml") as path:
        recorded, current = base.card["config"], load_yaml(path)
    assert recorded["seed"] == current["seed"]
    config = from_mapping(TrainConfig, recorded)
    assert [stage.steps for stage in config.stages] == [stage["steps"] for stage in current["stages"]]
    assert config.subwords.merges == current["subwords"]["merges"]


def test_a_corpus_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    options = DemoOptions(folder=tmp_path / "demo", corpus=tmp_path / "nothing")
    with pytest.raises(GraftError, match="nothing"):
        run_demo(options)


def test_a_corpus_without_the_new_languages_is_an_error(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", BASE_LANGUAGES, train_lines=3000, valid_lines=5, test_lines=5)
    with pytest.raises(GraftError, match="el"):
        run_demo(small(tmp_path / "demo", tmp_path / "corpus"))


def test_a_base_that_is_not_the_demos_stays(tmp_path: Path, corpus: Path, graft_base: Callable[..., Path]) -> None:
    shutil.copytree(graft_base(), tmp_path / "mine" / "base")
    before = {path.name: path.read_bytes() for path in (tmp_path / "mine" / "base").iterdir()}
    for from_scratch in (False, True):
        with pytest.raises(GraftError, match=r"mine/base .*en, fr, ru.*--folder"):
            run_demo(small(tmp_path / "mine", corpus, from_scratch=from_scratch))
    assert {path.name: path.read_bytes() for path in (tmp_path / "mine" / "base").iterdir()} == before
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["base"]
    (tmp_path / "texts" / "base").mkdir(parents=True)
    (tmp_path / "texts" / "base" / "thesis.txt").write_text("all of it", encoding="utf-8")
    with pytest.raises(GraftError, match="is not empty and not a base"):
        run_demo(small(tmp_path / "texts", corpus))


def test_a_base_that_the_demo_has_elsewhere_may_be_replaced(tmp_path: Path, graft_base: Callable[..., Path]) -> None:
    options = DemoOptions(folder=tmp_path)
    folder, trained = tmp_path / "base", options.training / "base"
    copy_shipped_base(folder)
    shipped = Base.load(folder).fingerprint
    shutil.copytree(graft_base(), trained)
    check_no_other_base(folder, replace(options, from_scratch=True))
    put_base(trained, folder)
    assert Base.load(folder).fingerprint == Base.load(trained).fingerprint
    check_no_other_base(folder, options)
    copy_shipped_base(folder)
    assert Base.load(folder).fingerprint == shipped
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    check_no_other_base(folder, options)  # the same base: nothing is written
    copy_shipped_base(folder)
    assert (folder / "notes.txt").is_file()
    with pytest.raises(GraftError, match="with other things in it"):
        check_no_other_base(folder, replace(options, from_scratch=True))


@pytest.mark.slow
def test_the_demo_reaches_its_scores(tmp_path: Path) -> None:
    """Some two minutes on two cores: the demo as it is shipped."""
    report = run_demo(DemoOptions(folder=tmp_path)).report
    for name, entry in report["directions"].items():
        floors = {"base": 97, "source pack": 90 if entry["zero_shot"] else 95, "composition": 85}
        floor = floors.get(entry["route"], 88 if entry["zero_shot"] else 92)
        assert entry["chrf"] >= floor, name
    assert report["base_unchanged"]


@pytest.mark.slow
@pytest.mark.first
def test_from_scratch_reaches_the_same_scores(tmp_path: Path) -> None:
    """Some ten minutes on two cores: the whole training, then the shipped base on the same lines."""
    few = {"test_lines": 200, "pack_steps": 2}
    fresh = run_demo(DemoOptions(folder=tmp_path / "fresh", from_scratch=True, **few))
    corpus = tmp_path / "fresh" / "corpus"
    shipped = run_demo(DemoOptions(folder=tmp_path / "shipped", corpus=corpus, **few))
    difference = fresh.report["averages"]["all"]["chrf"] - shipped.report["averages"]["all"]["chrf"]
    assert abs(difference) <= 1
