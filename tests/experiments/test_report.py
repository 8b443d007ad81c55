"""Reports of experiments: each result in its place beside the paper's figure, and only what belongs together is averaged."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from graftmt.errors import ConfigError, DataError
from graftmt.experiments import definitions
from graftmt.experiments.definitions import System
from graftmt.experiments.jobs import Job
from graftmt.experiments.reporting import write_report
from graftmt.experiments.reporting.agreement import Claim, kendall, paper_agrees
from graftmt.experiments.reporting.cells import Quantity, Results, paper_figures
from graftmt.experiments.reporting.content import make_report, trade_offs
from graftmt.experiments.reporting.latex import escape, latex_table
from graftmt.experiments.reporting.markdown import markdown_table
from graftmt.experiments.reporting.result_files import ResultFile
from graftmt.experiments.reporting.selection import select_results
from graftmt.experiments.reporting.trade_off import MOST_NAMED, WORDS, named_points, split_by_gap

BASE = {"id": 4, "fingerprint": "0dddbf411efd9ae5"}
OTHER_BASE = {"id": 4, "fingerprint": "77aa01c3f0b15566"}


def directions(scores: Mapping[str, float], off_target: float = 0.02) -> dict[str, Any]:
    """chrF of each; BLEU is 20 less."""
    return {
        name: {"bleu": chrf - 20, "chrf": chrf, "off_target": off_target, "lines": 500, "tokenize": "13a"}
        for name, chrf in scores.items()
    }


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Path]:
    """`job(7, {"el-en": 57.0})` writes the result of a pack for Greek, as the runner does; returns the experiments' folder."""

    def write(model: int | None, chrf: Mapping[str, float], **facts: Any) -> Path:
        languages = facts.get("languages", ["el"])
        found = {
            "directions": directions(chrf),
            "averages": {},
            "signatures": {"bleu": {"13a": "nrefs:1|tok:13a|smooth:exp"}},
        }
        seed = facts.get("seed", 1)
        name = f"{facts.get('kind', 'model')}-{model}-{facts.get('source')}-{'+'.join(languages)}-seed{seed}"
        document = {
            "job": name,
            "kind": "model",
            "profile": "docs",
            "model": model,
            "languages": languages,
            "seed": seed,
            "base": BASE,
            "parameters": 2_125_000,
            "steps": 1200,
            "seconds": {"training": 60.0, "augmentation": 5.0, "evaluation": 10.0},
            "machine": {"device": "NVIDIA H200"},
            "scores": {"test": found},
            "curve": [],
            "verified": {"base_unchanged": True},
            **facts,
        }
        folder = tmp_path / "experiments"
        (folder / "results").mkdir(parents=True, exist_ok=True)
        path = folder / "results" / f"{facts.get('file', document['job'])}.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return folder

    return write


def cells(folder: Path) -> Results:
    return Results(select_results(folder).results, definitions.models(), "TED")


def rows_of(markdown: str) -> list[dict[str, str]]:
    """The rows of the tables in a Markdown text, each as heading → cell."""
    rows: list[dict[str, str]] = []
    headings: list[str] = []
    for line in markdown.splitlines():
        if not line.startswith("|"):
            headings = []
            continue
        found = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not headings:
            headings = found
        elif not set("".join(found)) <= set(":- "):
            rows.append(dict(zip(headings, found, strict=True)))
    return rows


def table(folder: Path, number: int) -> list[dict[str, str]]:
    return rows_of(markdown_table(make_report(select_results(folder).results, tables=[number]).tables[0]))


def row(rows: list[dict[str, str]], number: int) -> dict[str, str]:
    return next(one for one in rows if one["ID"] == str(number))


def plain(text: str) -> str:
    """Without bold and footnotes."""
    return re.sub(r"\*\*|<sup>.*</sup>", "", text)


def test_a_score_stands_beside_the_paper_s_and_what_is_missing_says_so(job) -> None:
    folder = job(7, {"el-en": 57.0, "el-fr": 40.0, "el-de": 44.0})
    rows = table(folder, 2)
    found = row(rows, 7)
    assert found["EL→EN<br>paper BLEU"] == "38.9"
    assert found["EL→EN<br>paper chrF"] == "58.1", "from Table 10, where it is printed .581"
    assert (found["EL→EN<br>BLEU"], found["EL→EN<br>chrF"]) == ("37.0", "57.0")
    assert found["EL→/EN<br>chrF"] == "42.0", "the mean of two directions"
    assert found["EL→/EN<br>off-target %"] == "2.0"
    assert found["parameters: paper / ours"] == "2.13M / 2.12M"
    assert (found["updates"], found["seconds"]) == ("1,200", "65")
    assert row(rows, 12)["EL→EN<br>chrF"] == row(rows, 12)["EL→/EN<br>BLEU"] == "not run"
    assert [one["ID"] for one in rows if one["ID"]] == [str(r.system.model) for r in definitions.tables()[2].rows]


def test_tables_in_chrf_have_the_paper_s_times_100(job) -> None:
    text = markdown_table(make_report(select_results(job(7, {"el-en": 57.0})).results, tables=[10]).tables[0])
    assert "valid: not run" in text
    assert row(rows_of(text), 7)["EL→EN<br>paper chrF"] == "58.1"


def test_another_new_language_is_no_part_of_an_average(job) -> None:
    folder = job(6, {"el-en": 60.0, "el-fr": 40.0, "el-uk": 10.0, "uk-en": 50.0, "fr-en": 55.0}, languages=["el", "uk"])
    found = row(table(folder, 2), 6)
    assert (found["EL→EN<br>chrF"], found["EL→/EN<br>chrF"]) == ("60.0", "40.0")
    assert row(table(folder, 1), 6)["→EN<br>chrF"] == "55.0"


def test_seeds_are_averaged_and_a_seed_with_other_directions_is_left_out(job) -> None:
    for seed, score in ((1, 56.0), (2, 57.0), (3, 60.0)):
        folder = job(7, {"el-en": score}, seed=seed)
    folder = job(7, {"el-en": 10.0, "el-fr": 10.0}, seed=4)
    found = row(table(folder, 2), 7)
    assert plain(found["EL→EN<br>chrF"]) == "45.8 ± 35.8"
    cell = cells(folder).cell(System(model=7), Quantity(name="X→/EN", languages=("el",)))
    assert (cell.seeds, cell.scores["chrf"].mean) == (1, 10.0)
    assert found["seeds"] == "4"
    folder = job(7, {"el-fr": 30.0, "el-de": 30.0}, seed=5)
    cell = cells(folder).cell(System(model=7), Quantity(name="X→/EN", languages=("el",)))
    assert (cell.scores["chrf"].mean, cell.directions) == (30.0, ("el-de", "el-fr"))
    assert any("seed 4" in note for note in cell.notes)


def test_results_on_another_base_are_marked_and_never_averaged(job) -> None:
    job(7, {"el-en": 57.0})
    job(12, {"el-en": 58.0})
    job(14, {"el-en": 70.0}, base=OTHER_BASE)
    folder = job(12, {"el-en": 90.0}, base=OTHER_BASE, seed=2)
    text = markdown_table(make_report(select_results(folder).results, tables=[2]).tables[0])
    rows = rows_of(text)
    assert row(rows, 14)["EL→EN<br>chrF"].startswith("70.0<sup>"), "marked, and not bold although it is the highest"
    assert plain(row(rows, 12)["EL→EN<br>chrF"]) == "58.0"
    assert row(rows, 12)["EL→EN<br>chrF"].startswith("**58.0**<sup>")
    assert "on another base, 77aa01c3f0b1…" in text
    assert "also run on the base 77aa01c3f0b1…" in text


def test_results_of_a_base_before_it_was_trained_again_give_way(job) -> None:
    for model in (7, 8, 12):
        job(model, {"el-en": 50.0}, base=OTHER_BASE, file=f"model-{model}.base-77aa01c3f0b1")
    folder = job(7, {"el-en": 57.0})
    assert plain(row(table(folder, 2), 7)["EL→EN<br>chrF"]) == "57.0"
    assert row(table(folder, 2), 8)["EL→EN<br>chrF"].startswith("50.0<sup>")


def test_packs_on_the_english_centric_base_are_other_models(job) -> None:
    folder = job(7, {"el-en": 57.0}, base={"id": 3, "fingerprint": "abc"})
    assert row(table(folder, 2), 7)["EL→EN<br>chrF"] == "not run"
    assert row(table(folder, 18), 7)["EL→EN<br>chrF"] == "57.0"
    failed = job(12, {}, failed="no memory", base=None, job="model-12-el-on3-seed1")
    assert row(table(failed, 2), 12)["EL→EN<br>chrF"] == "not run"
    assert row(table(failed, 18), 12)["EL→EN<br>chrF"].startswith("failed")


def test_a_job_that_failed_is_shown_with_its_message(job) -> None:
    job(12, {}, failed="CUDA out of memory | see the log", scores={}, base=None)
    folder = job(7, {"el-en": 57.0})
    text = markdown_table(make_report(select_results(folder).results, tables=[2]).tables[0])
    assert re.fullmatch(r"failed<sup>\d</sup>", row(rows_of(text), 12)["EL→EN<br>chrF"])
    assert r"CUDA out of memory \| see the log" in text


def test_a_broken_promise_about_the_base_is_marked(job, tmp_path: Path) -> None:
    folder = job(7, {"el-en": 57.0}, verified={"base_unchanged": False})
    assert "<sup>" in row(table(folder, 2), 7)["EL→EN<br>chrF"]
    write_report(folder, tmp_path / "out", tables=[2], figures=[])
    assert "base unchanged in 0 of 1; **not in" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_the_best_of_ours_is_bold_with_all_that_read_the_same(job) -> None:
    job(7, {"el-en": 57.04})
    job(8, {"el-en": 57.01})
    rows = table(job(9, {"el-en": 56.0}), 2)
    assert [row(rows, n)["EL→EN<br>chrF"] for n in (7, 8, 9)] == ["**57.0**", "**57.0**", "56.0"]
    assert row(rows, 19)["EL→EN<br>paper BLEU"] == "**41.2**", "as the paper has it"


def compose(job: Callable[..., Path], pair: str, score: float, **facts: Any) -> Path:
    languages = pair.split("-")
    return job(None, {pair: score}, **{"kind": "composition", "source": 14, "target": 31, "languages": languages, **facts})


def test_pairs_of_packs_are_averaged_over_languages_on_one_base_only(job) -> None:
    compose(job, "el-uk", 46.0)
    compose(job, "uk-el", 48.0)
    compose(job, "el-sv", 90.0, base=OTHER_BASE)
    folder = compose(job, "el-uk", 50.0, kind="pivot", seconds={"evaluation": 20.0})
    rows = table(folder, 4)
    composed = next(r for r in rows if r["source"].startswith("(14)") and "(31)" in r["target"] and r["route"] == "composed")
    pivot = next(r for r in rows if r["source"].startswith("(14)") and r["route"] == "through English")
    assert plain(composed["X→X<br>chrF"]) == "47.0"
    assert composed["X→X<br>paper BLEU"] == "21.3"
    assert (composed["decoder passes"], composed["s / 1,000 lines"]) == ("1", "20.0")
    assert (pivot["decoder passes"], pivot["s / 1,000 lines"]) == ("2", "40.0")
    assert "<sup>" in pivot["X→X<br>chrF"], "over one direction, where others have two"


def test_what_was_scored_in_more_directions_is_averaged_over_those_of_most(job, tmp_path: Path) -> None:
    for source, score in ((7, 44.0), (14, 46.0)):
        compose(job, "el-uk", score, source=source)
        compose(job, "uk-el", score + 2, source=source)
    every = {"el-uk": 50.0, "uk-el": 54.0, "el-sv": 90.0, "sv-el": 90.0}
    folder = job(6, every, languages=["el", "uk", "sv", "id"])
    report, _ = write_report(folder, tmp_path / "out", tables=[4], figures=[])
    text = markdown_table(report.tables[0])
    together = next(r for r in rows_of(text) if r["source"].startswith("(6)"))
    assert re.fullmatch(r"\*\*52\.0\*\*<sup>\d</sup>", together["X→X<br>chrF"]), "and the best of them"
    assert "of its 4 directions the 2 that most rows have" in text
    page = rows_of((tmp_path / "out" / "README.md").read_text(encoding="utf-8"))
    assert next(r for r in page if r.get("source → target", "").startswith("(6)"))["ours"] == "52.0"
    document = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    entry = next(one for one in document["results"] if one["id"] == 6 and one.get("average") == "X→X")
    assert (entry["chrf"], entry["directions"]) == (52.0, ["el-uk", "uk-el"])


def test_a_row_of_several_jobs_is_narrowed_without_the_averages_of_those_that_are_left_out(job) -> None:
    for number in (7, 8):
        folder = job(number, {"el-fr": 40.0, "el-de": 42.0})
    for other, score in (("fr", 50.0), ("de", 52.0), ("ru", 90.0)):
        pair = {f"el-{other}": score}
        averages = {"X→/EN": {"bleu": score - 20, "chrf": score, "directions": 1}}
        scores = {"test": {"directions": directions(pair), "averages": averages}}
        folder = job(1, pair, languages=["el", other], base=None, scores=scores)
    assert plain(row(table(folder, 2), 1)["EL→/EN<br>chrF"]) == "51.0"


def test_of_two_rows_with_other_directions_the_order_decides_nothing(job) -> None:
    job(7, {"el-fr": 40.0, "el-de": 42.0})
    folder = job(12, {"el-fr": 50.0, "el-de": 52.0, "el-ru": 60.0})
    rows = table(folder, 2)
    assert "<sup>" in row(rows, 7)["EL→/EN<br>chrF"] and row(rows, 12)["EL→/EN<br>chrF"] == "54.0"


def test_what_is_pivoted_anyway_is_the_direct_model_with_english(job) -> None:
    folder = job(1, {"el-en": 55.0}, languages=["el", "en"], base=None)
    folder = job(1, {"el-fr": 40.0}, languages=["el", "fr"], base=None, kind="pivot")
    found = row(table(folder, 18), 1)
    assert (found["EL→EN<br>chrF"], found["EL→/EN<br>chrF"]) == ("55.0", "40.0")
    assert row(table(folder, 2), 1)["EL→/EN<br>chrF"] == "not run", "those are direct models"


def test_a_further_language_is_a_block_of_its_own(job) -> None:
    job(7, {"el-en": 57.0})
    folder = job(7, {"uk-en": 51.0}, languages=["uk"])
    text = markdown_table(make_report(select_results(folder).results, tables=[2]).tables[0])
    found = [one for one in rows_of(text) if "UK→EN<br>chrF" in one]
    assert [(one["ID"], one["UK→EN<br>chrF"], one["UK→EN<br>paper chrF"]) for one in found] == [("7", "51.0", "52.5")]


def test_codes_that_are_not_learned_are_compared_with_learned_ones(job) -> None:
    def scored(score: float) -> dict[str, Any]:
        return {"valid": {"directions": directions({"en-el": score})}}

    job(24, {}, scores=scored(50.0))
    folder = job(24, {}, scores=scored(48.3), plus="code:none", job="model-24-el-code-none-seed1")
    rows = [one for one in table(folder, 25) if one["ID"] == "24" and "EN→EL<br>chrF" in one]
    assert [(one["EN→EL<br>paper"], one["EN→EL<br>chrF"]) for one in rows] == [
        ("-17", "-17"),
        ("-18", "not run"),
        ("-6", "not run"),
    ]


def test_a_table_of_validation_scores_has_those_of_the_test_set_where_there_are_no_others(job) -> None:
    job(24, {"en-el": 50.0})
    folder = job(24, {"en-el": 49.99}, plus="code:none", job="model-24-el-code-none-seed1")
    text = markdown_table(make_report(select_results(folder).results, tables=[25]).tables[0])
    assert "## el as target, test" in text and "the paper's are of the validation set" in text
    assert rows_of(text)[0]["EN→EL<br>chrF"] == "+0"
    assert "the paper's are of the validation set" not in markdown_table(
        make_report(select_results(folder).results, tables=[2]).tables[0]
    )


def test_a_narrowed_code_is_compared_with_a_learned_one_that_is_narrowed_too(job) -> None:
    every = {"fr-el": 40.0, "de-el": 42.0, "ru-el": 60.0}
    job(24, every)
    for number in (30, 31):
        job(number, {name: every[name] for name in ("fr-el", "de-el")})
        some = {"fr-el": 41.0, "de-el": 43.0}
        job(number, some, plus="code:none", job=f"model-{number}-el-code-none-seed1")
    folder = job(24, {**every, "ru-el": 90.0}, plus="code:none", job="model-24-el-code-none-seed1")
    first = rows_of(markdown_table(make_report(select_results(folder).results, tables=[25]).tables[0]))[0]
    assert plain(first["/EN→EL<br>chrF"]) == "+0"


def test_a_base_without_a_job_has_the_scores_that_its_packs_carry(job) -> None:
    averages = {"→EN": {"bleu": 30.0, "chrf": 53.0, "directions": 6}}
    folder = job(7, {"el-en": 57.0}, base={**BASE, "scores": {"test": {"averages": averages}}})
    assert row(table(folder, 1), 4)["→EN<br>chrF"] == "53.0"


@pytest.mark.parametrize("number", sorted(definitions.tables()))
def test_every_table_can_be_shown_before_anything_has_been_run(number: int, job) -> None:
    (made,) = make_report(select_results(job(7, {"zz-zz": 1.0})).results, tables=[number]).tables
    text = markdown_table(made)
    assert "not run" in text
    for block in made.blocks:
        assert all(len(fields) == len(block.headings) for fields in block.rows)
    check_latex(latex_table(made))


def check_latex(text: str) -> None:
    """What pdflatex would stumble on: environments, braces, numbers of columns, characters that are commands."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert re.findall(r"\\begin{(.*?)}", body) == ["table*", "tabular"] * body.count(r"\begin{table*}")
    assert body.count(r"\begin{") == body.count(r"\end{")
    bare = body.replace(r"\{", "").replace(r"\}", "")
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    for tabular in re.findall(r"\\begin{tabular}{([lr]+)}(.*?)\\end{tabular}", body, re.DOTALL):
        lines = [line.strip() for line in tabular[1].splitlines() if line.strip().endswith(r"\\")]
        for line in lines:
            spans = [int(span) for span in re.findall(r"\\multicolumn{(\d+)}", line)]
            cells = len(re.split(r"(?<!\\)&", line))
            assert cells - len(spans) + sum(spans) == len(tabular[0]), line
        assert [rule for rule in (r"\toprule", r"\midrule", r"\bottomrule") if rule not in tabular[1]] == []
    assert not re.search(r"(?<!\\)[#_%]", re.sub(r"\\label{.*?}|{%$", "", body, flags=re.MULTILINE))
    assert set(body) - set(map(chr, range(128))) == set(), "commands in the place of all other characters"
    labels = re.findall(r"\\label{(.*?)}", body)
    assert len(labels) == len(set(labels))


def test_latex_has_no_commands_in_text() -> None:
    assert escape("50 % of {a_b} & c → d") == r"50 \% of \{a\_b\} \& c $\to$ d"


def test_latex_of_a_filled_table(job) -> None:
    job(7, {"el-en": 57.0, "el-fr": 40.0})
    job(14, {}, failed="a_b & 100 % {gone} – ‘ή’", scores={})
    (made,) = make_report(select_results(job(12, {"el-en": 58.0, "el-fr": 11.0}, seed=2)).results, tables=[2]).tables
    text = latex_table(made)
    assert r"\textbf{58.0}" in text
    assert r"a\_b \& 100 \% \{gone\} -- " in text
    assert r"\multicolumn{5}{c}{EL$\to$EN}" in text
    check_latex(text)


def test_kendall_s_tau() -> None:
    assert kendall([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert kendall([1, 2, 3, 4], [4, 3, 2, 1]) == -1
    assert kendall([1, 2, 3], [5, 5, 5]) is None
    assert kendall([1, 2, 2, 3], [1, 3, 2, 2]) == pytest.approx(2 / 5), "by hand: 3 pairs alike, 1 not, 5 untied in each"


def test_our_order_is_compared_with_the_paper_s(job) -> None:
    paper = paper_figures(definitions.tables().values())
    for number in (7, 10, 11, 12):
        printed = {
            name: paper[System(model=number), Quantity(name=name, languages=("el",)), "chrf"] for name in ("X→EN", "X→/EN")
        }
        folder = job(number, {"el-en": printed["X→EN"], "el-fr": 100 - printed["X→/EN"]})
    report = make_report(select_results(folder).results, tables=[10])
    taus = {(a.column, a.metric): (a.rows, a.tau) for a in report.agreements}
    assert taus["EL→EN", "chrf"] == (4, 1.0)
    assert taus["EL→/EN", "chrf"][1] == -1.0
    verdicts = {checked.finding[:12]: checked for checked in report.findings}
    assert [claim.text for claim in verdicts["adapters or "].untested] == ["(11) > (7)", "(12) > (7)"]
    assert verdicts["adapters or "].not_run == ("(13) > (7)", "(14) > (7)")
    assert [claim.text for claim in verdicts["… and cost i"].untested] == ["(7) > (10)", "(7) > (11)", "(7) > (12)"]
    assert all(claim.difference < 0 and claim.p is None for claim in verdicts["… and cost i"].untested)
    assert not [one for one in report.findings if one.holds or one.fails or one.undecided], "there is nothing to test on"


def test_the_paper_s_own_figures_bear_its_findings_out_in_bleu_for_greek() -> None:
    paper = paper_figures(definitions.tables().values())
    for finding in definitions.findings():
        languages = ("el", "uk", "sv", "id") if finding.quantity == "X→X" else ("el",)
        quantity = Quantity(name=finding.quantity, languages=languages)
        for better, worse in finding.systems:
            assert paper_agrees(better, worse, finding, quantity, "bleu", paper), (finding.text, better, worse)


def test_where_the_paper_s_chrf_contradicts_its_finding_that_is_said(job) -> None:
    job(1, {"el-en": 55.0}, languages=["el", "en"], base=None)
    folder = job(7, {"el-en": 54.0})
    (found,) = make_report(select_results(folder).results, tables=[2]).findings
    assert [str(claim) for claim in found.untested] == ["(7) > (1): -1.0"]
    assert found.paper_otherwise == ("(7) > (1)",), "58.1 and 58.3 in Table 10"
    (found,) = make_report(select_results(folder).results, tables=[2], metric="bleu").findings
    assert ([str(claim) for claim in found.untested], found.paper_otherwise) == (["(7) > (1): -1.0"], ())


@pytest.mark.parametrize(
    ("interval", "slack", "verdict"),
    [
        (None, 0.0, "untested"),
        ((0.1, 9.0), 0.0, "holds"),
        ((0.1, 0.3), 0.0, "holds"),
        ((-9.0, -0.1), 0.0, "fails"),
        ((-0.5, 0.5), 0.0, "fails"),
        ((-0.6, 0.4), 0.0, "undecided"),
        ((-0.1, 2.0), 0.0, "undecided"),
        ((-0.4, 2.0), 0.5, "holds"),
        ((-0.7, 0.2), 0.5, "undecided"),
        ((-0.4, 0.1), 0.3, "undecided"),  # level contradicts no claim that it is as good
        ((-0.5, 0.5), 0.5, "undecided"),
        ((-2.0, -0.6), 0.5, "fails"),
        ((-0.9, -0.6), 1.0, "holds"),
    ],
)
def test_a_claim_is_as_sure_as_its_interval(interval: tuple[float, float] | None, slack: float, verdict: str) -> None:
    assert Claim(text="(12) > (7)", difference=9.0, interval=interval).verdict(slack) == verdict


def test_the_front_page_has_the_rows_that_the_paper_prints_in_chrf_alone(job, tmp_path: Path) -> None:
    scores = {"el-en": 54.0, "el-fr": 40.0, "en-el": 57.0, "fr-el": 45.0}
    job(5, scores)
    job(59, scores)
    folder = job(60, {name: chrf - 30 for name, chrf in scores.items()})
    write_report(folder, tmp_path / "out", tables=[2, 3], figures=[])
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    for side, paper, ours in (("source", "59.4", "54.0"), ("target", "57.0", "57.0")):
        _, _, table = page.partition(f"**el as {side} language**")
        rows = {cells[1].strip(): cells for line in table.split("\n\n")[1].splitlines() for cells in [line.split("|")]}
        assert {"5", "59", "60"} <= set(rows)
        assert [cell.strip().strip("*") for cell in rows["59"][4:6]] == [paper, ours]


def test_the_front_page_says_which_languages_are_in_the_tables_alone(job, tmp_path: Path) -> None:
    job(7, {"el-en": 54.0})
    folder = job(12, {"el-en": 55.0})
    write_report(folder, tmp_path / "one", tables=[2], figures=[])
    job(7, {"uk-en": 53.0}, languages=["uk"])
    write_report(folder, tmp_path / "two", tables=[2], figures=[])
    pages = [(tmp_path / name / "README.md").read_text(encoding="utf-8") for name in ("one", "two")]
    words = "el has the most results. Those of other new languages are in the tables: uk."
    assert [words in page for page in pages] == [False, True]


def test_the_front_page_says_which_findings_are_untested(job, tmp_path: Path) -> None:
    job(7, {"el-en": 54.0})
    folder = job(12, {"el-en": 55.0})
    write_report(folder, tmp_path / "out", tables=[2], figures=[])
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith("| adapters or the first layer help"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:5] == ["–", "–", "–"], "neither agrees, nor not"
    assert cells[5].startswith("(12) > (7): +1.0; ") and "(14) > (7): not run" in cells[5]
    (rest,) = (line for line in page.splitlines() if line.startswith("Untested, as their models were not run"))
    assert "random embeddings end as good" in rest and "adapters or the first layer" not in rest
    assert "- Tests: 0. They are not corrected for their number" in page


def test_results_json_is_flat_and_has_every_direction_and_average(job, tmp_path: Path) -> None:
    folder = job(7, {"el-en": 57.0, "el-fr": 41.0, "el-de": 43.0})
    job(12, {}, failed="no memory", scores={})
    write_report(folder, tmp_path / "out", tables=[2], figures=[])
    document = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    entries = document["results"]
    single = next(entry for entry in entries if entry.get("direction") == "el-fr")
    assert (single["id"], single["languages"], single["chrf"], single["base"]) == (7, ["el"], 41.0, BASE["fingerprint"])
    assert single["seconds"]["training"] == 60.0
    average = next(entry for entry in entries if entry.get("average") == "X→/EN")
    assert average["chrf"] == pytest.approx(fmean([41.0, 43.0]))
    assert (average["paper_bleu"], average["paper_chrf"]) == (18.8, pytest.approx(41.7))
    assert [entry["failed"] for entry in entries if "failed" in entry] == ["no memory"]


@pytest.mark.slow
def test_the_first_page_and_figures(job, tmp_path: Path) -> None:
    def curve(last: float) -> list[dict[str, float]]:
        return [{"step": 100 * n, "el-en": 50.0 + n, "el-de": last * n} for n in range(1, 4)]

    job(7, {"el-en": 57.0, "el-fr": 42.0}, curve=curve(14.0))
    job(24, {"en-el": 50.0, "fr-el": 43.0})
    job(7, {"el-en": 40.0}, kind="size", lines=3000)
    job(15, {"el-en": 59.0, "el-fr": 9.0}, curve=curve(2.0))
    folder = job(12, {"el-en": 58.0, "el-fr": 11.0}, curve=curve(4.0))
    report, written = write_report(folder, tmp_path / "out")
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert page.index("el as source language") < page.index("trade-off.png") < page.index("## What it was made with")
    for words in (BASE["fingerprint"], "13a", "NVIDIA H200", "/EN averages over 1 others, fr", "Not run: Tables"):
        assert words in page
    assert "el-de in place of el-fr" in page
    assert "- not in the paper's figure: (15) all-enc-layers" in page
    for link in re.findall(r"\]\((.*?)\)", page):
        assert (tmp_path / "out" / link).exists(), link
    drawn = [path for path in written if path.suffix == ".png"]
    assert {path.name for path in drawn} >= {"trade-off.png", "figure-3.png", "figure-4.png"}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)
    assert {made.number for made in report.tables} >= {2, 3, 10, 14}
    found = row(rows_of(page), 7)  # which also says that tables have as many cells in each row as headings
    assert (list(found)[-2:], found["updates"], found["seconds"]) == (["updates", "seconds"], "1,200", "65")


@pytest.mark.slow
def test_recipes_of_ours_stand_below_the_paper_s_on_the_first_page(job, tmp_path: Path) -> None:
    job(7, {"el-en": 57.0, "el-fr": 42.0})
    job(118, {"en-el": 60.0, "fr-el": 47.0})
    job(31, {"en-el": 59.0, "fr-el": 46.0})
    folder = job(106, {"el-en": 56.0, "el-fr": 43.0})
    write_report(folder, tmp_path / "out", tables=[2], figures=[])
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    source, target = (part.split("\n\n")[1] for part in page.split(" language**")[1:3])
    assert re.findall(r"(?m)^\| (\d+) ", source) == ["7", "106"]
    assert re.findall(r"(?m)^\| (\d+) ", target) == ["31", "118"]
    mine = row(rows_of(page), 106)
    assert (mine["EL→EN<br>paper"], mine["EL→EN<br>ours"], mine["EL→/EN<br>ours"]) == ("–", "56.0", "**43.0**")
    assert mine["model"] == "(20) + init:alignment<sup>1</sup>"
    assert "- <sup>1</sup> 1,000 lines for each other language" in page
    job(8, {"el-en": 57.0, "el-fr": 42.0})
    write_report(folder, tmp_path / "out", tables=[2], figures=[])
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "with the initial model's language codes" not in page, "which the paper's table marks with an asterisk"


@pytest.mark.slow
def test_a_report_elsewhere_has_its_results_with_it_and_can_be_made_again_from_them(job, tmp_path: Path) -> None:
    job(7, {"el-en": 57.0, "el-fr": 42.0})
    job(7, {"el-en": 50.0, "el-fr": 40.0}, profile="demo", file="of another profile")
    folder = job(12, {"el-en": 59.0, "el-fr": 11.0})
    out = tmp_path / "out"
    write_report(folder, out, profile="docs", tables=[2], figures=[])
    kept = {path.name: json.loads(path.read_text("utf-8")) for path in (out / "results").iterdir()}
    assert kept == {path.name: json.loads(path.read_text("utf-8")) for path in (folder / "results").glob("model-*.json")}
    page = (out / "README.md").read_text(encoding="utf-8")
    assert "- [Results](results): 2;" in page
    write_report(out, out, tables=[2], figures=[])
    assert (out / "README.md").read_text(encoding="utf-8") == page
    assert len(list((out / "results").iterdir())) == 2

    write_report(folder, folder / "report", profile="docs", tables=[2], figures=[])
    assert not (folder / "report" / "results").exists(), "they are beside it"
    write_report(folder / "results", folder / "report", profile="docs", tables=[2], figures=[])
    assert not (folder / "report" / "results").exists()


def test_a_report_replaces_no_result_files_but_its_own(job, tmp_path: Path) -> None:
    folder, out = job(7, {"el-en": 57.0}), tmp_path / "out"
    job(12, {"el-en": 59.0})
    _, written = write_report(folder, out, tables=[2], figures=[])
    assert {out / "results", out / "comparisons.json"} <= set(written)
    job(7, {"el-en": 58.0})
    write_report(folder, out, tables=[2], figures=[])
    assert select_results(out).results[1].by_set["test"]["el-en"].chrf == 58.0, "that job was done again"

    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    (folder / "results" / "model-12-None-el-seed1.json").rename(tmp_path / "aside.json")
    with pytest.raises(ConfigError, match=r": model-12-None-el-seed1\.json\b"):
        write_report(folder, out, tables=[2], figures=[])
    (tmp_path / "aside.json").rename(folder / "results" / "model-12-None-el-seed1.json")
    for number in (7, 12):
        job(number, {"el-en": 50.0}, profile="demo")
    with pytest.raises(ConfigError, match=r"results of docs.*demo"):
        write_report(folder, out, tables=[2], figures=[])
    (out / "comparisons.json").rename(tmp_path / "aside.json")
    with pytest.raises(ConfigError, match="not made by a report"):
        write_report(folder, out, tables=[2], figures=[])
    (tmp_path / "aside.json").rename(out / "comparisons.json")
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_results_in_a_folder_of_any_name(job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flat = tmp_path / "mine"
    shutil.copytree(job(7, {"el-en": 57.0}) / "results", flat)
    write_report(flat, tmp_path / "out", tables=[2], figures=[])
    assert [path.name for path in (tmp_path / "out" / "results").iterdir()] == ["model-7-None-el-seed1.json"]
    write_report(flat, flat, tables=[2], figures=[])
    assert len(select_results(flat).results) == 1, "what the report has put among them is no result"
    monkeypatch.chdir(tmp_path / "experiments" / "results")
    write_report(Path(), Path("../report"), tables=[2], figures=[])
    assert not (tmp_path / "experiments" / "report" / "results").exists()


def test_a_plot_leaves_out_what_lies_between_models_that_collapsed_and_the_others() -> None:
    near = {str(n): (60.0 + n, 47.0 + n / 10) for n in range(6)}
    assert split_by_gap(near) == [near]
    fallen = {"15": (64.7, 20.8), "12": (63.0, 19.0)}
    assert [set(part) for part in split_by_gap({**near, **fallen})] == [set(near), set(fallen)]
    level = {str(n): (60.0 + n, 0.0) for n in range(5)}
    assert split_by_gap(level) == [level]
    close = {"7": (60.0, 47.2), "8": (61.0, 47.1), "9": (62.0, 46.6), "10": (63.0, 46.5)}
    assert split_by_gap(close) == [close]
    two = {"7": (63.0, 47.0), "15": (64.0, 20.0)}
    assert split_by_gap(two) == [two], "too few to be parted"


def test_the_first_page_compares_only_what_can_be_compared(job, tmp_path: Path) -> None:
    job(7, {"el-en": 57.0, "el-fr": 42.0, "el-de": 44.0})
    job(8, {"el-en": 56.0, "el-fr": 41.0, "el-de": 43.0})
    job(12, {"el-en": 59.0, "el-fr": 60.0})
    folder = job(14, {"el-en": 70.0, "el-fr": 60.0, "el-de": 60.0}, base=OTHER_BASE)
    report, _ = write_report(folder, tmp_path / "out", tables=[2], figures=[])
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    rows = rows_of(page)
    assert [row(rows, n)["EL→EN<br>ours"] for n in (7, 12)] == ["57.0", "**59.0**"]
    assert row(rows, 7)["EL→/EN<br>ours"] == "**43.0**"
    assert re.fullmatch(r"60\.0<sup>\d</sup>", row(rows, 12)["EL→/EN<br>ours"])
    assert "mean over 1 direction: el-fr, where most rows have 2" in page
    ours, paper = trade_offs(report, "TED")
    assert set(ours[0].points) == {"7", "8"}
    assert paper[0].points["7"] == pytest.approx((58.1, 41.7))
    assert not [claim for found in report.findings for claim in found.untested if "(14)" in claim.text]


def test_few_points_are_named_in_words() -> None:
    assert set(WORDS) <= set(map(str, definitions.models()))
    assert named_points({"7": (57.0, 43.0), "8": (56.0, 40.0)}) == {"7": "embeddings"}
    of_source = {str(number): (50.0, 50.0) for number, model in definitions.models().items() if model.side == "source"}
    assert len(of_source) > 20 and len(named_points(of_source)) == MOST_NAMED
    assert named_points(of_source)["106"] == "graftmt's default"


def test_a_report_on_bleu(job, tmp_path: Path) -> None:
    folder = job(7, {"el-en": 57.0, "el-fr": 42.0}, curve=[{"step": 9, "el-en": 57.0, "bleu": {"el-en": 37.0}}])
    write_report(folder, tmp_path / "out", metric="bleu", figures=[3])
    found = rows_of((tmp_path / "out" / "README.md").read_text(encoding="utf-8"))[0]
    assert (found["EL→EN<br>paper"], plain(found["EL→EN<br>ours"])) == ("38.9", "37.0")


def test_what_cannot_be_reported_is_said(job, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no results"):
        select_results(tmp_path / "empty")
    folder = job(7, {"el-en": 57.0})
    with pytest.raises(ConfigError, match=r"'ted'.*docs"):
        select_results(folder, "ted")
    with pytest.raises(ConfigError, match="those that do are 1, 2"):
        write_report(folder, tmp_path / "out", tables=[8])
    job(7, {"el-en": 57.0}, profile="demo", job="another")
    with pytest.raises(ConfigError, match="results of demo, docs; say which"):
        select_results(folder)
    (folder / "results" / "broken.json").write_text('{"kind": "model"}', encoding="utf-8")
    with pytest.raises(DataError, match=r"broken\.json has no 'job'"):
        select_results(folder, "docs")


@pytest.mark.slow
def test_the_command_writes_prints_and_explains(job, graftmt, tmp_path: Path) -> None:
    for number, score in ((7, 57.0), (10, 57.5), (12, 59.0)):
        folder = job(number, {"el-en": score, "el-fr": 42.0 if number == 7 else 11.0})
    command = ("experiment", "report", "docs", "--results", str(folder), "--tables", "2,10", "--figures", "3")
    shown = graftmt(*command, "--agreement")
    assert shown.code == 0, shown.stderr
    assert "Kendall" in shown.stdout
    assert (folder / "report" / "table-02.tex").is_file()
    document = json.loads(graftmt(*command, "-o", str(tmp_path / "out"), "--json").stdout)
    assert document["tables"] == [2, 10]
    assert document["agreement"]
    assert str(tmp_path / "out" / "README.md") in document["files"]
    without = json.loads(graftmt(*command[:-1], "none", "-o", str(tmp_path / "plain"), "--json").stdout)
    assert not [path for path in without["files"] if "figure-" in path]
    for options, words in ((("--metric", "blue"), "did you mean 'bleu'?"), (("--tables", "two"), "such as 2,3")):
        failed = graftmt(*command, *options)
        assert (failed.code, words in failed.stderr) == (1, True)


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"model": None}, "model"), ({"kind": "song"}, "kind"), ({"languages": "el"}, "languages"), ({"seed": [1]}, "seed")],
)
def test_a_result_that_does_not_say_its_job_is_an_error_that_names_the_file(changes: dict[str, Any], named: str) -> None:
    names = {"kind": "model", "model": 7, "source": None, "target": None, "initial": None, "plus": None, "lines": None}
    whole = {**names, "languages": ["el"], "seed": 1}
    assert ResultFile(Path("model-7.json"), whole).trained_job == Job(kind="model", model=7, languages=("el",))
    with pytest.raises(DataError, match=rf"model-7\.json.*{named}"):
        ResultFile(Path("model-7.json"), {**whole, **changes}).trained_job  # noqa: B018
    with pytest.raises(DataError, match=rf"model-7\.json.*{named}"):
        ResultFile(Path("model-7.json"), {name: value for name, value in whole.items() if name != named}).trained_job  # noqa: B018
