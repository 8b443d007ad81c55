"""The profiles that come with graftmt are whole and agree with the configurations and the paper; others are looked over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graftmt.configuration import from_mapping, load_yaml, to_mapping
from graftmt.errors import ConfigError
from graftmt.experiments.definitions import chain_of, figures, models, run_owner, tables
from graftmt.experiments.job_settings import (
    Places,
    bilingual_config,
    pack_config,
    retrain_mapping,
    training_settings,
)
from graftmt.experiments.jobs import Job
from graftmt.experiments.planning import Request, make_plan
from graftmt.experiments.profiles import Profile, known_profiles, load_profile
from graftmt.training import TrainConfig
from graftmt.training.retrain_request import retrain_config

ROOT = Path(__file__).parents[2]
PLACES = Places(run=Path("run"), corpus=Path("corpus"), base=Path("base"))


def test_those_that_are_promised_are_there() -> None:
    assert known_profiles() == ["demo", "docs", "docs-post-norm", "docs-quick", "paracrawl", "ted"]


def test_null_takes_an_entry_out_as_an_override_as_in_a_file(tmp_path: Path) -> None:
    sets = load_profile("docs").evaluation.sets
    assert {*load_profile("docs", ["evaluation.sets.valid=null"]).evaluation.sets} == {*sets} - {"valid"}
    own = tmp_path / "own.yaml"
    own.write_text("extends: docs\nevaluation: {sets: {valid: null}}\n", encoding="utf-8")
    assert load_profile(str(own)) == load_profile("docs", ["evaluation.sets.valid=null"])
    with pytest.raises(ConfigError, match="nothing to score"):
        load_profile("docs", [f"evaluation.sets.{name}=null" for name in sets])


@pytest.mark.parametrize("name", known_profiles())
def test_every_table_and_figure_of_its_part_of_the_paper_can_be_planned(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    mine = [number for number, table in tables().items() if table.corpus == profile.paper]
    drawn = [number for number, figure in figures().items() if figure.corpus == profile.paper]
    plan = make_plan(profile, Request(tables=tuple(mine), figures=tuple(drawn), bases=(4,)))
    assert len({job.key for job in plan.jobs}) == len(plan.jobs), "two jobs would share a result"
    for job in plan.jobs:
        if job.kind in ("model", "size"):
            training_settings(profile, job)  # a configuration can be made of each
    for row in plan.rows:
        assert row.jobs or row.reason, f"{row.where}, {row.label}"
        assert not row.jobs or not row.reason


def test_docs_has_the_settings_of_the_configurations_it_stands_for() -> None:
    profile = load_profile("docs")
    base = from_mapping(TrainConfig, load_yaml(ROOT / "configs" / "docs-base.yaml"))
    made = to_mapping(profile.base)
    assert [{**stage, "directions": None} for stage in made["stages"]] == [
        {**stage, "directions": None} for stage in to_mapping(base)["stages"]
    ]
    assert (profile.base.model, profile.base.subwords) == (base.model, base.subwords)
    assert {*profile.others} == {*profile.initial} - {"en"}


def test_docs_trains_packs_with_the_settings_of_ted() -> None:
    """Table 23 for incremental training; what is left is size and time, and gradients that are clipped."""
    docs, ted = (load_profile(name).packs.source for name in ("docs", "ted"))
    names = ("learning_rate", "dropout", "betas", "schedule", "temperature", "label_smoothing", "cooldown")
    assert [getattr(docs, name) for name in names] == [getattr(ted, name) for name in names]


def test_a_profile_that_extends_another_says_only_what_differs() -> None:
    docs, quick = load_profile("docs"), load_profile("docs-quick")
    assert quick.base == docs.base and quick.initial == docs.initial, "one base serves both"
    assert quick.packs.source.batch_tokens == docs.packs.source.batch_tokens
    assert (quick.packs.source.steps, quick.packs.source.learning_rate) == (700, 0.002)
    assert {*docs.evaluation.sets} == {"test", "valid", "test-last"} and {*quick.evaluation.sets} == {"test"}
    assert quick.changes["20"] and "20" not in docs.changes


def test_the_post_norm_profile_differs_from_docs_by_its_base_alone() -> None:
    docs, post = to_mapping(load_profile("docs")), to_mapping(load_profile("docs-post-norm"))
    assert {key for key in docs if docs[key] != post[key]} == {"name", "title", "base", "expected"}
    assert {key for key in docs["base"] if docs["base"][key] != post["base"][key]} == {"model", "stages", "validations"}
    assert {key for key in docs["base"]["model"] if docs["base"]["model"][key] != post["base"]["model"][key]} == {"norm"}
    ted = load_profile("ted").base.stages[0]
    names = ("learning_rate", "warmup", "schedule", "cooldown", "label_smoothing", "temperature")
    for stage, steps in zip(load_profile("docs-post-norm").base.stages, (8_000, 10_000), strict=True):
        assert stage.steps == steps
        assert [getattr(stage, name) for name in names] == [getattr(ted, name) for name in names]


def test_the_command_in_the_post_norm_profile_runs_the_rows_that_it_is_for(graftmt, graft_corpus: Path, tmp_path: Path) -> None:
    text = (ROOT / "src/graftmt/experiments/profiles/docs-post-norm.yaml").read_text("utf-8")
    (command,) = (line.removeprefix("#   graftmt ").split() for line in text.splitlines() if "graftmt experiment run" in line)
    command[command.index("--corpus") + 1] = str(graft_corpus)
    shown = graftmt(*command, "-o", str(tmp_path), "--dry-run", "--json")
    assert shown.code == 0, shown.stderr
    rows = ("model-7", "model-14", "model-12", "model-20", "model-106")
    assert [job["job"] for job in json.loads(shown.stdout)["jobs"]] == ["model-4", *(f"{row}-el-seed1" for row in rows)]


def test_a_profile_of_ones_own_can_extend_one_and_no_stranger(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("extends: docs\nname: own\npacks: {source: {steps: 5}}\n", encoding="utf-8")
    assert (load_profile(str(own)).packs.source.steps, load_profile(str(own)).packs.target.steps) == (5, 4000)
    for stranger in ("dox", "[1]", "../docs"):
        own.write_text(f"extends: {stranger}\nname: own\n", encoding="utf-8")
        with pytest.raises(ConfigError, match="extends"):
            load_profile(str(own))


def test_ted_has_the_settings_of_the_papers_configurations() -> None:
    profile = load_profile("ted")
    bilingual = from_mapping(TrainConfig, load_yaml(ROOT / "configs" / "bilingual.yaml"))
    made = bilingual_config(profile, Job(kind="model", model=1, languages=("el", "en")), PLACES)
    assert (made.stages, made.model, made.subwords) == (bilingual.stages, bilingual.model, bilingual.subwords)
    assert made.validation.every == bilingual.validation.every
    for name, number in (("retrain", 5), ("substitute", 59)):
        config = retrain_config(load_yaml(ROOT / "configs" / f"{name}.yaml"))
        mine = retrain_config(retrain_mapping(profile, Job(kind="model", model=number, languages=("el",)), PLACES))
        assert to_mapping(mine.stages[0]) | {"steps": 0} == to_mapping(config.stages[0]) | {"steps": 0}
        assert (mine.method, mine.upsample) == (config.method, config.upsample)
        assert mine.stages[0].steps == pytest.approx(config.stages[0].steps, rel=0.1)


def test_the_arithmetic_of_epochs() -> None:
    """Table 8's line pairs, Table 9's 3 epochs = 320k updates, and 34k updates for 120 epochs of Greek."""
    profile = load_profile("ted")
    an_update = (62.27e6 + 2 * 2.41e6) / (320_000 / 3)
    first, second = profile.base.stages
    assert first.steps == pytest.approx(120 * 7.11e6 / an_update, rel=0.01)
    assert second.steps == pytest.approx(10 * 62.27e6 / an_update, rel=0.01)
    assert profile.retrain.stages[0].steps == pytest.approx(10 * 320_000 / 3, rel=0.01)
    greek = 134.3e3 * 120 / 34_000
    assert profile.packs.source.steps == 34_000
    assert profile.packs.multi_aligned_steps == pytest.approx(20 * 2.41e6 / greek, rel=0.01)
    assert profile.packs.several_steps == pytest.approx(120 * (134.3e3 + 108.5e3 + 87.4e3 + 56.6e3) / greek, rel=0.01)


def test_packs_train_for_as_long_as_their_text_asks() -> None:
    profile = load_profile("ted")
    steps = {
        number: pack_config(profile, Job(kind="model", model=number, languages=languages), PLACES).stages[0].steps
        for number, languages in ((7, ("el",)), (16, ("el",)), (22, ("el", "uk", "sv", "id")))
    }
    assert steps == {7: 34_000, 16: 101_000, 22: 97_700}


@pytest.mark.parametrize(
    ("number", "language", "epochs", "pairs"),
    [
        (7, "uk", 120, 108.5e3),
        (31, "sv", 120, 56.6e3),
        (16, "uk", 20, 1.81e6),
        (36, "id", 20, 1.61e6),
        (19, "el", 120, 134.3e3 + 19 * 1000),
        (21, "el", 120, 134.3e3 + 19 * 100),
    ],
)
def test_packs_have_the_papers_epochs_of_their_own_text(number: int, language: str, epochs: int, pairs: float) -> None:
    an_update = 134.3e3 * 120 / 34_000
    config = pack_config(load_profile("ted"), Job(kind="model", model=number, languages=(language,)), PLACES)
    assert config.stages[0].steps == pytest.approx(epochs * pairs / an_update, rel=0.01)
    assert config.stages[0].steps / config.validation.every == pytest.approx(24, rel=0.01)


@pytest.mark.parametrize(
    ("number", "languages", "pairs"),
    [
        (5, ("el",), 62.27e6 + 2 * 2.41e6),
        (6, ("el", "uk", "sv", "id"), 62.27e6 + 2 * 6.81e6 + 12 * 0.07e6),
        (57, ("el",), 7.11e6 + 2 * 134.3e3),
        (58, ("el", "uk", "sv", "id"), 7.11e6 + 2 * 386.8e3),
    ],
)
def test_re_training_has_ten_epochs(number: int, languages: tuple[str, ...], pairs: float) -> None:
    an_update = (62.27e6 + 2 * 2.41e6) / (320_000 / 3)
    made = retrain_config(retrain_mapping(load_profile("ted"), Job(kind="model", model=number, languages=languages), PLACES))
    assert made.stages[0].steps == pytest.approx(10 * pairs / an_update, rel=0.01)
    assert made.stages[0].steps / made.validation.every == pytest.approx(10, rel=0.01)


def test_a_pack_watches_the_directions_of_the_forgetting_figure() -> None:
    config = pack_config(load_profile("ted"), Job(kind="model", model=12, languages=("el",)), PLACES)
    assert (config.validation.directions, config.validation.watch) == (("el-en",), ("el-fr",))
    config = pack_config(load_profile("docs"), Job(kind="model", model=31, languages=("uk",)), PLACES)
    assert (config.validation.directions, config.validation.watch) == (("en-uk",), ("fr-uk", "de-uk", "ru-uk"))


def test_a_base_in_the_middle_belongs_to_the_run_of_the_last() -> None:
    assert (run_owner(3), run_owner(4), run_owner(40), run_owner(39)) == (4, 4, 42, 39)
    assert chain_of(42) == [40, 42]


def test_changes_reach_the_model_they_are_for() -> None:
    profile = load_profile("docs", ["changes.12=[stages.0.learning_rate=5e-4]"])
    rates = [
        pack_config(profile, Job(kind="model", model=number, languages=("el",)), PLACES).stages[0].learning_rate
        for number in (11, 12)
    ]
    assert rates == [profile.packs.source.learning_rate, 5e-4]


def test_a_profile_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        (ROOT / "src/graftmt/experiments/profiles/demo.yaml").read_text("utf-8").replace("name: demo", "name: mine")
    )
    assert load_profile(str(path)).name == "mine"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("pivot=fr", "pivot is 'fr'; expected en, which all tables and figures of the paper are about"),
        ("initial=[fr, ru]", "pivot is 'en', which is not among the initial languages"),
        ("others=[]", "there would be nothing to score"),
        ("others=[el]", "expected initial languages other than en"),
        ("packs.watch=[pl]", "packs.watch names 'pl'"),
        ("new=[fr]", "new names fr; expected languages that are not initial"),
        ("new=[el, zh-TW]", "zh-TW: results name directions as el-en.*as in zh_TW"),
        ("packs.pairs={el: 3}", "packs.pairs has el; expected a number of line pairs for each of"),
        ("evaluation.sets={}", "there would be nothing to score"),
        ("base.model=null", "base.model is None; expected a mapping"),
        ("base.stages=[{steps: 1}]", "expected two, English-centric and multi-parallel"),
        ("base.validation.lines=0", "chosen by validation"),
        ("changes={seven: []}", "go by the numbers of models; got 'seven'"),
        ("changes={'3': [stages.0.steps=7]}", r"\(3\) is a stage of the run that makes \(4\).*write changes.4="),
        ("packs.validations=0", "packs: validations is 0; expected at least 1"),
        ("packs.several_steps=0", "packs: several_steps is 0; expected at least 1"),
        ("base.validations=0", "base: validations is 0; expected at least 1"),
        ("retrain.max_length=-1", "retrain: max_length is -1; expected at least 1"),
        ("bilingual.stages=[]", "bilingual: stages is empty"),
        ("augmentation.beam=0", "augmentation: beam is 0; expected at least 1"),
        ("threads=-5", "threads is -5; expected 0 to"),
        ("seed=-1", "seed is -1; expected a number from 0"),
        ("sizes=[1000, 0]", "sizes has 1000, 0; expected numbers of at least 1"),
        ("size_steps={'1000': 0}", "size_steps has 0; expected numbers of at least 1"),
        ("evaluation.beam=0", "evaluation: beam, max_length and batch_tokens must be at least 1"),
        ("evaluation.max_length=0", "evaluation: beam, max_length and batch_tokens must be at least 1"),
        ("evaluation.batch_tokens=-1", "evaluation: batch_tokens is -1; expected a number that is not negative"),
        ("evaluation.keep_lines=-1", "evaluation: keep_lines is -1; expected a number that is not negative"),
        ("evaluation.sets.test.lines=0", "evaluation.sets.test: lines is 0; expected at least 1"),
        ("packs.sauce=1", "unknown key 'packs.sauce'"),
        ("evaluation.sets.test.linez=1", "did you mean 'lines'?"),
    ],
)
def test_a_profile_that_makes_no_sense_is_refused(change: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        load_profile("demo", [change])


def test_every_model_that_is_changed_or_left_out_is_one_of_the_papers() -> None:
    for name in known_profiles():
        profile: Profile = load_profile(name)
        assert {int(number) for number in (*profile.changes, *profile.left_out)} <= models().keys()


def test_small_parts_of_the_text_are_trained_on_for_fewer_updates() -> None:
    profile = load_profile("docs")
    job = Job(kind="size", model=7, languages=("el",), seed=1, lines=1000)
    small, whole = (pack_config(profile, one, PLACES) for one in (job, Job(kind="model", model=7, languages=("el",), seed=1)))
    assert (small.stages[0].steps, whole.stages[0].steps) == (1000, 4000)
    assert small.stages[0].warmup <= 100
    assert small.validation.every < small.stages[0].steps
    pair = Job(kind="size", model=1, languages=("el", "en"), seed=1, lines=1000)
    assert bilingual_config(profile, pair, PLACES).stages[0].steps == 1000


@pytest.mark.parametrize("key", ["7", "null", "[a, b]: 1\n? x"])
def test_a_key_that_is_no_text_is_an_error(tmp_path: Path, key: str) -> None:
    (tmp_path / "own.yaml").write_text(f"name: own\n{key}: 1\n", encoding="utf-8")
    with pytest.raises(ConfigError):
        load_profile(str(tmp_path / "own.yaml"))
