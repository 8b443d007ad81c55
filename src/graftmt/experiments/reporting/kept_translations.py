"""Whether two rows differ by more than chance: paired bootstrap on the translations that were kept. Layer 7."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from graftmt.documents import read_json, write_json
from graftmt.errors import DataError
from graftmt.evaluation import Difference, Resampling, compare_averages, compare_resampled, resample_chrf
from graftmt.evaluation.significance import LEVEL, MARGIN, Resampled
from graftmt.experiments.reporting.cells import Cell
from graftmt.experiments.reporting.kept_texts import KeptTexts
from graftmt.experiments.reporting.result_files import Result
from graftmt.experiments.reporting.stored_translations import TestLines

ROUNDED = 0.002
"""Result files have three digits of a score."""


class NotKept(DataError):
    """A result without its translations."""

    def __init__(self, job: str, direction: str) -> None:
        super().__init__(f"the translations of {job} in {direction} were not kept")
        self.job = job


class Kept:
    """Translations and lines that `experiment run` or a report has kept, resampled once however often they are compared.

    What was compared is remembered, and holds where the translations are gone: a report may be copied without them.
    """

    def __init__(self, *folders: Path, resampling: Resampling | None = None, remembered: Sequence[Path] = ()) -> None:
        """`folders`: as for `KeptTexts`. `remembered`: the files of comparisons that reports have brought along."""
        self.texts, self.resampling = KeptTexts(*folders), resampling or Resampling()
        self._resampled: dict[tuple[str, str, str, tuple[str, ...]], Resampled] = {}
        self.compared: dict[str, tuple[Difference, str]] = {}
        """What was compared, exactly → the difference, and how it was scored."""
        for path in remembered:
            self.compared |= _remembered(path)

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
            for one in (result_of_seed(cell, chosen, direction, split),)
        ]
        return json.dumps([split, self.resampling.resamples, self.resampling.seed, jobs])

    def _resampled_cell(self, cell: Cell, seed: int, split: str) -> list[Resampled]:
        """Its chrF in each direction, on the same draws from the lines that any of them has."""
        results = {direction: result_of_seed(cell, seed, direction, split) for direction in cell.directions}
        lines = {direction: self.texts.lines(one.set_names[split], direction) for direction, one in results.items()}
        numbers = sorted({number for one in lines.values() for number in one.numbers})
        place = {line: index for index, line in enumerate(numbers)}
        found = []
        for direction, some in lines.items():
            result = results[direction]
            key = (result.name, split, direction, cell.directions)
            if key not in self._resampled:
                places = [place[line] for line in some.numbers]
                self._resampled[key] = self._resample(result, split, direction, some, places, len(place))
            found.append(self._resampled[key])
        return found

    def _resample(
        self, result: Result, split: str, direction: str, lines: TestLines, places: Sequence[int], of: int
    ) -> Resampled:
        translations = scored_translations(self.texts, result, split, direction)
        found = resample_chrf(translations, lines.references, resampling=self.resampling, lines=places, of=of)
        scored = result.by_set[split][direction].chrf
        if abs(found.score - scored) > ROUNDED:  # of an earlier base, or of other lines
            raise DataError(
                f"the translations that are kept of {result.job} in {direction} have chrF {found.score:.2f}, its result "
                f"{scored:.2f}: they are not those that were scored"
            )
        return found


def scored_translations(texts: KeptTexts, result: Result, split: str, direction: str) -> Sequence[str]:
    """One for each line of the test set that has text on both sides."""
    lines = texts.lines(result.set_names[split], direction)
    translations = texts.translations(result.name, result.set_names[split], direction)
    if translations is None:
        raise NotKept(result.job, direction)
    if len(translations) != len(lines.numbers):
        raise DataError(
            f"of {result.job} in {direction} {len(translations):,} translations were kept, where the test set has "
            f"{len(lines.numbers):,} lines (evaluation.keep_lines)"
        )
    return translations


def result_of_seed(cell: Cell, seed: int, direction: str, split: str) -> Result:
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
