"""Scores as one long table: a row for each job, test set, direction and metric. Layer 1.

All scores have this form, from the metric to reports. Tables, averages and files are views of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

Metric = Literal["bleu", "chrf"]
METRICS: tuple[Metric, ...] = ("bleu", "chrf")
METRIC_NAMES: dict[str, str] = {"bleu": "BLEU", "chrf": "chrF"}
"""For people."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """One figure. `bleu` and `chrf` go from 0 to 100, `off_target` from 0 to 1, and `lines` counts the lines scored."""

    metric: str
    value: float | None
    """None: it cannot be told."""
    signature: str = ""
    """sacreBLEU's, with which others can compute the same."""
    source: str = ""
    target: str = ""
    set: str = ""
    """The test set."""
    job: str = ""

    @property
    def direction(self) -> str:
        """As `en-fr`; an average over several has its name as its source, and no target."""
        return f"{self.source}-{self.target}" if self.target else self.source


class Scores(tuple[Score, ...]):
    """Rows of the table."""

    def select(self, *, set: str | None = None, directions: Collection[str] | None = None) -> Scores:
        """The rows of a test set, of some directions, or both."""
        return Scores(row for row in self if set in (None, row.set) and (directions is None or row.direction in directions))

    def by_pair(self) -> dict[tuple[str, str], Scores]:
        """(source, target) → the rows of that direction."""
        found: dict[tuple[str, str], list[Score]] = {}
        for row in self:
            found.setdefault((row.source, row.target), []).append(row)
        return {pair: Scores(rows) for pair, rows in found.items()}

    def labelled(self, *, set: str, job: str = "") -> Scores:
        """The same rows as those of a test set and a job."""
        return Scores(replace(row, set=set, job=job) for row in self)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Source and target of each direction, once, in the order of the rows."""
        return list(dict.fromkeys((row.source, row.target) for row in self))

    @property
    def directions(self) -> list[str]:
        return list(dict.fromkeys(row.direction for row in self))

    @property
    def sets(self) -> list[str]:
        return list(dict.fromkeys(row.set for row in self))

    def known(self, metric: str) -> list[float]:
        """The values of a metric that there are, in order."""
        return [row.value for row in self if row.metric == metric and row.value is not None]

    def mean(self, metric: str) -> float:
        """Each direction weighs the same; of one row, its value."""
        return fmean(self.known(metric))

    @property
    def bleu(self) -> float:
        return self.mean("bleu")

    @property
    def chrf(self) -> float:
        return self.mean("chrf")

    def share(self, metric: str) -> float | None:
        """As `mean`, None where nothing is known."""
        return self.mean(metric) if self.known(metric) else None

    def averages(self) -> dict[str, Any]:
        """The means over its directions, and how many these are, for a JSON file."""
        found: dict[str, Any] = {**{metric: self.mean(metric) for metric in METRICS}, "directions": len(self.pairs)}
        return {**found, "off_target": self.share("off_target")} if any(row.metric == "off_target" for row in self) else found

    def signatures(self, metric: str) -> list[str]:
        return sorted({row.signature for row in self if row.metric == metric and row.signature})

    def figures(self, digits: Mapping[str, int] | None = None) -> dict[str, Any]:
        """Metric → value of one direction, for a JSON file; rounded where `digits` says so."""
        rounded = {row.metric: row.value for row in self}
        for metric, count in (digits or {}).items():
            if (value := rounded.get(metric)) is not None:
                rounded[metric] = round(value, count)
        return {metric: int(value) if metric == "lines" and value is not None else value for metric, value in rounded.items()}


def joined(tables: Iterable[Scores]) -> Scores:
    """The rows of several tables in one."""
    return Scores(row for table in tables for row in table)
