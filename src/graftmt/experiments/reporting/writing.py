"""One report: tables as Markdown and LaTeX, figures, the page that opens it all, and all numbers for scripts. Layer 7.

`result_files` reads the files, `kept_texts` the translations, and `selection` chooses among them. `cells` finds what belongs
in a cell, `paper_tables` lays the tables out, `markdown`, `latex` and `figures` write them, `content`, `agreement` and
`against_best` say what they come to, `beyond` has tables of our own recipes, and `front_page` is the page that opens it all.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from graftmt.documents import read_json, write_json
from graftmt.errors import ConfigError, first_few
from graftmt.evaluation import Metric
from graftmt.experiments import definitions
from graftmt.experiments.profiles import Profile
from graftmt.experiments.reporting.content import Report, choose, document, make_report, trade_offs
from graftmt.experiments.reporting.figures import Drawn, draw_figure
from graftmt.experiments.reporting.front_page import front_page
from graftmt.experiments.reporting.kept_texts import TRANSLATIONS, store_translations
from graftmt.experiments.reporting.kept_translations import Kept, write_comparisons
from graftmt.experiments.reporting.latex import latex_table
from graftmt.experiments.reporting.markdown import markdown_table
from graftmt.experiments.reporting.result_files import COMPARISONS, SCORES, ResultFile, experiments_folder
from graftmt.experiments.reporting.selection import select_results
from graftmt.experiments.reporting.stored_translations import ENDING, stored_files
from graftmt.experiments.reporting.trade_off import draw_trade_offs
from graftmt.files import write_text
from graftmt.places import REPORT, check_outside_models, check_place

RESULTS = "results"
"""The result files, where the report is in another folder."""


def write_report(
    folder: Path,
    output: Path,
    *,
    profile: str | None = None,
    settings: Profile | None = None,
    tables: Sequence[int] | None = None,
    figures: Sequence[int] | None = None,
    metric: Metric = "chrf",
    translations: bool = True,
) -> tuple[Report, list[Path]]:
    """Reads the results in `folder` and writes README.md, table-NN.md and .tex, figure-N.png and results.json to `output`.

    Outside of the experiments' own folder it also gets the result files, what was tested, and the translations unless these
    are not wanted: it can be made again from itself.
    """
    chosen = choose("--figures", figures, definitions.figures())
    experiments = experiments_folder(folder)
    selected = select_results(folder, profile, settings)
    copied = not output.resolve().is_relative_to(experiments)
    check_outside_models(output, itself=True)
    if copied:
        check_place(output, REPORT)
        _check_place(output, selected.files)
        _check_translations(output / TRANSLATIONS, translations)
    places = (experiments, output)
    kept = Kept(*(place / TRANSLATIONS for place in places), remembered=[place / COMPARISONS for place in places])
    kept.texts.check()
    report = make_report(selected.results, kept, tables=tables, metric=metric, left_out=selected.left_out)
    drawn, headline = _draw(report, chosen, output)
    written = []
    for table in report.tables:
        for suffix, text in (("md", markdown_table(table)), ("tex", latex_table(table))):
            written.append(output / f"table-{table.number:02}.{suffix}")
            write_text(written[-1], text)
    written += [path for path in (headline, *(figure.path for figure in drawn)) if path is not None]
    if copied:
        write_comparisons(output / COMPARISONS, kept)  # first: it marks the results next to it as a report's
        for file in selected.files:
            write_json(output / RESULTS / file.path.name, file.document)
        written += [output / COMPARISONS, output / RESULTS]
        if translations and store_translations(output / TRANSLATIONS, selected.results, kept.texts):
            written.append(output / TRANSLATIONS)
    here = {name for name, one in ((RESULTS, "*.json"), (TRANSLATIONS, f"*{ENDING}")) if any((output / name).glob(one))}
    write_text(output / "README.md", front_page(report, drawn, headline, here=here))
    write_json(output / SCORES, document(report))
    return report, [output / "README.md", output / SCORES, *written]


def _check_place(output: Path, files: Sequence[ResultFile]) -> None:
    """Result files there are an earlier report's, of the same profile, and all among those that come: nothing is lost."""
    there = output / RESULTS
    if not there.is_dir():
        return
    way_out = "Give another --output"
    if not (output / COMPARISONS).is_file():
        raise ConfigError(f"{there} was not made by a report, and its files would be replaced. {way_out}.")
    profile = str(files[0].document.get("profile") or "")
    before = {path.name: read_json(path, "a result").get("profile") for path in sorted(there.glob("*.json"))}
    others = sorted({str(one) for one in before.values()} - {profile})
    if others:
        raise ConfigError(f"{there} has results of {', '.join(others)}, and these are of {profile}. {way_out}.")
    more = [name for name in before if name not in {file.path.name for file in files}]
    if more:
        raise ConfigError(
            f"{there} has results that would not be in the report: {first_few(more)}. Copy them to "
            f"{files[0].path.parent} to have them in it, or delete them. {way_out} to leave them as they are."
        )


def _check_translations(there: Path, wanted: bool) -> None:
    if not wanted and stored_files(there):
        raise ConfigError(f"{there} has translations, and --no-translations wants none. Delete them, or give another --output.")


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
