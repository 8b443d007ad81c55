"""One report: tables as Markdown and LaTeX, figures, the page that opens it all, and all numbers for scripts. Layer 7.

`results` reads the files, `cells` finds what belongs in a cell, `tables` lays the tables out, `markdown`, `latex` and `figures`
write them, `content`, `agreement` and `significance` say what they come to, `beyond` has the tables of our own recipes, and
`index` is the page that opens it all.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from graftmt.experiments import definitions
from graftmt.experiments.reporting.content import Report, choose, document, make_report, trade_offs
from graftmt.experiments.reporting.figures import Drawn, draw_figure
from graftmt.experiments.reporting.index import index
from graftmt.experiments.reporting.latex import latex_table
from graftmt.experiments.reporting.markdown import markdown_table
from graftmt.experiments.reporting.results import Metric, read_results, results_folder
from graftmt.experiments.reporting.significance import Kept, write_comparisons
from graftmt.experiments.reporting.trade_off import draw_trade_offs
from graftmt.files import write_json, write_text

COMPARISONS = "comparisons.json"
"""What was tested on translations, which do not go along."""


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
    experiments = results_folder(folder).parent
    results = read_results(folder, profile)
    kept = Kept(experiments / "translations", remembered=experiments / COMPARISONS)
    report = make_report(results, kept, tables=tables, metric=metric)
    if not output.resolve().is_relative_to(experiments.resolve()):
        for result in results:
            write_text(output / "results" / result.file.name, result.file.read_text(encoding="utf-8"))
        write_comparisons(output / COMPARISONS, kept)
    drawn, headline = _draw(report, chosen, output)
    written = []
    for table in report.tables:
        for suffix, text in (("md", markdown_table(table)), ("tex", latex_table(table))):
            written.append(output / f"table-{table.number:02}.{suffix}")
            write_text(written[-1], text)
    written += [path for path in (headline, *(figure.path for figure in drawn)) if path is not None]
    write_text(output / "README.md", index(report, drawn, headline, beside=(output / "results").is_dir()))
    write_json(output / "results.json", document(report))
    return report, [output / "README.md", output / "results.json", *written]


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
