"""`graftmt experiment check`: a page whose numbers are those of the results passes, and anything else names its line."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from noisy_results import noisy_experiment, source

from graftmt.experiments.reporting import write_report
from graftmt.experiments.reporting.page_numbers import Checker, Outcome
from graftmt.experiments.reporting.printed_numbers import Printed, visible_numbers

CURVE = [
    {"step": 500, "el-fr": 40.26, "el-en": 50.0, "bleu": {"el-fr": 20.16, "el-en": 30.0}},
    {"step": 1000, "el-fr": 41.26, "el-en": 51.0},
]
FACTS: dict[str, Any] = {
    "parameters": 5_274_112,
    "steps": 4000,
    "seconds": {"training": 160.0, "augmentation": 1.9, "evaluation": 50.0},
    "curve": CURVE,
    "settings": {"stages": [{"learning_rate": 0.0005, "packed": True}]},
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a report in docs/results/greek."""
    folder = tmp_path_factory.mktemp("greek")
    ran = noisy_experiment(folder / "experiments")
    for seed in (1, 2):
        ran(7, source(0.6, 0.8), seed=seed, **FACTS)
    ran(12, source(0.9, 0.2), **FACTS)
    (folder / "repository" / ".git").mkdir(parents=True)
    write_report(folder / "experiments", folder / "repository" / "docs" / "results" / "greek", tables=[2], figures=[])
    return folder / "repository"


@pytest.fixture
def published(repository: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(repository, tmp_path / "repository"))


@pytest.fixture
def check(published: Path) -> Callable[..., Outcome]:
    """Of a page with this text in docs."""

    def go(text: str, **options: Any) -> Outcome:
        page = published / "docs" / "page.md"
        page.write_text(text, encoding="utf-8")
        return Checker(**options).check([page])

    return go


def chrf(published: Path, model: int, direction: str, seed: int = 1) -> float:
    path = published / "docs" / "results" / "greek" / "results" / f"model-{model}-el-seed{seed}.json"
    directions = json.loads(path.read_text("utf-8"))["scores"]["test"]["directions"]
    return float(directions[direction]["chrf"])


def wrong(outcome: Outcome) -> list[tuple[int, str]]:
    return [(problem.line, problem.page) for problem in outcome.problems]


FROM = "from docs/results/greek"


def test_scores_are_those_of_the_report_to_the_digit(published: Path, check) -> None:
    english, others = chrf(published, 12, "el-en"), (chrf(published, 12, "el-fr") + chrf(published, 12, "el-de")) / 2
    seeds = [chrf(published, 7, "el-en", seed) for seed in (1, 2)]
    mean = sum(seeds) / 2
    text = f"""# Greek

Adapters have {english:.1f} into English and {others:.2f} into others.
<!-- {FROM}: chrf 12 el-en = {english:.1f}; chrf 12 el-/en = {others:.2f}; bleu 12 el-en = {english - 20:.0f} -->

| model | chrF |
|---|---:|
| (7) | {mean:.1f} ± {abs(mean - seeds[0]):.1f} |

<!-- from results/greek: chrf 7 el-en = {mean:.1f}; spread 7 el-en = {abs(mean - seeds[0]):.1f};
     chrf 7 el-en seed 2 = {seeds[1]:.3f}; chrf 12 el-fr < {chrf(published, 12, "el-fr") + 0.1:.2f} -->
"""
    outcome = check(text)
    assert outcome.problems == []
    assert (outcome.claims, outcome.numbers) == (7, 4)
    assert check(text, recompute=True).problems != [], "BLEU of these results is made up"
    assert {problem.line for problem in check(text, recompute=True).problems} == {4}
    higher = text.replace(f"{english:.1f}", f"{english + 0.1:.1f}")
    assert wrong(check(higher)) == [(4, f"chrf 12 el-en = {english + 0.1:.1f}")]
    assert wrong(check(text.replace(f"{seeds[1]:.3f}", f"{seeds[1] + 0.004:.3f}")))[0][0] == 11


def test_differences_are_tested_on_the_translations(published: Path, check) -> None:
    from graftmt.experiments.definitions import System
    from graftmt.experiments.reporting.cells import Quantity
    from graftmt.experiments.reporting.cited_report import CitedReport

    report = CitedReport(published / "docs" / "results" / "greek")
    cells = report.pair(System(model=12), System(model=7), Quantity(name="X→EN", languages=("el",)))
    found = report.compared(*cells, [1], "test")
    difference = chrf(published, 12, "el-en") - chrf(published, 7, "el-en")
    assert found.difference == pytest.approx(difference, abs=0.002) and found.low > 0
    interval = f"[{found.low:+.1f}, {found.high:+.1f}]"
    text = f"It is {difference:+.1f} {interval}, p = {found.p:.3f}.\n<!-- {FROM}: "
    text += f"difference 12 7 el-en = {difference:+.1f} {interval}; p 12 7 el-en = {found.p:.3f}; "
    text += f"difference 7 12 el-en seed 1 = {-difference:.1f} -->\n"
    assert check(text).problems == []
    for old, new in (
        (f"{found.low:+.1f}", f"{found.low - 0.2:+.1f}"),
        (f"{found.p:.3f}", "0.501"),
        (f" {difference:+.1f}", f" {difference + 0.1:+.1f}"),
    ):
        assert [line for line, _ in wrong(check(text.replace(old, new)))] == [2], new
    turned = text.replace("12 7 el-en", "7 12 el-en")
    assert {line for line, _ in wrong(check(turned))} == {2}


def test_a_report_without_translations_has_the_tests_that_it_remembers_and_no_others(ran, tmp_path: Path) -> None:
    ran(7, source(0.6, 0.8))
    folder = ran(12, source(0.9, 0.2))
    report, _ = write_report(folder, tmp_path / "out", tables=[2], figures=[], translations=False)
    (claim,) = (claim for checked in report.findings for claim in checked.holds if claim.text == "(12) > (7)")
    assert claim.interval is not None
    page = tmp_path / "page.md"
    low, high = claim.interval
    right = f"difference 12 7 el-en = {claim.difference:+.1f} [{low:+.1f}, {high:+.1f}]"
    reverse = f"difference 7 12 el-en = {-claim.difference:+.1f} [{-high:+.1f}, {-low:+.1f}]"
    page.write_text(f"<!-- from out: {right}; {reverse}; p 7 12 el-en = {claim.p:.3f} -->\n", encoding="utf-8")
    assert Checker().check([page]).problems == []
    page.write_text("<!-- from out:\np 7 12 el-fr = 0.5 -->\n", encoding="utf-8")
    (problem,) = Checker().check([page]).problems
    assert problem.line == 2 and "no such test" in problem.results
    page.write_text("<!-- from out: chrf 7 el-fr = 1 -->\n", encoding="utf-8")
    (problem,) = Checker(recompute=True).check([page]).problems
    assert "--no-translations" in problem.results


JOB = "difference 12 7 el-/en < 0"
RIGHT = {
    "parameters 12 = 5.27M": "5.28M",
    "parameters 7 el = 5,274,112": "5,274,113",
    "updates 12 = 4,000": "4,100",
    "seconds 12 = 162": "163",
    "setting 12 stages.0.learning_rate = 0.0005": "0.0006",
    "curve 12 el-fr 1000 = 41.3": "41.2",
    "curve 12 el-fr 500 bleu = 20.2": "20.3",
    "paper 12 el-/en chrf = 10.0": "10.1",
    "paper 7 el-en chrf = 58.1": "58.2",
    "paper 7 uk-en chrf = 52.5": "52.6",
    "off-target 12 el-/en = 0.0 %": "0.1 %",
}


@pytest.mark.parametrize(("claim", "other"), RIGHT.items())
def test_other_figures_of_a_job_and_of_the_paper(check, claim: str, other: str) -> None:
    assert check(f"Text.\n\n<!-- {FROM}: {claim} -->\n").problems == []
    changed = f"{claim.partition('=')[0]}= {other}"
    (problem,) = check(f"Text.\n\n<!-- {FROM}:\n {JOB};\n {changed} -->\n").problems
    assert (problem.line, problem.page) == (5, changed)
    assert other in problem.results and claim.partition("= ")[2].split()[0].rstrip("M")[:3] in problem.results


def test_the_order_of_a_column_is_compared_with_the_paper_s(ran, tmp_path: Path) -> None:
    ran(7, source(0.6, 0.8))
    ran(10, source(0.7, 0.5))
    folder = ran(12, source(0.9, 0.2))
    page = folder / "page.md"
    page.write_text("# Order\n<!-- from .: tau 2 el-en chrf = 1.00; tau 2 el-/en chrf = 0.99 -->\n", encoding="utf-8")
    (problem,) = Checker().check([page]).problems
    assert problem.line == 2 and problem.page.startswith("tau 2 el-/en") and "0.816" in problem.results, (
        "the paper has two alike"
    )


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("chrf 8 el-en = 1.0", r"no result of \(8\) in EL→EN.*\(7\), \(12\)"),
        ("chrf 7777 el-en = 1.0", "no model"),
        ("chrf adapters el-en = 1.0", "is no model"),
        ("chrf 12 uk-en = 1.0", "no result"),
        ("chrf 12 el = 1.0", "no direction"),
        ("chrf 12 el-en seed 2 = 1.0", "no result with seed 2"),
        ("chrf 12 el-en on valid = 1.0", "no result"),
        ("chrf 12 = 1.0", "expected `chrf MODEL DIRECTION"),
        ("chfr 12 el-en = 1.0", "did you mean 'chrf'"),
        ("chrf 12 el-en", "not understood"),
        ("chrf 12 el-en = much", "not understood"),
        ("chrf 12 el-en = 1.0 [0.9]", "interval"),
        ("chrf 12 el-en = 1.0 [0.9, 1.1]", "only `difference`"),
        ("curve 12 el-fr 700 = 1.0", "500, 1000"),
        ("paper 101 el-en chrf = 1.0", "prints no"),
        ("paper 7 el-en ter = 1.0", "no metric"),
        ("tau 2 el-en chrf = 1.0", "too few rows"),
        ("tau 999 el-en chrf = 1.0", "no table"),
        ("setting 12 stages.7.learning_rate = 1.0", "no number"),
        ("setting 12 stages.0.packed = 1.0", "no number"),
        ("difference 12 7 el-en bleu = 1.0 [0.9, 1.1]", "only chrF"),
    ],
)
def test_a_claim_that_cannot_be_looked_up_says_why(check, claim: str, words: str) -> None:
    (problem,) = check(f"Text.\n\nMore.\n<!-- {FROM}: {claim} -->\n").problems
    assert problem.line == 4
    assert re.search(words, problem.results)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\n<!-- from docs/results/greek chrf 12 el-en = 1.0 -->", 2),
        ("a\n<!-- from docs/results/greek: -->", 2),
        ("a\n<!-- numbers are right -->", 2),
        ("a\n<!-- numbers not checked: -->", 2),
        ("a\n\n<!-- numbers: chrf 12 el-en = 1.0 -->", 3),
        ("a\n<!-- from docs/results/latin: chrf 12 el-en = 1.0 -->", 2),
        ("a\n\n\n<!-- from docs/results/greek: updates 12 = 4000", 4),
    ],
)
def test_a_comment_that_is_not_understood_is_no_comment_that_passes(check, text: str, line: int) -> None:
    assert [problem.line for problem in check(text).problems] == [line]


def test_a_page_names_its_results_once(published: Path, check) -> None:
    value = f"{chrf(published, 12, 'el-en'):.1f}"
    text = f"<!-- numbers from docs/results/greek -->\n\n- It has {value}.\n  <!-- numbers: chrf 12 el-en = {value} -->\n"
    text += f"- It has {value}.\n"
    assert wrong(check(text)) == [(5, value)], "a comment stands for one item"


def test_numbers_that_no_claim_covers_are_found_where_they_stand(check) -> None:
    text = """# Page of 1.1

First 2.2 and 2.2, **+3.3**, (4.4), 5.27M or −6.6 %.
Second line 7.7
<!-- numbers: stated a choice = 2.2; stated the other = 7.7 -->
- item 8.8 <!-- numbers: stated a choice = 8.8 -->
- item 8.8

| a | 9.9 |
|---|---|
| .5 | 1,234.5 |
Range 1.5-2.5 and x=3.5,4.5
"""
    outcome = check(text)
    assert [(problem.line, problem.page) for problem in outcome.problems] == [
        *((1, "1.1"), (3, "+3.3"), (3, "4.4"), (3, "5.27M"), (3, "−6.6"), (7, "8.8"), (9, "9.9"), (11, ".5"), (11, "1,234.5")),
        *((12, "1.5"), (12, "2.5"), (12, "3.5"), (12, "4.5")),
    ]
    assert (outcome.claims, outcome.stated, outcome.numbers) == (3, 3, 17)


def test_code_links_versions_dates_and_other_comments_have_no_numbers(check) -> None:
    text = """`1.1` and ``2.2 ` 2.3`` and [a page](results-3.3.md "4.4") and <https://example.org/5.5> and https://example.org/6.6
![plot](plot-7.7.png) <span title="8.8">sacreBLEU 2.6.0, 2026-11-19, v1.2, 12 of 20</span> <!-- a remark on 9.9 -->

[reference]: page-1.1.md

```
<!-- from nowhere: chrf 12 el-en = 2.2 -->
3.3
```
~~~text
4.4
~~~

    5.5

```
6.6
"""
    outcome = check(text)
    assert (outcome.problems, outcome.numbers, outcome.claims) == ([], 0, 0)


def test_a_section_can_be_exempted_with_a_reason(check) -> None:
    text = "## Machine of 1.5\n<!-- numbers not checked: of the machine -->\n2.5\n\n- 3.5\n\n### Next\n\n4.5\n"
    outcome = check(text)
    assert wrong(outcome) == [(9, "4.5")]
    assert (outcome.numbers, outcome.not_checked) == (4, 3)


def test_recomputed_scores_find_a_result_file_that_was_changed(published: Path, check) -> None:
    path = published / "docs" / "results" / "greek" / "results" / "model-12-el-seed1.json"
    right = chrf(published, 12, "el-en")
    document = json.loads(path.read_text("utf-8"))
    document["scores"]["test"]["directions"]["el-en"]["chrf"] = 99.0
    text = f"<!-- {FROM}: chrf 12 el-en = {right:.1f} -->"
    assert check(text, recompute=True).problems == []
    path.write_text(json.dumps(document), encoding="utf-8")
    assert check(text.replace(f"{right:.1f}", "99.0")).problems == []
    (problem,) = check(text.replace(f"{right:.1f}", "99.0"), recompute=True).problems
    assert f"{right:.3f}" in problem.results and "99.000" in problem.results


def test_damaged_translations_are_named_where_a_claim_needs_them(published: Path, check) -> None:
    stored = published / "docs" / "results" / "greek" / "translations" / "test.el-fr.jsonl.xz"
    stored.write_bytes(stored.read_bytes()[:-30])
    assert check(f"<!-- {FROM}: chrf 12 el-fr > 0 -->").problems == []
    for claim in ("chrf 12 el-fr > 0", "p 12 7 el-fr < 0.5"):
        (problem,) = check(f"<!-- {FROM}: {claim} -->", recompute=True).problems
        assert stored.name in problem.results and "damaged" in problem.results


def test_the_command_says_file_line_and_what_to_do(published: Path, graftmt) -> None:
    right, bad = published / "right.md", published / "docs" / "wrong.md"
    right.write_text("Text.\n", encoding="utf-8")
    bad.write_text(f"Text 4.2.\n\nMore.\n<!-- {FROM}: updates 12 = 4,001 -->\n", encoding="utf-8")
    found = graftmt("experiment", "check", str(right))
    assert found.code == 0 and found.stdout.startswith("0 problems")
    found = graftmt("experiment", "check", str(right), str(bad), "-q")
    assert found.code == 1
    assert f"{bad}:1: 4.2: no claim" in found.stdout and f"{bad}:4: updates 12 = 4,001" in found.stdout
    assert "docs/results/greek says 4,000" in found.stdout
    document = json.loads(graftmt("experiment", "check", str(bad), "--json", "-q").stdout)
    assert [(one["line"], one["file"]) for one in document["problems"]] == [(1, str(bad)), (4, str(bad))]
    assert set(document["problems"][0]) == {"file", "line", "page", "results", "advice"}
    missing = graftmt("experiment", "check", str(published / "none.md"))
    assert missing.code == 1 and "none.md" in missing.stderr


def test_a_number_stands_for_those_that_round_to_it() -> None:
    def printed(text: str) -> Printed:
        found = Printed.parse(text)
        assert found is not None
        return found

    assert printed("67.3").agrees(67.26) and printed("67.3").agrees(67.349) and not printed("67.3").agrees(67.36)
    assert printed("5.27M").agrees(5_274_112) and not printed("5.27M").agrees(5_284_112)
    assert printed("4,000").agrees(4000) and not printed("4,000").agrees(4001)
    assert printed("0.002").agrees(0.00195) and not printed("0.002").agrees(0.0027)
    assert printed("−0.5").agrees(-0.52) and not printed("-0.5").agrees(0.52)
    ((_, visible),) = visible_numbers("it loses 0.5 here")
    assert printed("-0.5").covers(visible) and not printed("-0.50").covers(visible)
    ((_, positive),) = visible_numbers("(+0.5)")
    assert not printed("-0.5").covers(positive) and printed(".5").covers(positive)
    assert Printed.parse("1.0 to 2") is None
