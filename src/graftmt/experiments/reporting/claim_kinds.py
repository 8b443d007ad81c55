"""What a page can claim of a report, one function for each kind of claim: `KINDS` has them all. Layer 7."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from graftmt.errors import nearest
from graftmt.evaluation import Metric
from graftmt.experiments import definitions
from graftmt.experiments.reporting.agreement import agreements
from graftmt.experiments.reporting.cells import Cell, Quantity, Spread
from graftmt.experiments.reporting.cited_report import CitedReport, parse_system
from graftmt.experiments.reporting.page_claims import Claim, ClaimError
from graftmt.experiments.reporting.result_files import Result


@dataclass(frozen=True)
class Found:
    """What the results say, in the unit that a page prints."""

    value: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Kind:
    usage: str
    find: Callable[[Claim, CitedReport], Found] | None
    """None: no result has it, and the claim's words say where it comes from."""
    least: int
    most: int
    """Words after the kind."""


def _metric(word: str) -> Metric:
    if word == "chrf":
        return "chrf"
    if word == "bleu":
        return "bleu"
    raise ClaimError(f"{word!r} is no metric; expected chrf or bleu.")


def _cell(claim: Claim, report: CitedReport) -> tuple[Cell, Quantity]:
    system = parse_system(claim.arguments[0])
    quantity = report.quantity(claim.arguments[1], report.results_of(system), claim.split)
    return report.cell(system, quantity), quantity


def _chrf(claim: Claim, report: CitedReport) -> Found:
    return Found(fmean(report.scores(*_cell(claim, report), "chrf", claim.seed)))


def _bleu(claim: Claim, report: CitedReport) -> Found:
    return Found(fmean(report.scores(*_cell(claim, report), "bleu", claim.seed)))


def _spread(claim: Claim, report: CitedReport) -> Found:
    """The distance of the farthest seed from the mean."""
    metric = _metric(claim.arguments[2]) if len(claim.arguments) > 2 else "chrf"
    return Found(Spread.of(report.scores(*_cell(claim, report), metric)).farthest)


def _off_target(claim: Claim, report: CitedReport) -> Found:
    return Found(100 * report.off_target(*_cell(claim, report), claim.seed))


def _difference(claim: Claim, report: CitedReport) -> Found:
    """Of the seeds that both have; the interval is that of chrF."""
    metric = _metric(claim.arguments[3]) if len(claim.arguments) > 3 else "chrf"
    cells, quantity, seeds = _pair(claim, report)
    first, second = (fmean(report.scores(cell, quantity, metric, seed)[0] for seed in seeds) for cell in cells)
    if claim.interval is None:
        return Found(first - second)
    if metric != "chrf":
        raise ClaimError("only chrF is tested: an interval of BLEU is not known.")
    tested = report.compared(*cells, seeds, claim.split)
    return Found(first - second, (tested.low, tested.high))


def _p(claim: Claim, report: CitedReport) -> Found:
    cells, _, seeds = _pair(claim, report)
    tested = report.compared(*cells, seeds, claim.split)
    if tested.p is None:
        raise ClaimError(f"{report.folder} has only the interval of this comparison, no p.")
    return Found(tested.p)


def _pair(claim: Claim, report: CitedReport) -> tuple[tuple[Cell, Cell], Quantity, list[int]]:
    first, second = map(parse_system, claim.arguments[:2])
    quantity = report.quantity(claim.arguments[2], report.results_of(first), claim.split)
    cells = report.pair(first, second, quantity)
    return cells, quantity, report.shared_seeds(*cells, claim.seed)


def _of_jobs(claim: Claim, report: CitedReport, what: str, values: Callable[[Result], float | None]) -> Found:
    """The mean over seeds of what each job says of itself."""
    language = claim.arguments[1] if len(claim.arguments) > 1 else None
    jobs = report.jobs(parse_system(claim.arguments[0]), language, claim.seed)
    found = [value for job in jobs if (value := values(job)) is not None]
    if not found:
        raise ClaimError(f"the result of {jobs[0].job} in {report.folder} does not state its {what}.")
    return Found(fmean(found))


def _parameters(claim: Claim, report: CitedReport) -> Found:
    return _of_jobs(claim, report, "parameters", lambda job: job.parameters)


def _updates(claim: Claim, report: CitedReport) -> Found:
    return _of_jobs(claim, report, "updates", lambda job: job.steps)


def _seconds(claim: Claim, report: CitedReport) -> Found:
    """Of training and back-translation, as in the tables."""
    return _of_jobs(claim, report, "seconds", lambda job: job.training_seconds)


def _setting(claim: Claim, report: CitedReport) -> Found:
    """A number of the configuration of its training: stages.0.learning_rate."""
    (job, *_) = report.jobs(parse_system(claim.arguments[0]), None, claim.seed)
    value: Any = report.documents[job.name].get("settings")
    for key in claim.arguments[1].split("."):
        value = _entry(value, key)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ClaimError(f"{job.job} has no number {claim.arguments[1]!r} in its settings; see its file in {report.folder}.")
    return Found(value)


def _entry(value: Any, key: str) -> Any:
    if isinstance(value, list) and key.isdecimal() and len(key) < 10:
        return value[int(key)] if int(key) < len(value) else None
    return value.get(key) if isinstance(value, dict) else None


def _curve(claim: Claim, report: CitedReport) -> Found:
    """The validation score after a number of updates."""
    system, direction, step, *rest = claim.arguments
    in_bleu = bool(rest) and _metric(rest[0]) == "bleu"
    new = report.results_of(parse_system(system)).new
    language = next((one for one in direction.split("-") if one in new), None)
    jobs = report.jobs(parse_system(system), language, claim.seed)
    points = [point for job in jobs for point in (job.bleu_curve if in_bleu else job.curve)]
    steps = sorted({int(point["step"]) for point in points if direction in point})
    found = [point[direction] for point in points if f"{point['step']:g}" == step.replace(",", "") and direction in point]
    if not found:
        raise ClaimError(
            f"{jobs[0].job} in {report.folder} was not validated in {direction} after {step} updates; it was after "
            f"{', '.join(map(str, steps)) or 'none'}."
        )
    return Found(fmean(found))


def _paper(claim: Claim, report: CitedReport) -> Found:
    """What the paper prints, chrF from 0 to 100."""
    system = parse_system(claim.arguments[0])
    metric = _metric(claim.arguments[2])
    quantity = report.quantity(claim.arguments[1], report.results_of(system), claim.split)
    value = report.paper.get((system, quantity, metric))
    if value is None:
        raise ClaimError(f"the paper prints no {metric} of {claim.arguments[0]} in {quantity.label} ({quantity.split}).")
    return Found(value)


def _tau(claim: Claim, report: CitedReport) -> Found:
    """Kendall's tau between the paper's order of a column and ours."""
    number, direction, metric = claim.arguments
    table = definitions.tables().get(int(number)) if number.isdecimal() and len(number) < 10 else None
    if table is None:
        raise ClaimError(f"there is no table {number!r} of scores in the paper; expected a number such as 2.")
    results = report.by_corpus[table.corpus]
    column = report.quantity(direction, results, claim.split).label
    rows = agreements([table], results, report.paper)
    found = [row for row in rows if (row.column, row.metric, row.split) == (column, _metric(metric), claim.split)]
    if not found:
        raise ClaimError(f"{report.folder}: too few rows of Table {number} have a {metric} in {column} to compare their order.")
    return Found(found[0].tau)


KINDS: dict[str, Kind] = {
    "chrf": Kind("chrf MODEL DIRECTION", _chrf, 2, 2),
    "bleu": Kind("bleu MODEL DIRECTION", _bleu, 2, 2),
    "spread": Kind("spread MODEL DIRECTION [chrf|bleu]", _spread, 2, 3),
    "off-target": Kind("off-target MODEL DIRECTION", _off_target, 2, 2),
    "difference": Kind("difference MODEL MODEL DIRECTION [chrf|bleu]", _difference, 3, 4),
    "p": Kind("p MODEL MODEL DIRECTION", _p, 3, 3),
    "parameters": Kind("parameters MODEL [LANGUAGE]", _parameters, 1, 2),
    "updates": Kind("updates MODEL [LANGUAGE]", _updates, 1, 2),
    "seconds": Kind("seconds MODEL [LANGUAGE]", _seconds, 1, 2),
    "setting": Kind("setting MODEL KEY", _setting, 2, 2),
    "curve": Kind("curve MODEL DIRECTION UPDATES [chrf|bleu]", _curve, 3, 4),
    "paper": Kind("paper MODEL DIRECTION chrf|bleu", _paper, 3, 3),
    "tau": Kind("tau TABLE DIRECTION chrf|bleu", _tau, 3, 3),
    "stated": Kind("stated WORDS", None, 1, 1000),
}


def find(claim: Claim, open_report: Callable[[], CitedReport]) -> Found | None:
    """What the results say; None where no result has it. A claim that cannot be looked up is an error."""
    kind = KINDS.get(claim.kind)
    if kind is None:
        known = list(KINDS)
        raise ClaimError(
            f"{claim.kind!r} is no kind of claim{nearest(claim.kind, known) or ';'} there are: {', '.join(known)}."
        )
    if not kind.least <= len(claim.arguments) <= kind.most:
        raise ClaimError(f"the claim {claim.text!r} does not have the right words; expected `{kind.usage} = NUMBER`.")
    found = None if kind.find is None else kind.find(claim, open_report())
    if claim.interval is not None and (found is None or found.interval is None):
        raise ClaimError(f"only `difference` has an interval; the claim {claim.text!r} has one too many.")
    return found
