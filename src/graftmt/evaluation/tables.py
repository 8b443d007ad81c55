"""A table as a value, rendered for the terminal or as Markdown; and the table of scores. Layer 1."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from graftmt.errors import printable
from graftmt.evaluation.matrix import averages, groups, label
from graftmt.evaluation.metrics import DirectionScores

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


def score_table(
    scores: Sequence[DirectionScores],
    *,
    title: str = "Scores",
    pivot: str = "en",
    new: Collection[str] = (),
    off_target: Mapping[str, float | None] | None = None,
) -> Table:
    """One row per direction in the order given, then the averages of several; the signatures are its notes.

    `off_target`: direction → share of its translations that are in another language, None where that cannot be told; without
    it there is no such column.
    """
    rows = [(score.direction, str(score.lines), f"{score.bleu:.1f}", f"{score.chrf:.1f}") for score in scores]
    shares = [_percent([(off_target or {}).get(score.direction)]) for score in scores]
    members = groups([(score.source, score.target) for score in scores], pivot, new)
    # The mean of one direction would only repeat its row.
    means = {group: average for group, average in averages(scores, pivot, new).items() if average.directions > 1}
    for group, average in means.items():
        name = f"{label(group, pivot)}, mean of {average.directions} directions"
        rows.append((name, "", f"{average.bleu:.1f}", f"{average.chrf:.1f}"))
        shares.append(_percent([(off_target or {}).get(f"{source}-{target}") for source, target in members[group]]))
    columns = [
        Column(name="direction"),
        Column(name="lines", alignment="right"),
        Column(name="BLEU", alignment="right"),
        Column(name="chrF", alignment="right"),
    ]
    if off_target is not None:
        columns.append(Column(name="off-target", alignment="right"))
        rows = [(*row, share) for row, share in zip(rows, shares, strict=True)]  # type: ignore[misc]
    notes = _signature_notes(scores)
    return Table(
        title=title,
        columns=tuple(columns),
        rows=tuple(rows),
        notes=(*notes, f"X: {', '.join(new)}") if any("new" in group for group in means) else notes,
    )


def _percent(shares: Sequence[float | None]) -> str:
    """The mean of the shares that are known."""
    known = [share for share in shares if share is not None]
    return f"{100 * fmean(known):.1f} %" if known else "?"


def _signature_notes(scores: Sequence[DirectionScores]) -> tuple[str, ...]:
    """Each signature once; where directions differ, as Chinese does by its tokeniser, it says whose it is."""
    directions: dict[tuple[str, str], list[str]] = {}
    for score in scores:
        directions.setdefault(("BLEU", score.bleu_signature), []).append(score.direction)
        directions.setdefault(("chrF", score.chrf_signature), []).append(score.direction)
    return tuple(
        f"{metric} {signature}" + ("" if len(names) == len(scores) else f" ({', '.join(names)})")
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
