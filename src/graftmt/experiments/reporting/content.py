"""What a report says: tables, figures for scripts, agreement with the paper, trade-offs. Layer 7."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from graftmt.errors import ConfigError
from graftmt.evaluation import METRIC_NAMES, METRICS, Metric
from graftmt.experiments import definitions
from graftmt.experiments.definitions import Model, Row, System, Table, is_ours
from graftmt.experiments.reporting.against_best import Standing, Tested, standings
from graftmt.experiments.reporting.agreement import Agreement, Checked, agreements, check_findings
from graftmt.experiments.reporting.beyond import beyond_table
from graftmt.experiments.reporting.cells import SIDES, Cell, PaperFigures, Quantity, Results, paper_figures, usual_directions
from graftmt.experiments.reporting.kept_translations import Kept
from graftmt.experiments.reporting.paper_tables import report_table
from graftmt.experiments.reporting.result_files import Result
from graftmt.experiments.reporting.table_values import ReportTable
from graftmt.experiments.reporting.trade_off import KINDS, TradeOff

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything that is written, before it is."""

    profile: str
    metric: Metric
    results: tuple[Result, ...]
    tables: tuple[ReportTable, ...]
    not_run: tuple[int, ...]
    """Tables of the same corpus without any result."""
    entries: tuple[dict[str, Any], ...]
    """The flat list for scripts."""
    agreements: tuple[Agreement, ...]
    findings: tuple[Checked, ...]
    tested: tuple[Tested, ...]
    """Rows of our own tables against the best of the paper's."""
    standings: tuple[Standing, ...]
    languages: tuple[str, ...]
    """New ones, those with most results first."""
    by_corpus: Mapping[str, Results]
    paper: PaperFigures
    left_out: int = 0
    """Results of the same profile that are of other settings or another text."""


def make_report(
    results: Sequence[Result],
    kept: Kept | None = None,
    *,
    tables: Sequence[int] | None = None,
    metric: Metric = "chrf",
    left_out: int = 0,
) -> Report:
    """From results of one profile and the translations kept next to them; without `tables`, all that have one.

    Without translations nothing is tested for significance.
    """
    known, models = definitions.tables(), definitions.models()
    by_corpus = {corpus: found for corpus in ("TED", "ParaCrawl") if (found := Results(results, models, corpus)).all}
    paper = paper_figures(known.values())
    chosen = choose("--tables", tables, known)
    of_corpus = [table for table in chosen if table.corpus in by_corpus or tables is not None]
    made: list[ReportTable] = []
    tested: list[Tested] = []
    for table in of_corpus:
        of_table = by_corpus.get(table.corpus) or Results((), models, table.corpus)
        if not table.ours:
            made.append(report_table(table, of_table, models, paper))
        elif tables is not None or _has_ours(table, of_table):
            with_tests, of_rows = beyond_table(table, of_table, models, paper, kept)
            made.append(with_tests)
            tested += of_rows
    some = [table for table in made if tables is not None or any(block.run for block in table.blocks)]
    numbers = {table.number for table in some}
    shown = [table for table in chosen if table.number in numbers]
    return Report(
        profile=results[0].profile,
        metric=metric,
        results=tuple(results),
        tables=tuple(some),
        not_run=tuple(table.number for table in of_corpus if table.number not in numbers),
        entries=tuple(_entries(results, shown, by_corpus, paper)),
        agreements=tuple(a for corpus, found in by_corpus.items() for a in agreements(_of(shown, corpus), found, paper)),
        findings=tuple(checked for found in by_corpus.values() for checked in check_findings(found, metric, paper, kept)),
        tested=tuple(tested),
        standings=tuple(standings(tested, models)),
        languages=_languages(results, by_corpus),
        by_corpus=by_corpus,
        paper=paper,
        left_out=left_out,
    )


def _has_ours(table: Table, results: Results) -> bool:
    """Whether any row was run that no table of the paper's has."""
    numbers = {row.system.model for row in table.rows if is_ours(row)}
    return any(result.model in numbers for result in results.all)


def _of(tables: Iterable[Table], corpus: str) -> list[Table]:
    """The paper's own."""
    return [table for table in tables if table.corpus == corpus and not table.ours]


def choose(option: str, numbers: Sequence[int] | None, known: Mapping[int, T]) -> list[T]:
    """Those with these numbers, or all."""
    unknown = [number for number in numbers or () if number not in known]
    if unknown:
        raise ConfigError(f"{option}: {_join(unknown)} of the paper shows no models' scores; those that do are {_join(known)}.")
    return [known[number] for number in (sorted(known) if numbers is None else numbers)]


def _join(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _languages(results: Sequence[Result], by_corpus: Mapping[str, Results]) -> tuple[str, ...]:
    new = {language for found in by_corpus.values() for language in found.new}
    count = {language: sum(language in r.languages and not r.failed for r in results) for language in new}
    return tuple(sorted(new, key=lambda language: (-count[language], language)))


def _entries(
    results: Sequence[Result], tables: Sequence[Table], by_corpus: Mapping[str, Results], paper: PaperFigures
) -> Iterator[dict[str, Any]]:
    """Each direction of each job, then each average that a table shows."""
    for result in results:
        facts = {
            "id": result.model,
            "source_id": result.source,
            "target_id": result.target,
            "kind": result.kind,
            "languages": list(result.languages),
            "seed": result.seed,
            "job": result.job,
            "lines_of_training": result.lines,
            "seconds": dict(result.seconds),
            "base": result.base_fingerprint,
        }
        if result.failed:
            yield {**facts, "failed": result.failed}
        for split, directions in result.by_set.items():
            for direction, scores in directions.items():
                yield {**facts, "split": split, "direction": direction, **scores.figures()}
    seen: set[tuple[System, Quantity, tuple[str, ...]]] = set()
    for table in (table for table in tables if table.corpus in by_corpus):
        for quantity in dict.fromkeys(Quantity.of(column) for column in table.columns if "delta" not in column.metric):
            cells = by_corpus[table.corpus].cells(((row.system, row.languages) for row in table.rows), quantity)
            for row, cell in zip(table.rows, cells, strict=True):
                if (row.system, quantity, row.languages) not in seen:
                    seen.add((row.system, quantity, row.languages))
                    yield from _average_entry(table, row, quantity, cell, paper)


def _average_entry(table: Table, row: Row, quantity: Quantity, cell: Cell, paper: PaperFigures) -> Iterator[dict[str, Any]]:
    if cell.state != "scored":
        return
    yield {
        "id": row.system.model,
        "source_id": row.system.source,
        "target_id": row.system.target,
        "kind": "pivot" if row.system.pivot else "model" if row.system.source is None else "composition",
        "plus": row.system.plus,
        "table": table.number,
        "row": row.label,
        "languages": list(quantity.languages),
        "split": quantity.split,
        "average": quantity.name,
        "directions": list(cell.directions),
        "seeds": cell.seeds,
        **{metric: round(cell.scores[metric].mean, 2) for metric in METRICS},
        **{f"{metric}_farthest": round(cell.scores[metric].farthest, 2) for metric in METRICS},
        "off_target": cell.off_target,
        **{f"paper_{metric}": paper.get((row.system, quantity, metric)) for metric in METRICS},
        "seconds": [result.training_seconds for result in cell.results],
        "base": cell.base[1],
        "notes": list(cell.notes),
    }


def document(report: Report) -> dict[str, Any]:
    """results.json."""
    return {
        "profile": report.profile,
        "metric": report.metric,
        "tables": [table.number for table in report.tables],
        "tables_not_run": list(report.not_run),
        "results": list(report.entries),
        "agreement": [asdict(agreement) for agreement in report.agreements],
        "findings": [asdict(checked) for checked in report.findings],
        "significance": [asdict(tested) for tested in report.tested],
        "without_significant_loss": [asdict(one) for one in report.standings if one.holds],
    }


def trade_offs(report: Report, corpus: str) -> list[list[TradeOff]]:
    """Ours above, the paper's below: source packs to the left, target packs to the right."""
    results, paper = report.by_corpus[corpus], report.paper
    models = {n: model for n, model in definitions.models().items() if model.corpus == corpus and model.trains != "none"}
    languages = [language for language in report.languages if language in results.new]
    if not languages:
        return []
    split = compared_split(corpus, report.metric)
    kinds = {str(number): _kind(model) for number, model in models.items()}
    ours: list[TradeOff] = []
    theirs: list[TradeOff] = []
    for side, names in SIDES.items():
        trained, zero_shot = (Quantity(name=name, languages=(languages[0],), split=split) for name in names)
        of_side = [System(model=number) for number, model in models.items() if model.side in (None, side)]
        found = _points(_measured(of_side, trained, results, report), _measured(of_side, zero_shot, results, report))
        printed = _points(
            *({s: paper[s, q, report.metric] for s in of_side if (s, q, report.metric) in paper} for q in (trained, zero_shot))
        )
        x, y = (f"{quantity.label}, {METRIC_NAMES[report.metric]}" for quantity in (trained, zero_shot))
        title = f"{languages[0]} as {side} language"
        for whose, points, panels in (("Ours", found, ours), ("Paper", printed, theirs)):
            if found and points:
                panel = f"{whose}: {title}"
                labels = {"x_label": f"{x} (trained)", "y_label": f"{y} (zero-shot)"}
                panels.append(TradeOff(title=panel, points=points, kinds=kinds, **labels))
    return [panels for panels in (ours, theirs) if panels]


def compared_split(corpus: str, metric: Metric) -> str:
    """Where the paper has the figures that models are compared by."""
    return "test" if corpus == "TED" else "ted2020-valid" if metric == "chrf" else "flores-devtest"


def _measured(systems: Sequence[System], quantity: Quantity, results: Results, report: Report) -> dict[System, float]:
    """What can be compared: on one base, over the same directions."""
    cells = dict(zip(systems, results.cells(((system, ()) for system in systems), quantity), strict=True))
    usual = usual_directions(cells.values())
    return {system: cell.scores[report.metric].mean for system, cell in cells.items() if results.comparable(cell, usual)}


def _points(trained: Mapping[System, float], zero_shot: Mapping[System, float]) -> dict[str, tuple[float, float]]:
    return {str(system.model): (trained[system], zero_shot[system]) for system in trained if system in zero_shot}


def _kind(model: Model) -> str:
    english, others, whole, ours = KINDS
    if model.ours:
        return ours
    return whole if model.trains != "pack" else english if model.data.english_alone else others
