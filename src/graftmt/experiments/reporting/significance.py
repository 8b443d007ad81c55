"""Whether two rows differ by more than chance: paired bootstrap on the translations that were kept. Layer 7.

Above all, whether a recipe of ours loses against the best of the paper's. For each column the best is that of the paper's packs
with English alone that were run, by the mean chrF of its seeds. A seed is compared with the same seed of the best, or with its
first one where it has not been run with that seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from graftmt.data.corpus import read_lines
from graftmt.errors import DataError
from graftmt.evaluation import Resampling, compare_averages, compare_resampled, resample_chrf
from graftmt.evaluation.significance import LEVEL, Difference, Resampled
from graftmt.experiments.definitions import Model, System, Table
from graftmt.experiments.reporting.cells import SIDES, Cell, Quantity, Results, usual_directions
from graftmt.experiments.reporting.results import Result
from graftmt.files import read_json, write_json
from graftmt.packs.component import Side

Verdict = Literal["better", "no significant difference", "worse", "the best itself", "not tested"]
NO_LOSS: tuple[Verdict, ...] = ("better", "no significant difference", "the best itself")
ROUNDED = 0.002
"""Result files have three digits of a score."""


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


class NotKept(DataError):
    """A result without its translations."""

    def __init__(self, job: str, direction: str) -> None:
        super().__init__(f"the translations of {job} in {direction} were not kept")
        self.job = job


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
    not_tested: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.losses and not self.not_tested


class Kept:
    """Translations and lines that `experiment run` has kept, resampled once however often they are compared.

    What was compared is remembered, and holds where the translations are gone: a report goes elsewhere without them.
    """

    def __init__(self, folder: Path, resampling: Resampling | None = None, remembered: Sequence[Path] = ()) -> None:
        """`remembered`: the files of comparisons that reports have brought along."""
        self.folder, self.resampling = folder, resampling or Resampling()
        self.texts = cache(self._texts)
        self._resampled: dict[tuple[str, str, str, tuple[str, ...]], Resampled] = {}
        self.compared: dict[str, tuple[Difference, str]] = {}
        """What was compared, exactly → the difference, and how it was scored."""
        for path in remembered:
            self.compared |= _remembered(path)

    def _texts(self, split: str, language: str) -> list[str]:
        path = self.folder / "lines" / f"{split}.{language}.txt"
        if not path.is_file():
            raise DataError(f"the test set's lines in {language} were not kept")
        return list(read_lines(path))

    def compare(self, first: Cell, second: Cell, seed: int, other_seed: int, split: str) -> tuple[Difference, str]:
        """Two cells of the same directions, each with one of its seeds; and how it was scored."""
        what = self._what(first, second, seed, other_seed, split)
        try:
            pairs = zip(self._resampled_cell(first, seed, split), self._resampled_cell(second, other_seed, split), strict=True)
            compared = [compare_resampled(one, two) for one, two in pairs]
        except DataError:
            if what not in self.compared:
                raise
            return self.compared[what]
        self.compared[what] = compare_averages(compared), compared[0].signature
        return self.compared[what]

    def _what(self, first: Cell, second: Cell, seed: int, other_seed: int, split: str) -> str:
        """Jobs and their scores, so that it is known again, and not taken for another's."""
        jobs = [
            (direction, one.job, one.scores[split][direction].chrf)
            for cell, chosen in ((first, seed), (second, other_seed))
            for direction in cell.directions
            for one in (_of_seed(cell, chosen, direction, split),)
        ]
        return json.dumps([split, self.resampling.resamples, self.resampling.seed, jobs])

    def _resampled_cell(self, cell: Cell, seed: int, split: str) -> list[Resampled]:
        """Its chrF in each direction, on the same draws from the lines that any of them has."""
        numbers = {direction: self._lines(split, direction) for direction in cell.directions}
        place = {line: index for index, line in enumerate(sorted(set().union(*numbers.values())))}
        found = []
        for direction, lines in numbers.items():
            result = _of_seed(cell, seed, direction, split)
            key = (result.job, split, direction, cell.directions)
            if key not in self._resampled:
                places = [place[line] for line in lines]
                self._resampled[key] = self._resample(result, split, direction, lines, places, len(place))
            found.append(self._resampled[key])
        return found

    def _lines(self, split: str, direction: str) -> list[int]:
        """Those with text on both sides, from 0."""
        source, target = (self.texts(split, language) for language in direction.split("-", 1))
        if len(source) != len(target):
            raise DataError(f"the test set's lines that were kept for {direction} are of two corpora")
        return [line for line, pair in enumerate(zip(source, target, strict=True)) if all(map(str.strip, pair))]

    def _resample(
        self, result: Result, split: str, direction: str, lines: Sequence[int], places: Sequence[int], of: int
    ) -> Resampled:
        path = self.folder / result.job / f"{split}.{direction}.txt"
        if not path.is_file():
            raise NotKept(result.job, direction)
        translations = list(read_lines(path))
        if len(translations) != len(lines):
            raise DataError(
                f"of {result.job} in {direction} {len(translations):,} translations were kept, where the test set has "
                f"{len(lines):,} lines (evaluation.keep_lines)"
            )
        text = self.texts(split, direction.split("-", 1)[1])
        found = resample_chrf(translations, [text[line] for line in lines], resampling=self.resampling, lines=places, of=of)
        scored = result.scores[split][direction].chrf
        if abs(found.score - scored) > ROUNDED:  # of an earlier base, or of other lines
            raise DataError(
                f"the translations that are kept of {result.job} in {direction} have chrF {found.score:.2f}, its result "
                f"{scored:.2f}: they are not those that were scored"
            )
        return found


def _of_seed(cell: Cell, seed: int, direction: str, split: str) -> Result:
    """The result that a cell's score in a direction is of."""
    found = (result for result in cell.results if result.seed == seed and direction in result.scores.get(split, ()))
    result = next(found, None)
    if result is None:
        raise DataError(f"there is no score in {direction} with seed {seed}")
    return result


def write_comparisons(path: Path, kept: Kept) -> None:
    """For a report that goes elsewhere."""
    entries = [
        {"what": json.loads(what), **asdict(difference), "signature": signature}
        for what, (difference, signature) in sorted(kept.compared.items())
    ]
    write_json(path, {"comparisons": entries})


def _remembered(path: Path) -> dict[str, tuple[Difference, str]]:
    if not path.is_file():
        return {}
    try:
        found = {}
        for entry in read_json(path, "the comparisons of a report")["comparisons"]:
            what, signature = json.dumps(entry.pop("what")), entry.pop("signature")
            found[what] = Difference(**entry), signature
        return found
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} has no comparisons of a report ({error}); delete it, and nothing is taken from it.") from None


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
            found, signature = self.kept.compare(peer, cell, other.seed, seed, quantity.split)
        except DataError as problem:
            of_this = isinstance(problem, NotKept) and problem.job == own.job
            return Tested(**facts, verdict="not tested", note="its translations were not kept" if of_this else str(problem))
        changed: Verdict = "better" if found.difference > 0 else "worse"
        return Tested(
            **facts,
            chrf=round(found.second, 3),
            against_chrf=round(found.first, 3),
            difference=round(found.difference, 3),
            interval=(round(found.low, 3), round(found.high, 3)),
            p=round(found.p, 4),
            verdict=changed if found.significant else "no significant difference",
            signature=signature,
        )


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
            not_tested=tuple(dict.fromkeys(one.column for one in members if one.verdict not in (*NO_LOSS, "worse"))),
        )
        for (table, number, languages), members in groups.items()
    ]


def how(kept: Kept) -> str:
    """The test in words."""
    return (
        f"chrF, paired bootstrap with {kept.resampling.resamples:,} resamples; the lines drawn are the same for all directions "
        f"of a mean; better and worse: p < {LEVEL:g}"
    )
