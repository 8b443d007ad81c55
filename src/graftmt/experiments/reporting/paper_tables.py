"""The paper's tables with our figures next to the printed ones, as values that Markdown and LaTeX are written from. Layer 7."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from graftmt.evaluation import METRIC_NAMES, METRICS, Metric
from graftmt.experiments.definitions import Column, Model, Row, System, Table
from graftmt.experiments.reporting.cells import (
    Cell,
    PaperFigures,
    Quantity,
    Results,
    Spread,
    other_directions,
    usual_directions,
)
from graftmt.experiments.reporting.table_values import (
    DASH,
    Block,
    Field,
    Heading,
    ReportTable,
    counted,
    describe_directions,
    millions,
    spread_text,
    updates_text,
)

NOT_RUN = "not run"
_PRINTED_NAMES = {"bleu": "BLEU", "spbleu": "spBLEU", "chrf": "chrF"}


_COSTS = {True: ("decoder passes", "s / 1,000 lines"), False: ("updates", "seconds")}
"""The last columns, of tables with pairs of packs and of others."""


def report_table(table: Table, results: Results, models: Mapping[int, Model], paper: PaperFigures) -> ReportTable:
    blocks = [table_block(table, columns, results, models, paper) for columns in column_sets(table, results)]
    return ReportTable(number=table.number, label=table.label, title=table.title, blocks=tuple(blocks))


def table_block(
    table: Table, columns: Sequence[Placed], results: Results, models: Mapping[int, Model], paper: PaperFigures
) -> Block:
    return _BlockMaker(table, columns, results, models, paper).block()


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A column, and where it stands in the paper's table; None for a language that the paper's table does not have."""

    column: Column
    place: int | None
    split: str
    """Which split our scores in it are of: the paper's, or the test set where there are no others."""

    @property
    def quantity(self) -> Quantity:
        return replace(Quantity.of(self.column), split=self.split)

    @property
    def metric(self) -> Metric:
        return "chrf" if self.column.metric.startswith("chrf") else "bleu"

    @property
    def is_delta(self) -> bool:
        return self.column.metric.endswith("-delta")


def column_sets(table: Table, results: Results) -> Iterator[tuple[Placed, ...]]:
    """One for each language and split of the paper's columns, then one for each other language that we have results for."""
    without_valid = {column.split for column in table.columns} == {"valid"} and not results.has_split("valid")
    placed = [
        Placed(column=column, place=place, split="test" if without_valid else column.split)
        for place, column in enumerate(table.columns)
    ]
    sets: dict[tuple[object, ...], list[Placed]] = {}
    for one in placed:
        side = "target" if one.column.name.endswith("→X") else "source"
        sets.setdefault((one.column.languages, one.column.split, one.metric, side), []).append(one)
    yield from (tuple(columns) for columns in sets.values())
    languages = {one.column.languages for one in placed}
    if len(sets) != 1 or any(len(names) != 1 for names in languages):
        return
    run = {result.model for result in results.all} & {row.system.model for row in table.rows}
    new = {name for r in results.all if r.kind == "model" and r.model in run for name in r.languages} & results.new
    for language in sorted(new - {name for names in languages for name in names}):
        yield tuple(replace(one, column=replace(one.column, languages=(language,)), place=None) for one in placed)


class _Footnotes:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def number(self, text: str) -> int:
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1


class _BlockMaker:
    """Works out one block, from the cells to their text."""

    def __init__(
        self,
        table: Table,
        columns: Sequence[Placed],
        results: Results,
        models: Mapping[int, Model],
        paper: PaperFigures,
    ) -> None:
        self.columns, self.results, self.models, self.paper, self.ours = columns, results, models, paper, table.ours
        self.composes = any(row.system.source is not None for row in table.rows)
        by_column = [self._cells(table.rows, column) for column in columns]
        cells = list(zip(table.rows, zip(*by_column, strict=True), strict=True))
        # A block of a language that the paper's table does not have shows what was run; a table with one half for each side
        # has rows that say nothing in the other.
        self.rows = [(row, found) for row, found in cells if self._says_something(row, found)]
        self.left_out = len(cells) - len(self.rows)
        # Labels are "source / target"; those of rows through English say so instead of the target.
        self.target_names = {row.system.target: row.label.partition(" / ")[2] for row in table.rows if not row.system.pivot}
        self.footnotes = _Footnotes()
        self.usual = [usual_directions(found[i] for _, found in self.rows) for i in range(len(columns))]
        self.best = {(i, metric): self._best(i, metric) for i in range(len(columns)) for metric in METRICS}

    def _cells(self, rows: Sequence[Row], column: Placed) -> list[Cell]:
        cells = self.results.cells(((row.system, row.languages) for row in rows), column.quantity)
        if not column.is_delta:
            return cells
        return [self._delta(row, column, cell) for row, cell in zip(rows, cells, strict=True)]

    def _delta(self, row: Row, column: Placed, cell: Cell) -> Cell:
        if cell.state != "scored":
            return cell
        learned = self.results.cell_over(cell.directions, replace(row.system, plus=None), column.quantity, row.languages)
        if learned.state != "scored" or learned.directions != cell.directions or learned.base != cell.base:
            return Cell(state="not run", scores={}, notes=(f"nothing to compare it with: ({row.system.model}) itself",))
        deltas = {m: Spread(mean=10 * (cell.scores[m].mean - learned.scores[m].mean)) for m in METRICS}
        return replace(cell, scores=deltas)

    def _says_something(self, row: Row, cells: Sequence[Cell]) -> bool:
        printed = self.columns[0].place is not None and (
            self.ours or any(self.printed(row, column, metric) is not None for column in self.columns for metric in METRICS)
        )
        return printed or any(cell.state != "not run" for cell in cells)

    def printed(self, row: Row, column: Placed, metric: Metric) -> float | None:
        """What the paper has, in this table or in another one."""
        if column.place is not None and metric == column.metric and not self.ours:
            score = row.scores[column.place]
            return 100 * score if score is not None and metric == "chrf" and not column.is_delta else score
        return self.paper.get((row.system, column.quantity, metric))

    def _best(self, column: int, metric: Metric) -> str | None:
        """As text, so that figures that read the same are both bold; only what can be compared takes part."""
        cells = [found[column] for _, found in self.rows]
        found = [cell.scores[metric].mean for cell in cells if self.results.comparable(cell, self.usual[column])]
        return f"{max(found):.1f}" if len(found) > 1 else None

    def block(self) -> Block:
        headings = [Heading(name="source", text=True), Heading(name="target", text=True), Heading(name="route", text=True)]
        if not self.composes:
            headings = [Heading(name="ID"), Heading(name="model", text=True), Heading(name="parameters: paper / ours")]
        parts = [self._parts(number) for number in range(len(self.columns))]
        for column, names in zip(self.columns, parts, strict=True):
            headings += [Heading(name=name, group=column.quantity.label) for name in names]
        headings += [Heading(name=name) for name in _COSTS[self.composes]]
        seeds = max((cell.seeds for _, cells in self.rows for cell in cells), default=0)
        if seeds > 1:
            headings.append(Heading(name="seeds"))
        rows = []
        for row, cells in self.rows:
            fields = list(self._composed_names(row) if self.composes else self._names(row, cells))
            for number, names in enumerate(parts):
                fields += self._figures(row, number, cells[number], names)
            fields += self._costs(row.system, cells)
            if seeds > 1:
                fields.append(Field(text=str(max(cell.seeds for cell in cells) or DASH)))
            rows.append(tuple(fields))
        return Block(
            title=self._title(),
            headings=tuple(headings),
            rows=tuple(rows),
            rules=frozenset(number for number, (row, _) in enumerate(self.rows) if row.rule and number),
            footnotes=tuple(self.footnotes.texts),
            remarks=tuple(self._remarks(seeds)),
            run=sum(any(cell.state == "scored" for cell in cells) for _, cells in self.rows),
        )

    def _title(self) -> str:
        column = self.columns[0].column
        languages = ", ".join(column.languages)
        side = {"X→": " as source", "→X": " as target"}.get(column.name.replace("EN", "").replace("/", ""), "")
        return ", ".join(part for part in (f"{languages}{side}", self.columns[0].split) if part)

    def _parts(self, number: int) -> list[str]:
        """The headings under one of the paper's columns: its own metric first."""
        column = self.columns[number]
        if column.is_delta:
            return ["paper", METRIC_NAMES[column.metric]]
        names = []
        for metric in METRICS if column.metric == "bleu" else METRICS[::-1]:
            own = metric == column.metric
            if (own or column.metric == "bleu") and any(self.printed(row, column, metric) is not None for row, _ in self.rows):
                names.append(f"paper {_PRINTED_NAMES[column.column.metric] if own else METRIC_NAMES[metric]}")
            names.append(METRIC_NAMES[metric])
        if any(cells[number].off_target is not None for _, cells in self.rows):
            names.append("off-target %")
        return names

    def _names(self, row: Row, cells: Sequence[Cell]) -> Iterator[Field]:
        model = None if row.system.model is None else self.models.get(row.system.model)
        yield Field(text=DASH if row.system.model is None else str(row.system.model))
        yield Field(text=row.label, notes=(self.footnotes.number(row.note),) if row.note else ())
        printed = row.parameters or (model.parameters if model else None) or DASH
        ours = sorted({r.parameters for cell in cells for r in cell.results if r.parameters})
        yield Field(text=f"{printed} / {', '.join(map(millions, ours)) or DASH}")

    def _composed_names(self, row: Row) -> Iterator[Field]:
        system, note = row.system, (self.footnotes.number(row.note),) if row.note else ()
        if system.model is not None:
            yield Field(text=f"({system.model}) {row.label}", notes=note)
            yield Field(text="")
            yield Field(text="through English" if system.pivot else "one model")
            return
        yield Field(text=self._named(system.source, row.label.partition(" / ")[0]), notes=note)
        yield Field(text=self._named(system.target, self.target_names.get(system.target, "")))
        yield Field(text="through English" if system.pivot else "composed")

    def _named(self, number: int | None, label: str) -> str:
        model = None if number is None else self.models.get(number)
        return DASH if number is None else f"({number}) {label or (model.name if model else '')}".strip()

    def _figures(self, row: Row, number: int, cell: Cell, names: Sequence[str]) -> Iterator[Field]:
        column = self.columns[number]
        notes = tuple(self.footnotes.number(text) for text in self._cell_notes(number, cell))
        for name in names:
            if name.startswith("paper"):
                metric = column.metric if column.is_delta else metric_named(name.split()[1])
                printed = self.printed(row, column, metric)
                bold = metric == column.metric and column.place is not None and column.place in row.bold
                shown = f"{printed:+g}" if column.is_delta and printed is not None else None
                yield Field(text=DASH if printed is None else shown or f"{printed:.1f}", bold=bold)
            elif name == "off-target %":
                yield Field(text=DASH if cell.off_target is None else f"{100 * cell.off_target:.1f}")
            elif cell.state != "scored":
                yield Field(text=NOT_RUN if cell.state == "not run" else cell.state, notes=notes)
            else:
                spread = cell.scores[metric_named(name)]
                if column.is_delta:
                    yield Field(text=f"{round(spread.mean):+d}", notes=notes)
                    continue
                best = self.best[number, metric_named(name)]
                bold = best == f"{spread.mean:.1f}" and self.results.comparable(cell, self.usual[number])
                yield Field(text=spread_text(spread, cell.seeds), bold=bold, notes=notes)

    def _cell_notes(self, number: int, cell: Cell) -> Iterator[str]:
        yield from cell.notes
        quantity = self.columns[number].quantity
        if cell.directions == (quantity.name,) != self.usual[number]:
            yield describe_directions(quantity, cell.directions)
        else:
            yield from other_directions(cell, self.usual[number])
        for result in cell.results:
            if result.proxy is not None:
                yield f"{result.job}: the proxy is {result.proxy}"
            broken = [key.replace("_", " ") for key, holds in result.verified.items() if not holds]
            if broken:
                yield f"{result.job}: the check “{', '.join(broken)}” failed"

    def _costs(self, system: System, cells: Sequence[Cell]) -> Iterator[Field]:
        results = {result.job: result for cell in cells if cell.state == "scored" for result in cell.results}.values()
        if self.composes:
            yield Field(text="2" if system.pivot else "1")
            known = [s for result in results if (s := result.seconds_per_thousand_lines) is not None]
            yield Field(text=f"{fmean(known):.1f}" if known else DASH)
        else:
            yield Field(text=updates_text(results))
            known = [s for result in results if (s := result.training_seconds) is not None]
            yield Field(text=f"{fmean(known):,.0f}" if known else DASH)

    def _remarks(self, seeds: int) -> Iterator[str]:
        for column, directions in zip(self.columns, self.usual, strict=True):
            if directions:
                yield f"{column.quantity.label}: {describe_directions(column.quantity, directions)}"
            count = len(column.quantity.languages)
            if column.quantity.name == "X→X" and 0 < len(directions) < count * (count - 1):
                languages = ", ".join(column.quantity.languages)
                yield f"the paper's X→X: mean over {count * (count - 1)} directions between {languages}"
        if self.columns[0].is_delta:
            yield "figures are differences to the same model with a code of its own that is learned, in tenths of a point"
        if self.columns[0].split != self.columns[0].column.split:
            yield "scores are those of the test set; the paper's are of the validation set"
        if seeds > 1:
            yield "±: how far the farthest seed is from the mean of the seeds"
        if self.composes and any(cell.state == "scored" for _, cells in self.rows for cell in cells):
            yield "s / 1,000 lines: of the whole evaluation, the start of a model included"
        if self.columns[0].place is None:
            yield "rows that were not run are left out; names of models are the paper's, for its own language"
        elif self.left_out:
            yield f"{counted(self.left_out, 'row')} of the paper's table without a figure here: left out"


def metric_named(name: str) -> Metric:
    return "chrf" if name == "chrF" else "bleu"
