"""The first page of a report: the headline, what it was made with, and where everything else is. Layer 7."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from graftmt.evaluation import METRIC_NAMES
from graftmt.evaluation.significance import LEVEL, MARGIN
from graftmt.experiments import definitions
from graftmt.experiments.definitions import Row, System, is_ours
from graftmt.experiments.profiles import known_profiles, load_profile
from graftmt.experiments.reporting.agreement import Agreement, Checked
from graftmt.experiments.reporting.beyond import summary
from graftmt.experiments.reporting.cells import SIDES, Cell, Quantity, Results, other_directions, usual_directions
from graftmt.experiments.reporting.content import Report, compared_split
from graftmt.experiments.reporting.figures import Drawn
from graftmt.experiments.reporting.markdown import escape
from graftmt.experiments.reporting.table_values import DASH, describe_directions, millions, spread_text, updates_text
from graftmt.packs.component import Side

_SIDE_TABLES: dict[str, dict[Side, tuple[int, ...]]] = {
    "TED": {"source": (2, 10), "target": (3, 14)},  # the second ones have rows that the paper prints in chrF alone
    "ParaCrawl": {"source": (6,), "target": (6,)},
}
_COMPOSED_TABLES = {"TED": 4, "ParaCrawl": 7}


def front_page(report: Report, drawn: Sequence[Drawn], headline: Path | None, *, here: Collection[str] = ()) -> str:
    """`here`: which of result files and translations are in the report's folder."""
    lines = [f"# The paper's experiments, profile {escape(report.profile)}", ""]
    lines += _headline(report)
    if headline is not None:
        lines += [f"![Trained against zero-shot score of each model]({headline.name})", ""]
        lines += ["At most five points of a panel are named; the tables have all. Up and to the right is better.", ""]
        lines += ["Axes differ between our results and the paper's.", ""]
        lines += ["Models on another base than most are left out, and averages of other directions.", ""]
    if report.standings:
        lines += ["## Beyond the paper", "", *_beyond(report), ""]
    lines += ["## What it was made with", "", *_facts(report, here), "", "## Tables", "", *_tables(report), ""]
    if drawn:
        lines += ["## Figures", "", *_figures(drawn)]
    if report.agreements or report.findings:
        lines += ["## Agreement with the paper", "", *_agreement(report)]
    return "\n".join(lines).rstrip() + "\n"


def _headline(report: Report) -> Iterator[str]:
    """One table a side with the rows that were run, the paper's and then ours, in the chosen metric; then pairs of packs."""
    name = METRIC_NAMES[report.metric]
    for corpus, results in report.by_corpus.items():
        language = next((language for language in report.languages if language in results.new), None)
        if language is None:
            continue
        for side, numbers in _SIDE_TABLES[corpus].items():
            quantities = [
                Quantity(name=average, languages=(language,), split=compared_split(corpus, report.metric))
                for average in SIDES[side]
            ]
            notes: list[str] = []
            candidates = [*_rows_of_paper(numbers), *_rows_of_ours(corpus, side)]
            rows = list(_headline_rows(report, results, candidates, quantities, notes))
            if rows:
                first, second = (quantity.label for quantity in quantities)
                yield f"**{language} as {side} language**, {name}: packs train on {first}; {second} is zero-shot, but for"
                yield "re-training and where the name or a note says that there are lines for other languages."
                yield ""
                figures = " | ".join(f"{label}<br>{whose}" for label in (first, second) for whose in ("paper", "ours"))
                yield f"| ID | model | parameters | {figures} | updates | seconds |"
                yield "|---:|:---|---:|---:|---:|---:|---:|---:|---:|"
                yield from rows
                yield ""
                if notes:
                    yield from (f"- <sup>{number}</sup> {escape(note)}" for number, note in enumerate(notes, 1))
                    yield ""
        if others := [one for one in report.languages if one in results.new and one != language]:
            yield f"{language} has the most results. Those of other new languages are in the tables: {', '.join(others)}."
            yield ""
        yield from _headline_compositions(report, corpus, results)


def _rows_of_paper(numbers: Sequence[int]) -> list[Row]:
    """Of these tables, each system once."""
    found: dict[System, Row] = {}
    for number in numbers:
        for row in definitions.tables()[number].rows:
            found.setdefault(row.system, row)
    return list(found.values())


def _rows_of_ours(corpus: str, side: Side) -> list[Row]:
    """Those of the table of our recipes for a side."""
    tables = (one for one in definitions.tables().values() if one.ours and one.corpus == corpus)
    found = (row for one in tables if one.columns[0].name == SIDES[side][0] for row in one.rows)
    return [row for row in found if is_ours(row)]


def _headline_rows(
    report: Report, results: Results, candidates: Sequence[Row], quantities: Sequence[Quantity], notes: list[str]
) -> Iterator[str]:
    """Those that were run or failed; what there is to know of them is added to `notes`."""
    systems = [(row.system, row.languages) for row in candidates]
    found = zip(*(results.cells(systems, quantity) for quantity in quantities), strict=True)
    rows = list(zip(candidates, found, strict=True))
    rows = [(row, cells) for row, cells in rows if any(cell.state != "not run" for cell in cells)]
    usual = [usual_directions(cells[i] for _, cells in rows) for i in range(len(quantities))]
    best = [
        max((_mean(report, cells[i]) for _, cells in rows if results.comparable(cells[i], usual[i])), default=0.0)
        for i in range(len(quantities))
    ]
    for row, cells in rows:
        label = escape(row.label) + (_marks([row.note], notes) if row.note and is_ours(row) else "")
        figures = []
        for number, (quantity, cell) in enumerate(zip(quantities, cells, strict=True)):
            figures.append(_printed(report, row, quantity))
            text = spread_text(cell.scores[report.metric], cell.seeds) if cell.state == "scored" else cell.state
            is_best = cell.state == "scored" and f"{_mean(report, cell):.1f}" == f"{best[number]:.1f}"
            marks = _marks([*cell.notes, *other_directions(cell, usual[number])], notes)
            bold = is_best and results.comparable(cell, usual[number])
            figures.append((f"**{text}**" if bold else text) + marks)
        sizes = sorted({result.parameters for result in cells[0].results if result.parameters})
        seconds = [s for result in cells[0].results if (s := result.training_seconds) is not None and not result.failed]
        spent = f"{sum(seconds) / len(seconds):,.0f}" if seconds else DASH
        size = ", ".join(map(millions, sizes)) or DASH
        steps = updates_text(result for result in cells[0].results if not result.failed)
        yield f"| {row.system.model} | {label} | {size} | {' | '.join(figures)} | {steps} | {spent} |"


def _marks(own: Sequence[str], notes: list[str]) -> str:
    """The numbers of these footnotes; new ones are added to `notes`."""
    notes += [note for note in own if note not in notes]
    return f"<sup>{','.join(str(notes.index(note) + 1) for note in own)}</sup>" if own else ""


def _mean(report: Report, cell: Cell) -> float:
    return cell.scores[report.metric].mean if cell.state == "scored" else 0.0


def _printed(report: Report, row: Row, quantity: Quantity) -> str:
    figure = report.paper.get((row.system, quantity, report.metric))
    return DASH if figure is None else f"{figure:.1f}"


def _headline_compositions(report: Report, corpus: str, results: Results) -> Iterator[str]:
    table = definitions.tables().get(_COMPOSED_TABLES[corpus])
    if table is None:
        return
    quantity = Quantity(name="X→X", languages=table.columns[0].languages, split=compared_split(corpus, report.metric))
    cells = results.cells(((row.system, row.languages) for row in table.rows), quantity)
    rows = [(row, cell) for row, cell in zip(table.rows, cells, strict=True) if cell.state == "scored"]
    if not rows:
        return
    usual = usual_directions(cell for _, cell in rows)
    count = len(quantity.languages)
    yield f"**Between two new languages**, {METRIC_NAMES[report.metric]}, {describe_directions(quantity, usual)}"
    yield f"(the paper's over {count * (count - 1)}, between {_list(quantity.languages)})."
    yield ""
    yield "| source → target | route | paper | ours |"
    yield "|:---|:---|---:|---:|"
    for row, cell in rows:
        system = row.system
        ids = f"({system.model})" if system.model is not None else f"({system.source}) → ({system.target})"
        route = "through English" if system.pivot else "one model" if system.model is not None else "composed"
        fewer = "" if cell.directions == usual else f" ({len(cell.directions)} of {len(usual)} directions)"
        text = spread_text(cell.scores[report.metric], cell.seeds)
        yield f"| {ids} {escape(row.label)} | {route} | {_printed(report, row, quantity)} | {text}{fewer} |"
    yield ""


def _beyond(report: Report) -> Iterator[str]:
    """Which recipes, the paper's own or ours, lose in no column."""
    known = definitions.tables()
    files = ", ".join(f"[Table {t.number}](table-{t.number:02}.md)" for t in report.tables if known[t.number].ours)
    yield "Our recipes, whose numbers begin with 101, and some of the paper's, each against the best of the paper's packs"
    yield f"with English alone, column by column and seed by seed (paired bootstrap, p < {LEVEL:g}): {files}."
    yield f"Undecided: no loss was seen, and one of more than {MARGIN:g} is possible. Tests are not corrected for their number."
    yield ""
    yield from (f"- {escape(line)}" for line in summary(report.standings))


def _facts(report: Report, here: Collection[str]) -> Iterator[str]:
    results = report.results
    done = [result for result in results if not result.failed]
    failed = [result for result in results if result.failed]
    title = f": {load_profile(report.profile).title}" if report.profile in known_profiles() else ""
    yield f"- Profile {escape(report.profile)}{escape(title)}."
    named = "[Results](results)" if "results" in here else "Results"
    yield f"- {named}: {len(done)}; failed jobs: {len(failed)}; seeds: {_list(sorted({result.seed for result in results}))}."
    if "translations" in here:
        yield "- [Translations](translations): one table for each test set and direction, read with `xz -dc FILE`."
    if report.left_out:
        yield f"- Left out, as they are of other settings or another text: {report.left_out}."
    yield f"- Machines: {escape('; '.join(sorted({r.machine for r in done if r.machine})) or 'not recorded')}."
    for (number, fingerprint), count in Counter(_bases(report)).most_common():
        yield f"- Base {DASH if number is None else f'({number})'}: fingerprint `{fingerprint}`, results on it: {count}."
    for corpus, found in report.by_corpus.items():
        others, new = sorted(_others(found)), sorted(found.new)
        yield f"- {corpus}: new languages X are {_list(new)}; /EN averages over {len(others)} others, {_list(others)}"
        yield "  (the paper's over 19)."
    tokenizers = sorted({tokenizer for result in done for tokenizer in result.tokenizers})
    yield f"- BLEU's tokeniser: {_list(tokenizers) or 'not recorded'}; the paper has none on TED, spm on other sets."
    for key in sorted({key for result in done for key in result.verified}):
        checked = [result for result in done if key in result.verified]
        broken = [result.job for result in checked if not result.verified[key]]
        yield f"- Checked: {key.replace('_', ' ')} in {len(checked) - len(broken)} of {len(checked)}" + (
            f"; **not in {escape(_list(broken))}**." if broken else "."
        )
    for result in failed:
        yield f"- Failed: {escape(result.job)}: {escape(result.failed or '')}"
    yield (
        "- BLEU and chrF are from 0 to 100, the paper's chrF too. Seconds: training and back-translation. Bold: our best, "
        "and in the tables also what the paper has bold."
    )


def _bases(report: Report) -> Iterator[tuple[int | None, str]]:
    yield from ((r.base, r.base_fingerprint) for r in report.results if r.base_fingerprint and not r.failed)


def _others(results: Results) -> set[str]:
    """The base's languages, without English, that some average between a new language and others has."""
    names: set[str] = set()
    for result in results.all:
        for pair in result.scores.pairs:
            if len(set(pair) & results.new) == 1:
                names |= {*pair} - results.new - {"en"}
    return names


def _list(items: Sequence[object]) -> str:
    return ", ".join(map(str, items))


def _tables(report: Report) -> Iterator[str]:
    for table in report.tables:
        blocks = ", ".join(f"{block.title or 'base'}: {block.run} of {len(block.rows)} rows" for block in table.blocks)
        files = f"[Markdown](table-{table.number:02}.md), [LaTeX](table-{table.number:02}.tex)"
        yield f"- Table {table.number}, {escape(table.title)}: {files} ({blocks})"
    if report.not_run:
        yield f"- Not run: Tables {_list(report.not_run)}"


def _figures(drawn: Sequence[Drawn]) -> Iterator[str]:
    for figure in drawn:
        if figure.path is None:
            yield f"Figure {figure.number}, {escape(figure.title)}: not run."
        else:
            yield f"![Figure {figure.number}: {escape(figure.title)}]({figure.path.name})"
            yield from ("", *(f"- {escape(note)}" for note in figure.notes))
        yield ""


def _agreement(report: Report) -> Iterator[str]:
    if report.findings:
        yield from _findings(report)
    if report.agreements:
        yield "Kendall's tau between the paper's order of the rows and ours (1: the same, 0: as by chance, -1: reversed);"
        yield "next to it, of the pairs of rows that the paper sets at least a point apart, those that we order alike:"
        yield ""
        yield f"| {' | '.join(AGREEMENT_COLUMNS)} |"
        yield "|---:|:---|:---|:---|---:|---:|---:|"
        yield from (f"| {' | '.join(row)} |" for row in agreement_rows(report.agreements))
        yield ""


def _findings(report: Report) -> Iterator[str]:
    tests = sum(len(found.holds) + len(found.fails) + len(found.undecided) for found in report.findings)
    yield f"The paper's findings in our test {METRIC_NAMES[report.metric]}, as comparisons of two models: the difference with"
    yield "its 95 % interval, and the two-sided p of a paired bootstrap, over the seeds that both have."
    yield ""
    yield "- *holds*: the interval lies on the paper's side."
    yield f"- *does not*: it lies on the other side, or within ±{MARGIN:g}, which is level."
    yield "- *undecided*: it allows both."
    yield "- *untested*: nothing says whether the difference is chance, as no translations were kept or a model was not run."
    yield f"- Tests: {tests}. They are not corrected for their number: of as many without any difference, {LEVEL:.0%} would"
    yield "  have an interval without 0."
    yield ""
    yield "Which comparisons stand for a finding, and how near is as good, is our reading of the paper. Its claims are about"
    yield "Greek and BLEU: the last column has those that its own figures for this language and metric contradict."
    yield ""
    yield f"| {' | '.join(FINDING_COLUMNS)} |"
    yield f"|{':---|' * len(FINDING_COLUMNS)}"
    yield from (f"| {' | '.join(map(escape, row))} |" for row in finding_rows(report.findings))
    yield ""
    seen = {found.finding for found in report.findings}
    missing = [finding.text for finding in definitions.findings() if finding.text not in seen]
    if missing:
        yield f"Untested, as their models were not run: {'; '.join(map(escape, missing))}."
        yield ""


FINDING_COLUMNS = ("finding", "where", "holds", "does not", "undecided", "untested", "not in the paper's own figures")
AGREEMENT_COLUMNS = ("table", "column", "split", "metric", "rows", "tau", "clear pairs alike")


def finding_rows(findings: Sequence[Checked]) -> list[tuple[str, ...]]:
    def lists(found: Checked) -> Iterator[Sequence[object]]:
        yield from (found.holds, found.fails, found.undecided)
        yield [*found.untested, *(f"{text}: not run" for text in found.not_run)]
        yield found.paper_otherwise

    return [
        (found.finding, found.quantity, *("; ".join(map(str, claims)) or DASH for claims in lists(found))) for found in findings
    ]


def agreement_rows(agreements: Sequence[Agreement]) -> list[tuple[str, ...]]:
    return [
        (
            str(a.table),
            a.column,
            a.split,
            METRIC_NAMES[a.metric],
            str(a.rows),
            f"{a.tau:.2f}",
            f"{a.clear_alike} of {a.clear_pairs}",
        )
        for a in agreements
    ]
