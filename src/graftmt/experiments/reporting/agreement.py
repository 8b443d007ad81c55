"""Whether our results order the paper's models as the paper does: rank correlation, and its findings one by one. Layer 7."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from graftmt.errors import DataError
from graftmt.evaluation import METRICS, Metric
from graftmt.evaluation.significance import MARGIN
from graftmt.experiments.definitions import Finding, Row, System, Table, findings
from graftmt.experiments.reporting.cells import Cell, PaperFigures, Quantity, Results, usual_directions
from graftmt.experiments.reporting.kept_translations import Kept

CLEAR = 1.0
"""Points of BLEU or chrF: of models that the paper has nearer together, neither order contradicts it."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """One column of a table: do we order its rows alike?"""

    table: int
    column: str
    split: str
    metric: Metric
    """The paper's and ours."""
    rows: int
    """That have both figures."""
    tau: float
    """Kendall's tau-b: 1 is the same order, 0 as by chance, -1 the reverse."""
    clear_pairs: int
    """Pairs of rows that the paper sets at least a point apart."""
    clear_alike: int
    """Those of them that we have in the same order."""


def kendall(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Tau-b, which allows for ties; None where one of the two says nothing, all of it being tied."""
    pairs = [(_sign(a - c), _sign(b - d)) for (a, b), (c, d) in combinations(zip(first, second, strict=True), 2)]
    untied = math.sqrt(sum(x != 0 for x, _ in pairs) * sum(y != 0 for _, y in pairs))
    return sum(x * y for x, y in pairs) / untied if untied else None


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def agreements(tables: Iterable[Table], results: Results, paper: PaperFigures) -> list[Agreement]:
    """One for each column and metric that the paper prints, where at least three rows have been run.

    Where the paper has a table for BLEU and another for chrF and both are here, each is compared in its own metric.
    """
    found = []
    tables = list(tables)
    own = {
        (table.number, Quantity.of(column)): "chrf" if column.metric == "chrf" else "bleu"
        for table in tables
        for column in table.columns
    }
    for table in tables:
        quantities = {Quantity.of(column) for column in table.columns if "delta" not in column.metric}
        for quantity in sorted(quantities, key=lambda q: (q.split, q.languages, q.name)):
            for metric in METRICS:
                in_other = any(q == quantity and m == metric for (number, q), m in own.items() if number != table.number)
                if metric != own[table.number, quantity] and in_other:
                    continue
                pairs = _pairs(table.rows, quantity, metric, results, paper)
                theirs, ours = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
                tau = kendall(theirs, ours)
                if len(pairs) < 3 or tau is None:
                    continue
                clear = [(p, q) for p, q in combinations(pairs, 2) if abs(p[0] - q[0]) >= CLEAR]
                found.append(
                    Agreement(
                        table=table.number,
                        column=quantity.label,
                        split=quantity.split,
                        metric=metric,
                        rows=len(pairs),
                        tau=round(tau, 3),
                        clear_pairs=len(clear),
                        clear_alike=sum((p[0] - q[0]) * (p[1] - q[1]) > 0 for p, q in clear),
                    )
                )
    return found


def _pairs(
    rows: Sequence[Row], quantity: Quantity, metric: Metric, results: Results, paper: PaperFigures
) -> list[tuple[float, float]]:
    """The paper's figure and ours, of the rows that have both and can be compared: on one base, over the same directions."""
    cells = results.cells(((row.system, row.languages) for row in rows), quantity)
    usual = usual_directions(cells)
    return [
        (paper[row.system, quantity, metric], cell.scores[metric].mean)
        for row, cell in zip(rows, cells, strict=True)
        if (row.system, quantity, metric) in paper and results.comparable(cell, usual)
    ]


Verdict = Literal["holds", "fails", "undecided", "untested"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One pair of a finding, as we found it."""

    text: str
    """Such as `(12) > (7)`."""
    difference: float
    """The first system's score less the second's: of the seeds that both have where that was tested, else of all."""
    interval: tuple[float, float] | None = None
    """Of the difference, 95 %; None where that was not tested."""
    p: float | None = None
    """Two-sided."""

    def __str__(self) -> str:
        interval = "" if self.interval is None else " [{:+.1f}, {:+.1f}]".format(*self.interval)
        tested = "" if self.p is None else f", p = {self.p:.3f}"
        return f"{self.text}: {self.difference:+.1f}{interval}{tested}"

    def verdict(self, slack: float) -> Verdict:
        """Whether the interval bears the claim out. A difference alone does neither, however large it is.

        Two that are level contradict a claim that one is better, and none that it is as good.
        """
        if self.interval is None:
            return "untested"
        low, high = self.interval
        if low > -slack:
            return "holds"
        level = not slack and low >= -MARGIN and high <= MARGIN
        return "fails" if high < -slack or level else "undecided"


@dataclass(frozen=True, kw_only=True)
class Checked:
    finding: str
    languages: tuple[str, ...]
    quantity: str
    holds: tuple[Claim, ...]
    """The 95 % interval lies on the paper's side."""
    fails: tuple[Claim, ...]
    """It lies on the other side, or the two are level."""
    undecided: tuple[Claim, ...]
    """It allows both."""
    untested: tuple[Claim, ...]
    """There are scores, but no translations to test on. They neither agree with the paper nor contradict it."""
    not_run: tuple[str, ...]
    paper_otherwise: tuple[str, ...]
    """Those that the paper's own figures contradict, in this language and metric: its claims are about Greek and BLEU."""


def check_findings(results: Results, metric: Metric, paper: PaperFigures, kept: Kept | None = None) -> list[Checked]:
    """On the test set, for each new language alone; between new languages for all of them.

    With the translations that were kept, differences of chrF are tested.
    """
    found = []
    for finding in findings():
        every = tuple(sorted(results.new))
        for languages in [every] if finding.quantity == "X→X" else [(language,) for language in every]:
            quantity = Quantity(name=finding.quantity, languages=languages)
            verdicts: dict[Verdict, list[Claim]] = {"holds": [], "fails": [], "undecided": [], "untested": []}
            not_run, otherwise = [], []
            for better, worse in finding.systems:
                first = results.cell(better, quantity)
                second = results.cell_over(first.directions, worse, quantity)
                first = results.narrowed(first, second.directions, better, quantity)
                known = results.comparable(first, second.directions) and results.comparable(second, first.directions)
                text = f"{name(better)} {'≥' if finding.slack else '>'} {name(worse)}"
                if not known:
                    not_run.append(text)
                    continue
                difference = first.scores[metric].mean - second.scores[metric].mean
                claim = Claim(text=text, difference=round(difference, 3))
                if kept is not None and metric == "chrf":
                    claim = _tested(claim, kept, first, second, quantity.split)
                verdicts[claim.verdict(finding.slack)].append(claim)
                if paper_agrees(better, worse, finding, quantity, metric, paper) is False:
                    otherwise.append(text)
            if any(verdicts.values()):
                found.append(
                    Checked(
                        finding=finding.text,
                        languages=languages,
                        quantity=quantity.label,
                        **{verdict: tuple(claims) for verdict, claims in verdicts.items()},
                        not_run=tuple(not_run),
                        paper_otherwise=tuple(otherwise),
                    )
                )
    return found


def _tested(claim: Claim, kept: Kept, first: Cell, second: Cell, split: str) -> Claim:
    """With interval and p over all seeds that both have; as it is where their translations are not at hand."""
    seeds = sorted({result.seed for result in first.results} & {result.seed for result in second.results})
    for chosen in (seeds, seeds[:1]):  # the first alone is what earlier reports have remembered
        try:
            found, _ = kept.compare(second, first, [(seed, seed) for seed in chosen], split) if chosen else (None, "")
        except DataError:
            continue
        if found is not None:
            p = None if found.p is None else round(found.p, 4)
            interval = (round(found.low, 3), round(found.high, 3))
            return Claim(text=claim.text, difference=round(found.difference, 3), interval=interval, p=p)
    return claim


def paper_agrees(
    better: System, worse: System, finding: Finding, quantity: Quantity, metric: Metric, paper: PaperFigures
) -> bool | None:
    """Whether the paper's figures bear the claim out; None where it does not print them."""
    first, second = (paper.get((system, quantity, metric)) for system in (better, worse))
    return None if first is None or second is None else first > second - finding.slack


def name(system: System) -> str:
    if system.model is not None:
        return f"({system.model}{' through English' if system.pivot else ''})"
    return f"({system.source}→{system.target}{' through English' if system.pivot else ''})"
