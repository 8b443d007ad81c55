"""Recipes of our own: run like the paper's, reported among them, and tested against the best of them on the kept lines."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from noisy_results import LINES, source, write
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from graftmt.errors import DataError
from graftmt.experiments import definitions
from graftmt.experiments.addresses import Addresses
from graftmt.experiments.job_settings import Places, pack_config
from graftmt.experiments.jobs import Job, in_order
from graftmt.experiments.paper import OURS, ROWS
from graftmt.experiments.planning import Plan, Request, make_plan
from graftmt.experiments.profiles import load_profile
from graftmt.experiments.reporting import write_report
from graftmt.experiments.reporting.agreement import Checked, Claim
from graftmt.experiments.reporting.content import make_report, trade_offs
from graftmt.experiments.reporting.kept_translations import Kept
from graftmt.experiments.reporting.latex import latex_table
from graftmt.experiments.reporting.markdown import markdown_table
from graftmt.experiments.reporting.selection import select_results
from graftmt.experiments.scheduling import run_experiments
from graftmt.experiments.store import Store
from graftmt.packs.parts import Setting
from graftmt.packs.recipe import Recipe
from graftmt.training.pack_job import scoped_directions

PLACES = Places(run=Path("run"), corpus=Path("corpus"))


# Jobs


def test_our_rows_are_planned_with_the_papers_among_them() -> None:
    docs = load_profile("docs")
    plan = make_plan(docs, Request(tables=(101, 102), languages=("el", "uk"), seeds=(1, 2)))
    assert not [row for row in plan.rows if row.reason]
    jobs = {row.number: [job.key for job in row.jobs] for row in plan.rows}
    assert jobs["103"] == ["model-103-el-seed1", "model-103-uk-seed1", "model-103-el-seed2", "model-103-uk-seed2"]
    assert {"7", "9", "12", "14", "24", "28", "30", "31", "34"} <= set(jobs)
    only_greek = make_plan(docs, Request(tables=(101,)))
    assert {language for job in only_greek.jobs for language in job.languages} == {"el"}


def test_the_list_of_recipes_has_the_papers_and_then_ours(graftmt) -> None:
    assert not [row.id for row in ROWS if row.model.ours]
    assert all(row.model.ours for row in OURS)
    listed = [one["id"] for one in json.loads(graftmt("recipes", "--json").stdout)]
    assert listed == [row.id for row in (*ROWS, *OURS)]


@pytest.mark.parametrize("name", ["docs", "ted"])
def test_the_second_stage_of_123_is_as_long_as_the_first(name: str) -> None:
    profile = load_profile(name)
    half, whole = (pack_config(profile, Job(kind="model", model=n, languages=("el",)), PLACES).stages for n in (108, 123))
    assert half[1].steps == half[0].steps // 2
    assert (whole[0], whole[1].steps) == (half[0], whole[0].steps)


def test_what_is_for_trained_directions_only_has_a_stage_that_the_profile_can_change() -> None:
    profile = load_profile("docs", ["changes.103=[stages.1.learning_rate=1e-4]"])
    two, changed = (pack_config(profile, Job(kind="model", model=n, languages=("el",)), PLACES).stages for n in (104, 103))
    assert [stage.steps for stage in two] == [4000, 2000]
    assert (changed[0].learning_rate, changed[1].learning_rate) == (5e-4, 1e-4)
    alone = pack_config(profile, Job(kind="model", model=101, languages=("el",)), PLACES)
    assert len(alone.stages) == 1


def test_what_is_for_english_only_is_not_for_languages_with_a_few_lines() -> None:
    places = replace(PLACES, partners=("en", "fr"))
    config = pack_config(load_profile("docs"), Job(kind="model", model=108, languages=("el",)), places)
    assert config.data.few == ("fr",)
    assert [str(direction) for direction in scoped_directions(config)] == ["el-en"]
    without = pack_config(load_profile("docs"), Job(kind="model", model=106, languages=("el",)), places)
    assert without.data.few == ()


@pytest.mark.parametrize("name", ("docs", "demo", "ted"))
def test_a_profile_leaves_out_what_its_base_has_no_layers_for(name: str) -> None:
    profile = load_profile(name)
    architecture = profile.base.model.architecture()
    for model in definitions.models().values():
        if model.recipe is not None and model.corpus == profile.paper and str(model.id) not in profile.left_out:
            Setting(recipe=Recipe.parse(model.recipe), config=architecture, side=model.side).check()


def test_all_translations_are_kept_unless_a_profile_says_otherwise() -> None:
    for name in ("docs", "demo", "ted", "paracrawl"):
        assert load_profile(name).evaluation.keep_lines is None


@pytest.mark.slow
def test_a_scoped_row_from_its_training_to_the_tests_of_the_report(run, results, graftmt, quick, toy, tmp_path: Path) -> None:
    folder = tmp_path / "experiments"
    outcome = run(folder, "--tables", "101,102", "--rows", "7,101,103,31,113", "--seeds", "1,2", "packs.source.steps=4")
    assert (outcome["failed"], outcome["left"]) == ({}, [])
    found = results(folder)
    scoped, plain = found["model-103-el-seed1"], found["model-101-el-seed1"]
    assert scoped["recipe"] == "embed + enc-adapters-all(512)@trained + init:alignment"
    assert (plain["steps"], scoped["steps"]) == (4, 6)
    assert scoped["parameters"] > plain["parameters"]
    assert scoped["verified"] == {"base_unchanged": True, "base_scores_identical": True}
    stages = scoped["settings"]["stages"]
    assert [stage["steps"] for stage in stages] == [4, 2]
    # Its first stage is the whole of (101), and zero-shot directions have nothing else.
    translations = folder / "translations"
    for target in ("fr", "ru"):
        first, second = (
            next((translations / found[f"model-{n}-el-seed1"]["name"]).glob(f"test.*.el-{target}.txt")) for n in (101, 103)
        )
        assert first.read_bytes() == second.read_bytes()
        name = f"el-{target}"
        assert scoped["scores"]["test"]["directions"][name] == plain["scores"]["test"]["directions"][name]
    assert [path.suffixes[-2] for path in sorted((translations / "lines").iterdir())] == [".el", ".en", ".fr", ".ru"]
    settings = (*quick, *toy, "packs.source.steps=4")
    report = graftmt("experiment", "report", "demo", *settings, "--results", str(folder), "--json", "--figures", "3")
    assert report.code == 0, report.stderr
    document = json.loads(report.stdout)
    assert {101, 102} <= set(document["tables"])
    by_row = {(one["model"], one["seed"], one["average"]): one for one in document["significance"]}
    assert set(by_row) == {
        *((n, seed, average) for n in (7, 101, 103) for seed in (1, 2) for average in ("X→EN", "X→/EN")),
        *((n, seed, average) for n in (31, 113) for seed in (1, 2) for average in ("EN→X", "/EN→X")),
    }
    for (number, seed, _), one in by_row.items():
        assert one["against"] == (7 if number in (7, 101, 103) else 31)
        assert one["against_seed"] == seed
        assert one["verdict"] in ("better", *NEITHER, "worse") or number == one["against"]
        assert one["p"] is None or 0 < one["p"] <= 1
    zero_shot = [by_row[n, 1, "X→/EN"] for n in (101, 103)]
    assert zero_shot[0]["p"] == zero_shot[1]["p"]
    text = (folder / "report" / "table-101.md").read_text(encoding="utf-8")
    assert "el as source, test: significance" in text
    assert "no significant loss in EL→EN and EL→/EN" in text
    assert "## Beyond the paper" in (folder / "report" / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_scoped_packs_are_composed_without_what_is_for_english(
    quick, toy, graft_corpus: Path, graft_base, results, tmp_path: Path
) -> None:
    profile = load_profile("demo", [*quick, *toy])
    jobs = in_order(
        [
            Job(kind=kind, source=source, target=target, languages=("el", "uk"))
            for kind, source, target in (("composition", 103, 113), ("composition", 101, 115), ("pivot", 103, 113))
        ],
        profile,
    )
    store = Store(Addresses(profile, tmp_path, graft_corpus, {4: graft_base()}))
    outcome = run_experiments(store, Plan(rows=(), jobs=jobs))
    assert outcome.failed == {}
    found = results(tmp_path)
    both = [found[f"compose-{pair}-el-uk-seed1"] for pair in ("103+113", "101+115")]
    assert both[0]["scores"] == both[1]["scores"]
    assert both[0]["fingerprint"] != both[1]["fingerprint"]
    assert found["pivot-103+113-el-uk-seed1"]["scores"]["test"]["directions"].keys() == {"el-uk"}


# Reports


def report_of(folder: Path, **options: Any) -> Any:
    return make_report(select_results(folder).results, Kept(folder / "translations"), **options)


NEITHER = ("level", "undecided")


def remembered(folder: Path) -> list[dict[str, Any]]:
    """What a report of this folder has compared."""
    write_report(folder, folder.parent / "remembered", figures=[])
    document = json.loads((folder.parent / "remembered" / "comparisons.json").read_text(encoding="utf-8"))
    return list(document["comparisons"])


def verdicts(folder: Path, number: int) -> dict[str, str]:
    return {one.column: one.verdict for one in report_of(folder).tested if one.model == number}


@pytest.mark.slow
def test_a_recipe_is_compared_with_the_best_of_each_column(ran) -> None:
    ran(7, source(0.6, 0.8))
    ran(12, source(0.9, 0.2))
    ran(19, source(0.99, 0.99))  # with lines for other languages: not English-centric
    ran(101, source(0.6, 0.8))
    ran(103, source(0.9, 0.8))
    folder = ran(104, source(0.98, 0.98))
    report = report_of(folder)
    assert {one.against for one in report.tested if one.average == "X→EN"} == {12}
    assert {one.against for one in report.tested if one.average == "X→/EN"} == {7}
    assert verdicts(folder, 101) == {"EL→EN": "worse", "EL→/EN": "level"}, "the same translations as (7)"
    assert verdicts(folder, 103) == {"EL→EN": "level", "EL→/EN": "level"}
    assert verdicts(folder, 104) == {"EL→EN": "better", "EL→/EN": "better"}
    assert verdicts(folder, 12) == {"EL→EN": "the best itself", "EL→/EN": "worse"}
    assert [one.model for one in report.standings if one.holds] == [103, 104]
    (standing,) = (one for one in report.standings if one.model == 101)
    assert standing.losses == ("EL→EN",)


def claims_of(checked: Checked) -> tuple[Claim, ...]:
    return (*checked.holds, *checked.fails, *checked.undecided, *checked.untested)


@pytest.mark.slow
def test_findings_say_how_far_apart_two_rows_are_and_whether_by_chance(ran) -> None:
    ran(7, source(0.6, 0.8))
    folder = ran(12, source(0.9, 0.795))
    found = {checked.finding[:12]: checked for checked in report_of(folder).findings}
    (helps,) = found["adapters or "].holds
    (forgets,) = claims_of(found["… and cost i"])
    (directly,) = (one for one in report_of(folder, tables=[101]).tested if one.model == 7 and one.average == "X→EN")
    assert helps.p == directly.p and helps.p < 0.05 and helps.difference == pytest.approx(-directly.difference, abs=0.002)
    assert forgets.text == "(7) > (12)" and abs(forgets.difference) < 2 < helps.difference
    assert re.fullmatch(r"\(12\) > \(7\): \+\d+\.\d \[\+\d+\.\d, \+\d+\.\d\], p = 0\.0\d\d", str(helps))
    for one in (folder / "translations" / "model-7-el-seed1").iterdir():
        one.unlink()
    for findings in (report_of(folder).findings, report_of(folder, metric="bleu").findings):
        assert findings
        assert all(claims_of(checked) == checked.untested for checked in findings)
        assert all(claim.p is None for checked in findings for claim in checked.untested)


@pytest.mark.slow
def test_a_report_elsewhere_keeps_what_was_tested_on_translations_that_stay_behind(ran, tmp_path: Path) -> None:
    ran(7, source(0.6, 0.8))
    ran(12, source(0.9, 0.2))
    folder = ran(103, source(0.9, 0.8))
    first, _ = write_report(folder, tmp_path / "first", figures=[])
    assert any(one.p is not None for one in first.tested) and any(claim.p for one in first.findings for claim in one.holds)
    again, _ = write_report(tmp_path / "first", tmp_path / "second", figures=[])
    assert (again.tested, again.findings, again.standings) == (first.tested, first.findings, first.standings)
    kept = [(tmp_path / name / "comparisons.json").read_bytes() for name in ("first", "second")]
    assert kept[0] == kept[1]

    shutil.move(folder / "translations", tmp_path / "gone")
    poorer, _ = write_report(folder, tmp_path / "second", figures=[])
    assert poorer.tested == first.tested, "those that the report there has"
    assert (tmp_path / "second" / "comparisons.json").read_bytes() == kept[0]

    other = tmp_path / "first" / "results" / "model-103-el-seed1.json"  # a result that these tests are not of
    document = json.loads(other.read_text(encoding="utf-8"))
    document["scores"]["test"]["directions"]["el-en"]["chrf"] -= 0.5
    other.write_text(json.dumps(document), encoding="utf-8")
    changed, _ = write_report(tmp_path / "first", tmp_path / "third", figures=[])
    tested = {one.column: one.verdict for one in changed.tested if one.model == 103}
    assert tested == {"EL→EN": "not tested", "EL→/EN": "level"}
    page = (tmp_path / "third" / "README.md").read_text(encoding="utf-8")
    assert "no significant loss in EL→EN and EL→/EN: none; not tested: (103)" in page

    (tmp_path / "first" / "comparisons.json").write_text('{"comparisons": [{"p": 1}]}', encoding="utf-8")
    with pytest.raises(DataError, match="has no comparisons of a report"):
        write_report(tmp_path / "first", tmp_path / "fourth", figures=[])


@pytest.mark.slow
def test_one_direction_is_tested_as_by_sacrebleu_and_a_mean_on_the_same_draws(ran) -> None:
    ran(7, source(0.7, 0.75))
    folder = ran(101, source(0.72, 0.7))
    found = {one.column: one for one in report_of(folder).tested if one.model == 101}
    first, second = (
        (folder / "translations" / f"model-{n}-el-seed1" / "test.el-en.txt").read_text("utf-8").splitlines() for n in (7, 101)
    )
    test = PairedTest([("7", first), ("101", second)], {"chrF2": CHRF()}, [LINES["en"]], test_type="bs", n_samples=1000)
    _, expected = test()
    baseline, system = expected["chrF2"]
    assert (found["EL→EN"].against_chrf, found["EL→EN"].chrf) == (round(baseline.score, 3), round(system.score, 3))
    assert found["EL→EN"].signature.startswith("nrefs:1|bs:1000|seed:12345|")
    (one,) = (one for one in remembered(folder) if one["what"][3][0][0] == "el-en")
    assert one["sacrebleu_p"] == system.p_value
    mean = found["EL→/EN"]
    assert mean.directions == ("el-de", "el-fr")
    scores = [json.loads((folder / "results" / f"model-{n}-el-seed1.json").read_text())["scores"]["test"] for n in (7, 101)]
    means = [sum(one["directions"][name]["chrf"] for name in mean.directions) / 2 for one in scores]
    assert mean.difference == pytest.approx(means[1] - means[0], abs=0.002)


@pytest.mark.slow
def test_seeds_are_compared_with_the_same_seed_or_the_first(ran) -> None:
    for seed in (1, 2):
        ran(7, source(0.7, 0.7), seed=seed)
    for seed, share in ((1, 0.7), (2, 0.7), (3, 0.4)):
        folder = ran(101, source(share, 0.7), seed=seed)
    report = report_of(folder)
    tested = [one for one in report.tested if one.model == 101 and one.average == "X→EN"]
    assert [(one.seed, one.against_seed) for one in tested] == [(1, 1), (2, 2), (3, 1)]
    assert [one.verdict for one in tested] == ["level", "level", "worse"]
    losses = {one.model: one.losses for one in report.standings}
    assert losses == {7: (), 101: ("EL→EN",)}, "one seed that loses is a loss"
    text = markdown_table(next(table for table in report.tables if table.number == 101))
    assert "(7), seed 1" in text
    assert "each seed is compared with the same seed of the best" in text


@pytest.mark.slow
def test_what_cannot_be_tested_says_why(ran) -> None:
    ran(7, source(0.7, 0.7))
    ran(101, source(0.7, 0.7), base="77aa01c3f0b15566")
    ran(102, {"el-en": 0.7, "el-fr": 0.7})
    ran(103, source(0.7, 0.7))
    ran(104, source(0.7, 0.7))
    ran(105, {"el-en": 0.7})
    folder = ran(107, source(0.7, 0.7))
    kept = folder / "translations"
    shutil.rmtree(kept / "model-103-el-seed1")
    write(kept / "model-104-el-seed1" / "test.el-en.txt", LINES["en"][:20])
    write(kept / "model-107-el-seed1" / "test.el-en.txt", LINES["el"])
    notes = {(one.model, one.average): one.note for one in report_of(folder).tested}
    assert notes[101, "X→EN"] == "on another base than (7)"
    assert notes[102, "X→/EN"] == "averages other directions than (7)"
    assert notes[103, "X→EN"] == "its translations were not kept"
    assert "20 translations were kept, where the test set has 80" in notes[104, "X→EN"]
    assert notes[105, "X→/EN"] == "not run"
    assert "they are not those that were scored" in notes[107, "X→EN"]
    assert notes[107, "X→/EN"] == ""
    assert not [one for one in report_of(folder).standings if one.holds and one.model > 100]
    text = markdown_table(next(table for table in report_of(folder).tables if table.number == 101))
    assert "they are not those that were scored" in text
    shutil.rmtree(kept / "lines")
    notes = {(one.model, one.average): one.note for one in report_of(folder).tested}
    assert notes[104, "X→EN"] == "the test set's lines in el were not kept"


def test_without_a_row_of_the_papers_there_is_nothing_to_lose_against(ran) -> None:
    assert verdicts(ran(101, source(0.7, 0.7)), 101) == {"EL→EN": "not tested", "EL→/EN": "not tested"}


@pytest.mark.slow
def test_the_report_shows_our_rows_in_the_papers_layout(ran, tmp_path: Path) -> None:
    for language in ("el", "uk"):
        ran(7, source(0.6, 0.8, language), languages=[language])
        ran(12, source(0.9, 0.2, language), languages=[language])
        ran(101, source(0.6 if language == "el" else 0.9, 0.8, language), languages=[language])
        folder = ran(103, source(0.9, 0.8, language), languages=[language])
    out = tmp_path / "out"
    report, written = write_report(folder, out, figures=[])
    assert {out / "table-101.md", out / "table-101.tex"} <= set(written)
    assert 102 in report.not_run
    text = (out / "table-101.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| 103 |")).split(" | ")
    paper = next(line for line in text.splitlines() if line.startswith("| 7 |")).split(" | ")
    assert (row[3], paper[3]) == ("–", "38.9"), "what the paper prints stands beside its own rows alone"
    assert "uk as source, test: significance" in text
    assert r"no significant loss in EL→EN and EL→/EN: (103) embed + enc-adapters-all(512)@trained" in text
    latex = (out / "table-101.tex").read_text(encoding="utf-8")
    assert r"the 95\% interval does not hold 0" in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 4
    assert latex.isascii()
    index = (out / "README.md").read_text(encoding="utf-8")
    assert "as source language, in all of these: (103)" in index
    document = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert [(one["model"], one["languages"]) for one in document["without_significant_loss"]] == [
        (103, ["el"]),
        (101, ["uk"]),
        (103, ["uk"]),
    ]
    assert not [one for one in document["agreement"] if one["table"] > 100]
    ours, _ = trade_offs(report, "TED")
    assert {ours[0].kinds[name] for name in ours[0].points} == {"pack, with English alone", "pack, beyond the paper"}


def test_the_papers_rows_alone_make_no_table_of_ours(ran) -> None:
    folder = ran(7, source(0.6, 0.8))
    assert not [table.number for table in report_of(folder).tables if definitions.tables()[table.number].ours]
    (asked,) = report_of(folder, tables=[101]).tables
    assert "not run" in markdown_table(asked)
    assert r"\begin{tabular}" in latex_table(asked)
