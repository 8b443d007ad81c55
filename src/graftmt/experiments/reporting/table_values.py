"""A table of a report as values, which Markdown and LaTeX are written from, and how figures are written in it. Layer 7."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graftmt.experiments.reporting.cells import Quantity, Spread
from graftmt.experiments.reporting.result_files import Result

DASH = "–"


@dataclass(frozen=True, kw_only=True)
class Field:
    """One cell as text, with the numbers of its footnotes."""

    text: str
    bold: bool = False
    notes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Heading:
    name: str
    group: str = ""
    """The paper's column that it is part of."""
    text: bool = False
    """Words rather than figures: set to the left."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A table of one language, or of one split."""

    title: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Field, ...], ...]
    rules: frozenset[int]
    """Rows above which the paper has a line."""
    footnotes: tuple[str, ...]
    """Counted from 1."""
    remarks: tuple[str, ...]
    run: int
    """Rows that have our score."""


@dataclass(frozen=True, kw_only=True)
class ReportTable:
    number: int
    label: str
    title: str
    blocks: tuple[Block, ...]


def millions(count: int) -> str:
    """2.13M, 21.0M, 193M: three digits, as the paper prints them."""
    number = count / 1e6
    return f"{number:.{2 if number < 10 else 1 if number < 100 else 0}f}M"


def updates_text(results: Iterable[Result]) -> str:
    """How many updates the models were trained for, each number once."""
    steps = sorted({result.steps for result in results if result.steps is not None})
    return ", ".join(f"{number:,}" for number in steps) or DASH


def spread_text(spread: Spread, seeds: int) -> str:
    return f"{spread.mean:.1f} ± {spread.farthest:.1f}" if seeds > 1 else f"{spread.mean:.1f}"


def describe_directions(quantity: Quantity, directions: Sequence[str]) -> str:
    """`mean over 3 directions, with de, fr, ru`; all of them where that is shorter to say."""
    if directions == (quantity.name,):
        return "as the result file averages it; it has no directions"
    if len(directions) == 1:
        return f"one direction, {directions[0]}"
    partners = sorted({name for direction in directions for name in direction.split("-", 1)} - set(quantity.languages) - {"en"})
    names = ", ".join(partners or sorted({name for direction in directions for name in direction.split("-", 1)}))
    return f"mean over {len(directions)} directions, {'with' if partners else 'between'} {names}"


def counted(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"
