"""A table as a value, rendered for the terminal or as Markdown; and the table of scores. Layer 1."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from graftmt.errors import printable
from graftmt.evaluation.matrix import grouped, label
from graftmt.evaluation.scores import METRIC_NAMES, METRICS, Scores

if TYPE_CHECKING:
    from rich.console import Group

Alignment = Literal["left", "center", "right"]

# What Markdown would take for markup is escaped: a cell is plain text. Backslashes too, or `\|` in a cell would end it.
_MARKDOWN_MARKUP = re.compile(r"[\\<*`]")
_MARKDOWN_RULES: dict[Alignment, str] = {"left": ":---", "center": ":---:", "right": "---:"}


@dataclass(frozen=True, kw_only=True)
class Column:
    name: str
    alignment: Alignment = "left"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Cells are plain text, one per column; `notes` are lines that belong under the table, such as signatures."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            assert len(row) == len(self.columns), f"{len(row)} cells in {row}, {len(self.columns)} columns"

    def markdown(self) -> str:
        """A GitHub-flavoured table under its title, the notes as a list below."""
        lines = [f"### {_markdown_text(self.title)}", ""] if self.title else []
        lines.append(_markdown_row([_markdown_cell(column.name) for column in self.columns]))
        lines.append(_markdown_row([_MARKDOWN_RULES[column.alignment] for column in self.columns]))
        lines += [_markdown_row([_markdown_cell(cell) for cell in row]) for row in self.rows]
        if self.notes:
            lines += ["", *(f"- {_markdown_text(note)}" for note in self.notes)]
        return "\n".join(lines) + "\n"

    def rich(self) -> Group:
        """For `rich.print` or a rich console; cells are never read as rich markup, and command no terminal."""
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        def plain(text: str) -> Text:
            return Text(printable(text))

        table = RichTable(title=plain(self.title) if self.title else None)
        for column in self.columns:
            table.add_column(plain(column.name), justify=column.alignment)
        for row in self.rows:
            table.add_row(*map(plain, row))
        # Not as the table's caption, which would be broken to the table's width: signatures are there to be copied.
        return Group(table, *map(plain, self.notes))


def score_table(scores: Scores, *, title: str = "Scores", pivot: str = "en", new: Collection[str] = ()) -> Table:
    """One row per direction in the order given, then the averages of several; the signatures are its notes.

    Off-target rates have a column where they were looked for.
    """
    with_rates = any(row.metric == "off_target" for row in scores)
    rows = [(name, *_figures(scores.select(directions=[name]), with_rates)) for name in scores.directions]
    # The mean of one direction would only repeat its row.
    means = {group: some for group, some in grouped(scores, pivot, new).items() if len(some.pairs) > 1}
    for group, some in means.items():
        _, *figures = _figures(some, with_rates)
        rows.append((f"{label(group, pivot)}, mean of {len(some.pairs)} directions", "", *figures))
    names = ["lines", *METRIC_NAMES.values(), *(["off-target"] if with_rates else [])]
    notes = _signature_notes(scores)
    return Table(
        title=title,
        columns=(Column(name="direction"), *(Column(name=name, alignment="right") for name in names)),
        rows=tuple(rows),
        notes=(*notes, f"X: {', '.join(new)}") if any("new" in group for group in means) else notes,
    )


def _figures(scores: Scores, with_rates: bool) -> list[str]:
    """Lines, BLEU, chrF and perhaps the off-target rate: the mean of those that are known."""
    found = [f"{scores.mean('lines'):.0f}", *(f"{scores.mean(metric):.1f}" for metric in METRICS)]
    rate = scores.share("off_target")
    return [*found, "?" if rate is None else f"{100 * rate:.1f} %"] if with_rates else found


def _signature_notes(scores: Scores) -> tuple[str, ...]:
    """Each signature once; where directions differ, as Chinese does by its tokeniser, it says whose it is."""
    directions: dict[tuple[str, str], list[str]] = {}
    for row in scores:
        if row.signature:
            directions.setdefault((METRIC_NAMES[row.metric], row.signature), []).append(row.direction)
    return tuple(
        f"{metric} {signature}" + ("" if len(names) == len(scores.pairs) else f" ({', '.join(names)})")
        for (metric, signature), names in sorted(directions.items())
    )


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(text: str) -> str:
    return _markdown_text(text).replace("|", r"\|")


def _markdown_text(text: str) -> str:
    return _MARKDOWN_MARKUP.sub(r"\\\g<0>", _one_line(text))


def _one_line(text: str) -> str:
    """Line breaks would end a row."""
    return re.sub(r"[\t\r\n]+", " ", text)
