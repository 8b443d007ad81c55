"""One report: tables as Markdown and LaTeX, figures, the page that opens it all, and all numbers for scripts. Layer 7.

`results` reads the files, `cells` finds what belongs in a cell, `tables` lays the tables out, `markdown`, `latex` and `figures`
write them, `content`, `agreement` and `significance` say what they come to, `beyond` has the tables of our own recipes, and
`index` is the page that opens it all.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from graftmt.errors import ConfigError, first_few
from graftmt.experiments import definitions
from graftmt.experiments.reporting.content import Report, choose, document, make_report, trade_offs
from graftmt.experiments.reporting.figures import Drawn, draw_figure
from graftmt.experiments.reporting.index import index
from graftmt.experiments.reporting.latex import latex_table
from graftmt.experiments.reporting.markdown import markdown_table
from graftmt.experiments.reporting.results import COMPARISONS, SCORES, Metric, Result, experiments_folder, read_results
from graftmt.experiments.reporting.significance import Kept, write_comparisons
from graftmt.experiments.reporting.trade_off import draw_trade_offs
from graftmt.files import read_json, write_json, write_text
from graftmt.places import REPORT, check_outside_models, check_place

RESULTS = "results"
"""The result files, where the report is not beside them."""


def write_report(
    folder: Path,
    output: Path,
    *,
    profile: str | None = None,
    tables: Sequence[int] | None = None,
    figures: Sequence[int] | None = None,
    metric: Metric = "chrf",
) -> tuple[Report, list[Path]]:
    """Reads the results in `folder` and writes README.md, table-NN.md and .tex, figure-N.png and results.json to `output`.

    Outside of the experiments' own folder it also gets the result files and what was tested, from which it can be made again.
    """
    chosen = choose("--figures", figures, definitions.figures())
    experiments = experiments_folder(folder)
    results = read_results(folder, profile)
    elsewhere = not output.resolve().is_relative_to(experiments)
    check_outside_models(output, itself=True)
    if elsewhere:
        check_place(output, REPORT)
        _check_place(output, results)
    kept = Kept(experiments / "translations", remembered=[experiments / COMPARISONS, output / COMPARISONS])
    report = make_report(results, kept, tables=tables, metric=metric)
    drawn, headline = _draw(report, chosen, output)
    written = []
    for table in report.tables:
        for suffix, text in (("md", markdown_table(table)), ("tex", latex_table(table))):
            written.append(output / f"table-{table.number:02}.{suffix}")
            write_text(written[-1], text)
    written += [path for path in (headline, *(figure.path for figure in drawn)) if path is not None]
    if elsewhere:
        write_comparisons(output / COMPARISONS, kept)  # first: it marks the results beside it as a report's
        for result in results:
            write_text(output / RESULTS / result.file.name, result.file.read_text(encoding="utf-8"))
        written += [output / COMPARISONS, output / RESULTS]
    write_text(output / "README.md", index(report, drawn, headline, beside=(output / RESULTS).is_dir()))
    write_json(output / SCORES, document(report))
    return report, [output / "README.md", output / SCORES, *written]


def _check_place(output: Path, results: Sequence[Result]) -> None:
    """Result files there are an earlier report's, of the same profile, and all among those that come: nothing is lost."""
    there = output / RESULTS
    if not there.is_dir():
        return
    way_out = "Give another --output"
    if not (output / COMPARISONS).is_file():
        raise ConfigError(f"{there} was not made by a report, and its files would be replaced. {way_out}.")
    files = {path.name: read_json(path, "a result").get("profile") for path in sorted(there.glob("*.json"))}
    others = sorted({str(profile) for profile in files.values()} - {results[0].profile})
    if others:
        raise ConfigError(f"{there} has results of {', '.join(others)}, and these are of {results[0].profile}. {way_out}.")
    more = [name for name in files if name not in {result.file.name for result in results}]
    if more:
        raise ConfigError(
            f"{there} has results that would not be in the report: {first_few(more)}. Copy them to "
            f"{results[0].file.parent} to have them in it, or delete them. {way_out} to leave them as they are."
        )


def _draw(report: Report, figures: Sequence[definitions.Figure], output: Path) -> tuple[list[Drawn], Path | None]:
    """The figures and the headline; none where matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        return [], None
    drawn = [
        draw_figure(figure, report.by_corpus[figure.corpus], output / f"figure-{figure.number}.png", report.metric)
        for figure in figures
        if figure.corpus in report.by_corpus
    ]
    for corpus in report.by_corpus:
        panels = trade_offs(report, corpus)
        if panels:
            path = output / "trade-off.png"
            draw_trade_offs(path, panels, "What a pack gains in its trained direction, and what it keeps of the others")
            return drawn, path
    return drawn, None
