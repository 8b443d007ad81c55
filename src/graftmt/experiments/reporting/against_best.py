"""Whether a recipe loses against the best of the paper's by more than chance. Layer 7.

For each column the best is that of the paper's packs
with English alone that were run, by the mean chrF of its seeds. A seed is compared with the same seed of the best, or with its
first one where it has not been run with that seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from graftmt.errors import DataError
from graftmt.evaluation import Difference
from graftmt.evaluation.significance import MARGIN
from graftmt.experiments.definitions import Model, System, Table
from graftmt.experiments.reporting.cells import SIDES, Cell, Quantity, Results, usual_directions
from graftmt.experiments.reporting.kept_translations import Kept, NotKept
from graftmt.packs.component import Side

Verdict = Literal["better", "level", "undecided", "worse", "the best itself", "not tested"]
"""Undecided: the interval holds 0, and reaches beyond what counts as level."""
NO_LOSS: tuple[Verdict, ...] = ("better", "level", "undecided", "the best itself")


@dataclass(frozen=True, kw_only=True)
class Tested:
    """One row in one column with one seed, against the best of the paper's there."""

    table: int
    model: int
    languages: tuple[str, ...]
    split: str
    average: str
    column: str
    """The average with its language: EL→/EN."""
    seed: int
    against: int | None
    """The number of the best, None where the paper's have not been run."""
    against_seed: int | None = None
    directions: tuple[str, ...] = ()
    chrf: float | None = None
    against_chrf: float | None = None
    difference: float | None = None
    interval: tuple[float, float] | None = None
    """Of the difference, 95 %."""
    p: float | None = None
    verdict: Verdict
    note: str = ""
    """Why it was not tested."""
    signature: str = ""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A row's recipe for one language, over all columns and seeds."""

    table: int
    model: int
    side: Side
    recipe: str
    english_alone: bool
    """Without text in the other languages, back-translated or not."""
    languages: tuple[str, ...]
    seeds: tuple[int, ...]
    losses: tuple[str, ...]
    """Columns in which some seed is significantly worse."""
    undecided: tuple[str, ...]
    """Columns in which some seed may lose more than counts as level: there is no loss that was seen, and none excluded."""
    not_tested: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.losses and not self.not_tested


class Tests:
    """The rows of one table, in the columns of one language."""

    def __init__(
        self, table: Table, quantities: Sequence[Quantity], results: Results, models: Mapping[int, Model], kept: Kept
    ) -> None:
        self.table, self.quantities, self.results, self.kept = table, quantities, results, kept
        self.peers = {quantity: self._peers(quantity, models) for quantity in quantities}
        """Column → the paper's packs that were run, in order of number."""

    def _peers(self, quantity: Quantity, models: Mapping[int, Model]) -> dict[int, Cell]:
        side = _side(quantity.name)
        numbers = [
            number
            for number, model in models.items()
            if model.corpus == self.table.corpus
            and model.trains == "pack"
            and model.side == side
            and not model.ours
            and model.data.english_alone
            and model.data.filtered
        ]
        found = self.results.cells(((System(model=number), ()) for number in numbers), quantity)
        cells = dict(zip(numbers, found, strict=True))
        usual = usual_directions(cells.values())
        return {number: cell for number, cell in cells.items() if cell.results and self.results.comparable(cell, usual)}

    def best(self, quantity: Quantity) -> int | None:
        """By mean chrF; of equals the first."""
        peers = self.peers[quantity]
        return max(peers, key=lambda number: peers[number].scores["chrf"].mean) if peers else None

    def all(self) -> list[Tested]:
        return [tested for row in self.table.rows if row.system.model is not None for tested in self._row(row.system.model)]

    def _row(self, number: int) -> Iterator[Tested]:
        cells = {quantity: self._cell(number, quantity) for quantity in self.quantities}
        seeds = sorted({result.seed for cell in cells.values() if cell.state == "scored" for result in cell.results})
        for seed in seeds:
            for quantity, cell in cells.items():
                yield self._test(number, seed, quantity, cell)

    def _cell(self, number: int, quantity: Quantity) -> Cell:
        """Over the directions of the best of the paper's, where it has those and more."""
        best = self.best(quantity)
        directions = () if best is None else self.peers[quantity][best].directions
        return self.results.cell_over(directions, System(model=number), quantity)

    def _test(self, number: int, seed: int, quantity: Quantity, cell: Cell) -> Tested:
        best = self.best(quantity)
        facts: dict[str, Any] = {
            "table": self.table.number,
            "model": number,
            "languages": quantity.languages,
            "split": quantity.split,
            "average": quantity.name,
            "column": quantity.label,
            "seed": seed,
            "against": best,
            "directions": cell.directions,
        }
        own = next((result for result in cell.results if result.seed == seed and not result.failed), None)
        if own is None or best is None:
            return Tested(**facts, verdict="not tested", note="not run" if own is None else "none of the paper's was run")
        peer = self.peers[quantity][best]
        others = {result.seed: result for result in peer.results}
        other = others.get(seed) or others[min(others)]
        facts["against_seed"] = other.seed
        if number == best:
            return Tested(**facts, verdict="the best itself")
        if cell.base != peer.base:
            return Tested(**facts, verdict="not tested", note=f"on another base than ({best})")
        if cell.directions != peer.directions:
            return Tested(**facts, verdict="not tested", note=f"averages other directions than ({best})")
        try:
            found, signature = self.kept.compare(peer, cell, [(other.seed, seed)], quantity.split)
        except DataError as problem:
            of_this = isinstance(problem, NotKept) and problem.job == own.job
            return Tested(**facts, verdict="not tested", note="its translations were not kept" if of_this else str(problem))
        return Tested(
            **facts,
            chrf=round(found.second, 3),
            against_chrf=round(found.first, 3),
            difference=round(found.difference, 3),
            interval=(round(found.low, 3), round(found.high, 3)),
            p=None if found.p is None else round(found.p, 4),
            verdict=_verdict(found),
            signature=signature,
        )


def _verdict(found: Difference) -> Verdict:
    if found.significant:
        return "better" if found.difference > 0 else "worse"
    return "level" if found.level else "undecided"


def _may_lose(one: Tested) -> bool:
    return one.verdict == "undecided" and one.interval is not None and one.interval[0] < -MARGIN


def _side(average: str) -> Side:
    return next(side for side, names in SIDES.items() if average in names)


def standings(tested: Sequence[Tested], models: Mapping[int, Model]) -> list[Standing]:
    """The recipes of the rows, each for one language."""
    groups: dict[tuple[int, int, tuple[str, ...]], list[Tested]] = {}
    for one in tested:
        groups.setdefault((one.table, one.model, one.languages), []).append(one)
    return [
        Standing(
            table=table,
            model=number,
            side=_side(members[0].average),
            recipe=models[number].recipe or "",
            english_alone=models[number].data.english_alone,
            languages=languages,
            seeds=tuple(sorted({one.seed for one in members})),
            losses=tuple(dict.fromkeys(one.column for one in members if one.verdict == "worse")),
            undecided=tuple(dict.fromkeys(one.column for one in members if _may_lose(one))),
            not_tested=tuple(dict.fromkeys(one.column for one in members if one.verdict not in (*NO_LOSS, "worse"))),
        )
        for (table, number, languages), members in groups.items()
    ]
