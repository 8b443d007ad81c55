"""Whether two rows differ by more than chance: paired bootstrap on the translations that were kept. Layer 7."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from graftmt.data.corpus import read_lines
from graftmt.errors import DataError
from graftmt.evaluation import Difference, Resampling, compare_averages, compare_resampled, resample_chrf
from graftmt.evaluation.significance import LEVEL, MARGIN, Resampled
from graftmt.experiments.reporting.cells import Cell
from graftmt.experiments.reporting.result_files import Result
from graftmt.files import read_json, write_json

ROUNDED = 0.002
"""Result files have three digits of a score."""


class NotKept(DataError):
    """A result without its translations."""

    def __init__(self, job: str, direction: str) -> None:
        super().__init__(f"the translations of {job} in {direction} were not kept")
        self.job = job


class Kept:
    """Translations and lines that `experiment run` has kept, resampled once however often they are compared.

    What was compared is remembered, and holds where the translations are gone: a report is copied without them.
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

    def _texts(self, set_name: str, language: str) -> list[str]:
        path = self.folder / "lines" / f"{set_name}.{language}.txt"
        if not path.is_file():
            raise DataError(f"the test set's lines in {language} were not kept")
        return list(read_lines(path))

    def compare(self, first: Cell, second: Cell, seeds: Sequence[tuple[int, int]], split: str) -> tuple[Difference, str]:
        """Two cells of the same directions, averaged over pairs of their seeds; and how it was scored."""
        what = self._what(first, second, seeds, split)
        try:
            compared = [
                compare_resampled(one, two)
                for seed, other in seeds
                for one, two in zip(
                    self._resampled_cell(first, seed, split), self._resampled_cell(second, other, split), strict=True
                )
            ]
        except DataError:
            if what not in self.compared:
                raise
            return self.compared[what]
        self.compared[what] = compare_averages(compared), compared[0].signature
        return self.compared[what]

    def _what(self, first: Cell, second: Cell, seeds: Sequence[tuple[int, int]], split: str) -> str:
        """Jobs and their scores, so that it is known again, and not taken for another's."""
        jobs = [
            (direction, one.name, one.by_set[split][direction].chrf)
            for pair in seeds
            for cell, chosen in zip((first, second), pair, strict=True)
            for direction in cell.directions
            for one in (_of_seed(cell, chosen, direction, split),)
        ]
        return json.dumps([split, self.resampling.resamples, self.resampling.seed, jobs])

    def _resampled_cell(self, cell: Cell, seed: int, split: str) -> list[Resampled]:
        """Its chrF in each direction, on the same draws from the lines that any of them has."""
        results = {direction: _of_seed(cell, seed, direction, split) for direction in cell.directions}
        numbers = {direction: self._lines(one.set_names[split], direction) for direction, one in results.items()}
        place = {line: index for index, line in enumerate(sorted(set().union(*numbers.values())))}
        found = []
        for direction, lines in numbers.items():
            result = results[direction]
            key = (result.name, split, direction, cell.directions)
            if key not in self._resampled:
                places = [place[line] for line in lines]
                self._resampled[key] = self._resample(result, split, direction, lines, places, len(place))
            found.append(self._resampled[key])
        return found

    def _lines(self, set_name: str, direction: str) -> list[int]:
        """Those with text on both sides, from 0."""
        source, target = (self.texts(set_name, language) for language in direction.split("-", 1))
        if len(source) != len(target):
            raise DataError(f"the test set's lines that were kept for {direction} are of two corpora")
        return [line for line, pair in enumerate(zip(source, target, strict=True)) if all(map(str.strip, pair))]

    def _resample(
        self, result: Result, split: str, direction: str, lines: Sequence[int], places: Sequence[int], of: int
    ) -> Resampled:
        path = self.folder / result.name / f"{result.set_names[split]}.{direction}.txt"
        if not path.is_file():
            raise NotKept(result.job, direction)
        translations = list(read_lines(path))
        if len(translations) != len(lines):
            raise DataError(
                f"of {result.job} in {direction} {len(translations):,} translations were kept, where the test set has "
                f"{len(lines):,} lines (evaluation.keep_lines)"
            )
        text = self.texts(result.set_names[split], direction.split("-", 1)[1])
        found = resample_chrf(translations, [text[line] for line in lines], resampling=self.resampling, lines=places, of=of)
        scored = result.by_set[split][direction].chrf
        if abs(found.score - scored) > ROUNDED:  # of an earlier base, or of other lines
            raise DataError(
                f"the translations that are kept of {result.job} in {direction} have chrF {found.score:.2f}, its result "
                f"{scored:.2f}: they are not those that were scored"
            )
        return found


def _of_seed(cell: Cell, seed: int, direction: str, split: str) -> Result:
    """The result that a cell's score in a direction is of."""
    found = (result for result in cell.results if result.seed == seed and direction in result.by_set.get(split, ()))
    result = next(found, None)
    if result is None:
        raise DataError(f"there is no score in {direction} with seed {seed}")
    return result


def write_comparisons(path: Path, kept: Kept) -> None:
    """For a report outside the experiment's folder."""
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
            if "sacrebleu_p" not in entry:  # before there were two-sided ones
                entry["sacrebleu_p"], entry["p"] = entry["p"], None
            found[what] = Difference(**entry), signature
        return found
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} has no comparisons of a report ({error}); delete it, and nothing is taken from it.") from None


def how(kept: Kept) -> str:
    """The test in words."""
    return (
        f"chrF, paired bootstrap with {kept.resampling.resamples:,} resamples; the lines drawn are the same for all directions "
        f"of a mean; better and worse: the {1 - LEVEL:.0%} interval does not hold 0; level: it lies within ±{MARGIN:g}; p is "
        "two-sided (–: only the interval was stored), and no test is corrected for the others"
    )
