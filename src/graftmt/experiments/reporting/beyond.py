"""Tables of our own recipes: scores as in the paper's tables, then each row against the best of the paper's. Layer 7."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from graftmt.experiments.definitions import Model, Table
from graftmt.experiments.reporting.against_best import Standing, Tested, Tests, standings
from graftmt.experiments.reporting.cells import SIDES, PaperFigures, Quantity, Results
from graftmt.experiments.reporting.kept_translations import Kept, how
from graftmt.experiments.reporting.paper_tables import column_sets, table_block
from graftmt.experiments.reporting.table_values import DASH, Block, Field, Heading, ReportTable


def beyond_table(
    table: Table, results: Results, models: Mapping[int, Model], paper: PaperFigures, kept: Kept | None
) -> tuple[ReportTable, list[Tested]]:
    """For each language a block of scores, and one of tests where any row was run and translations are at hand."""
    blocks: list[Block] = []
    every: list[Tested] = []
    for columns in column_sets(table, results):
        blocks.append(table_block(table, columns, results, models, paper))
        if kept is None:
            continue
        tests = Tests(table, [column.quantity for column in columns], results, models, kept)
        found = tests.all()
        every += found
        if found:
            blocks.append(_tests_block(blocks[-1].title, tests, found, models))
    return ReportTable(number=table.number, label=table.label, title=table.title, blocks=tuple(blocks)), every


def _tests_block(title: str, tests: Tests, tested: Sequence[Tested], models: Mapping[int, Model]) -> Block:
    """A row for each model and seed, in the order of the table above."""
    headings = [Heading(name="ID"), Heading(name="model", text=True), Heading(name="seed")]
    for quantity in tests.quantities:
        for name in ("against", "difference", "95 %", "p", "verdict"):
            headings.append(Heading(name=name, group=quantity.label, text=name in ("against", "verdict")))
    notes: list[str] = []
    rows: list[tuple[Field, ...]] = []
    rules: list[int] = []
    labels = {row.system.model: row.label for row in tests.table.rows}
    by_row: dict[tuple[int, int], dict[str, Tested]] = {}
    for one in tested:
        by_row.setdefault((one.model, one.seed), {})[one.average] = one
    for (number, seed), found in by_row.items():
        if models[number].ours and rows and not rules:
            rules.append(len(rows))
        fields = [Field(text=str(number)), Field(text=labels[number]), Field(text=str(seed))]
        for quantity in tests.quantities:
            fields += _test_fields(found[quantity.name], notes)
        rows.append(tuple(fields))
    return Block(
        title=f"{title}: significance",
        headings=tuple(headings),
        rows=tuple(rows),
        rules=frozenset(rules),
        footnotes=tuple(notes),
        remarks=tuple(_remarks(tests, tested, models)),
        run=len(rows),  # one that could not be tested says why
    )


def _test_fields(one: Tested, notes: list[str]) -> Iterator[Field]:
    if one.note and one.note not in notes:
        notes.append(one.note)
    other_seed = f", seed {one.against_seed}" if one.against_seed not in (None, one.seed) else ""
    yield Field(text=DASH if one.against is None else f"({one.against}){other_seed}")
    yield Field(text=DASH if one.difference is None else f"{one.difference:+.1f}")
    yield Field(text=DASH if one.interval is None else "{:+.1f} … {:+.1f}".format(*one.interval))
    yield Field(text=DASH if one.p is None else f"{one.p:.3f}")
    yield Field(
        text=one.verdict,
        bold=one.verdict in ("better", "worse"),
        notes=(notes.index(one.note) + 1,) if one.note else (),
    )


def _remarks(tests: Tests, tested: Sequence[Tested], models: Mapping[int, Model]) -> Iterator[str]:
    yield f"{how(tests.kept)}; a difference is the row's chrF less that of the row it is compared with"
    for quantity in tests.quantities:
        best = tests.best(quantity)
        if best is not None:
            peers = ", ".join(f"({number})" for number in tests.peers[quantity])
            yield f"{quantity.label}: against ({best}), the best of the paper's packs with English alone that were run, {peers}"
    if len({one.seed for one in tested}) > 1 or any(one.against_seed not in (None, one.seed) for one in tested):
        yield "each seed is compared with the same seed of the best, or with its first one where it was not run with that seed"
    yield no_loss_line(standings(tested, models), [quantity.label for quantity in tests.quantities])


def no_loss_line(found: Sequence[Standing], columns: Sequence[str]) -> str:
    """Recipes that lose in no column, with every seed that was run, and those that may, for not all of it was tested."""
    untested = _numbers(one.model for one in found if one.not_tested and not one.losses)
    held = _named([one for one in found if one.holds]) or "none"
    return f"no significant loss in {' and '.join(columns)}: {held}" + (f"; not tested: {untested}" if untested else "")


def _named(found: Sequence[Standing]) -> str:
    def words(one: Standing) -> str:
        seeds = f"seed{'' if len(one.seeds) == 1 else 's'} {', '.join(map(str, one.seeds))}"
        open_in = f"; undecided in {' and '.join(one.undecided)}" if one.undecided else ""
        return f"({one.model}) {one.recipe} [{seeds}{open_in}{'' if one.english_alone else '; with back-translated lines'}]"

    return "; ".join(words(one) for one in found)


def summary(found: Sequence[Standing]) -> Iterator[str]:
    """By side and language, then those that hold in all languages that there are."""
    for side, averages in SIDES.items():
        of_side = [one for one in found if one.side == side]
        languages = list(dict.fromkeys(one.languages for one in of_side))
        for names in languages:
            here = [one for one in of_side if one.languages == names]
            columns = [Quantity(name=average, languages=names).label for average in averages]
            yield f"{', '.join(names)} as {side} language, {no_loss_line(here, columns)}"
        if len(languages) > 1:
            by_model: dict[int, list[Standing]] = {}
            for one in of_side:
                by_model.setdefault(one.model, []).append(one)
            everywhere = [n for n, some in by_model.items() if len(some) == len(languages) and all(one.holds for one in some)]
            lost = {one.model for one in of_side if one.losses}
            untested = dict.fromkeys(one.model for one in of_side if one.not_tested and one.model not in lost)
            yield f"as {side} language, in all of these: {_numbers(everywhere) or 'none'}" + (
                f"; not tested: {_numbers(untested)}" if untested else ""
            )


def _numbers(models: Iterable[int]) -> str:
    return ", ".join(f"({number})" for number in models)
