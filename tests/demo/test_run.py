"""The demo as a user runs it: the shipped base, the report, the table and the samples."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from graftmt.base import Base
from graftmt.configuration import from_mapping, load_yaml
from graftmt.demo.corpus import BASE_LANGUAGES, NEW_LANGUAGES, write_corpus
from graftmt.demo.run import DemoOptions, run_demo
from graftmt.errors import GraftError
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
    folder = tmp_path_factory.mktemp("demo")
    run_demo(DemoOptions(folder=folder, corpus=corpus, test_lines=12, quiet=True), say=lambda text: None)
    return folder


def test_the_report_has_every_direction_and_good_scores(demo: Path) -> None:
    report = json.loads((demo / "report.json").read_text(encoding="utf-8"))
    assert set(report["directions"]) == {f"{a}-{b}" for a in BASE_LANGUAGES for b in BASE_LANGUAGES if a != b}
    assert report["averages"]["all"]["chrf"] >= 95
    assert report["seconds"] > 0
    assert len(report["samples"]) == 10
    assert len({sample["direction"] for sample in report["samples"]}) == 10
    assert (demo / "chrf.png").read_bytes().startswith(b"\x89PNG")
    assert "| en-fr |" in (demo / "report.md").read_text(encoding="utf-8")


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


def test_the_command_prints_a_table_and_samples(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from graftmt.cli.demo import show

    report = json.loads((demo / "report.json").read_text(encoding="utf-8"))
    show(report, demo)
    printed = capsys.readouterr().out
    assert all(f"{sample['direction']}" in printed for sample in report["samples"])
    assert "Average of 20 directions" in printed
    assert "graftmt translate" in printed


def test_a_corpus_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    options = DemoOptions(folder=tmp_path / "demo", corpus=tmp_path / "nothing", quiet=True)
    with pytest.raises(GraftError, match="nothing"):
        run_demo(options, say=lambda text: None)


@pytest.mark.slow
def test_from_scratch_reaches_the_same_scores(tmp_path: Path, demo: Path) -> None:
    """Some ten minutes on two cores: the whole training, then the shipped base on the same lines."""
    fresh = run_demo(DemoOptions(folder=tmp_path / "fresh", from_scratch=True, quiet=True), say=lambda text: None)
    shipped = run_demo(
        DemoOptions(folder=tmp_path / "shipped", corpus=tmp_path / "fresh" / "corpus", quiet=True), say=lambda text: None
    )
    difference = fresh.report["averages"]["all"]["chrf"] - shipped.report["averages"]["all"]["chrf"]
    assert abs(difference) <= 1
