"""From results to the cells of the paper's tables: which belong in one, and their mean over directions and seeds. Layer 7.

Results on different bases are never averaged, and seeds only over the same directions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from graftmt.evaluation import METRICS, Metric, Scores, joined
from graftmt.experiments.definitions import Column, Model, System, Table
from graftmt.experiments.reporting.result_files import BySet, Result, by_set
from graftmt.packs.component import Side

PIVOT = "en"
# Source and target of the directions in each average; "/EN" is a language of the base that is not English.
_SIDES = {
    "→EN": ("/EN", "EN"),
    "←EN": ("EN", "/EN"),
    "/EN": ("/EN", "/EN"),
    "X→EN": ("X", "EN"),
    "X→/EN": ("X", "/EN"),
    "EN→X": ("EN", "X"),
    "/EN→X": ("/EN", "X"),
    "X→X": ("X", "X"),
}
SIDES: dict[Side, tuple[str, str]] = {"source": ("X→EN", "X→/EN"), "target": ("EN→X", "/EN→X")}
"""The trained direction of a pack and its zero-shot ones."""

_SUBSTITUTES = {"flores-devtest": "test", "ted2020-valid": "valid"}
"""A profile with one corpus has its own splits only."""


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """What a column shows, apart from the metric."""

    name: str
    languages: tuple[str, ...] = ()
    split: str = "test"

    @classmethod
    def of(cls, column: Column) -> Quantity:
        return cls(name=column.name, languages=column.languages, split=column.split)

    @property
    def label(self) -> str:
        """`EL→/EN` for X→/EN of Greek."""
        return self.name.replace("X", self.languages[0].upper()) if len(self.languages) == 1 else self.name

    def members(self, directions: Iterable[str], new: frozenset[str]) -> tuple[str, ...]:
        """Those of the directions that are averaged; `new` languages that are not X are no part of it."""
        sides = _SIDES.get(self.name)
        if sides is None:  # a single direction
            return tuple(direction for direction in directions if direction == self.name.lower())
        return tuple(d for d in directions if tuple(self._kind(language, new) for language in d.split("-", 1)) == sides)

    def _kind(self, language: str, new: frozenset[str]) -> str:
        return "EN" if language == PIVOT else "X" if language in self.languages else "new" if language in new else "/EN"


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The mean over seeds, and how far the farthest seed is from it."""

    mean: float
    farthest: float = 0.0

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        mean = fmean(values)
        return cls(mean=mean, farthest=max(abs(value - mean) for value in values))


@dataclass(frozen=True, kw_only=True)
class Cell:
    state: Literal["scored", "failed", "not run"]
    scores: Mapping[Metric, Spread]
    off_target: float | None = None
    directions: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    """Those that it is made of."""
    notes: tuple[str, ...] = ()

    @property
    def seeds(self) -> int:
        return len({result.seed for result in self.results}) if self.state == "scored" else 0

    @property
    def base(self) -> tuple[int | None, str | None]:
        return (self.results[0].base, self.results[0].base_fingerprint) if self.results else (None, None)


NOT_RUN = Cell(state="not run", scores={})


def usual_directions(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Those that most of the cells are averages of, of equals the more: others cannot be compared with them."""
    counted = Counter(cell.directions for cell in cells if cell.directions)
    return max(counted, key=lambda directions: (counted[directions], len(directions))) if counted else ()


def other_directions(cell: Cell, usual: Sequence[str]) -> list[str]:
    """A note where the cell is an average of other directions, otherwise nothing."""
    if cell.state != "scored" or cell.directions == usual:
        return []
    count = len(cell.directions)
    names = f": {', '.join(cell.directions)}" if count <= 6 else ""
    return [f"mean over {count} direction{'' if count == 1 else 's'}{names}, where most rows have {len(usual)}"]


class Results:
    """The results with models of one corpus, asked for cells: a language that is new in one may be of the base in another."""

    def __init__(self, results: Sequence[Result], models: Mapping[int, Model], corpus: str) -> None:
        self._models = {number: model for number, model in models.items() if model.corpus == corpus}
        results = [r for r in results if (r.source if r.model is None else r.model) in self._models]
        self.all = tuple(results)
        added = {language for result in results if self._adds(result) for language in result.languages}
        paired = {language for result in results if not self._adds(result) for language in result.languages}
        # Where nothing but bilingual models has them, that the paper adds them is all there is to know.
        self.new = frozenset(added | (paired & {language for model in self._models.values() for language in model.languages}))
        self.main_bases: dict[int | None, str] = {}
        for superseded in (False, True):
            some = [r for r in results if r.superseded == superseded and not r.failed]
            for (number, fingerprint), _ in Counter((r.base, r.base_fingerprint) for r in some).most_common():
                if fingerprint is not None:
                    self.main_bases.setdefault(number, fingerprint)

    def _adds(self, result: Result) -> bool:
        """Whether its languages are new ones; those of a base are its own, and bilingual models have no base."""
        return result.model is None or self._models[result.model].trains not in ("none", "base", "bilingual")

    def cells(self, systems: Iterable[tuple[System, Sequence[str]]], quantity: Quantity) -> list[Cell]:
        """Those of rows to be compared: what was scored in more directions than most is averaged over those of most."""
        found = [(self.cell(system, quantity, languages), system, languages) for system, languages in systems]
        usual = usual_directions(cell for cell, *_ in found)
        return [self.narrowed(cell, usual, system, quantity, languages) for cell, system, languages in found]

    def cell_over(self, directions: Sequence[str], system: System, quantity: Quantity, languages: Sequence[str] = ()) -> Cell:
        """Averaged over these where it has them and more; as it is otherwise."""
        return self.narrowed(self.cell(system, quantity, languages), directions, system, quantity, languages)

    def narrowed(
        self, cell: Cell, directions: Sequence[str], system: System, quantity: Quantity, languages: Sequence[str] = ()
    ) -> Cell:
        """A cell of that system and quantity, over these directions where it has them and more."""
        if not directions or not {*directions} < {*cell.directions}:
            return cell
        narrowed = self.cell(system, quantity, languages, only=frozenset(directions))
        note = f"of its {len(cell.directions)} directions the {len(directions)} that most rows have"
        return replace(narrowed, notes=(*narrowed.notes, note))

    def cell(
        self, system: System, quantity: Quantity, languages: Sequence[str] = (), only: frozenset[str] | None = None
    ) -> Cell:
        """`languages`: what the row's model must have been trained for, where that is not the model's own.

        `only`: the directions that may be averaged, where that is not all there are.
        """
        candidates = self._candidates(system, quantity, languages)
        succeeded = [result for result in candidates if not result.failed]
        failures = tuple(f"{result.job} failed: {result.failed}" for result in candidates if result.failed)
        cell = self._scored(succeeded, quantity, only) or self._of_base(system, quantity)
        if cell is not None:
            return replace(cell, notes=(*cell.notes, *failures))
        failed = tuple(result for result in candidates if result.failed)
        return Cell(state="failed", scores={}, results=failed, notes=failures) if failed else NOT_RUN

    def _candidates(self, system: System, quantity: Quantity, languages: Sequence[str]) -> list[Result]:
        """The results of what a row translates with, for at least one of the languages."""
        found = [result for result in self.all if self._is_of(result, system, quantity)]
        if system.model is None:
            return found
        model = self._models.get(system.model)
        own = model.languages if model else ()
        if quantity.languages:
            found = [r for r in found if not self._adds(r) or not r.languages or set(r.languages) & set(quantity.languages)]
            # A pack for four languages and four packs for one are different models, whatever they share.
            together = 1 if languages else len(own)
            return [r for r in found if len(r.languages) == together] or found
        return [r for r in found if set(r.languages) == set(own)] or found

    def has_split(self, split: str) -> bool:
        return any(result.by_set.get(split) for result in self.all)

    def on_main_base(self, cell: Cell) -> bool:
        number, fingerprint = cell.base
        return fingerprint is None or self.main_bases.get(number) == fingerprint

    def comparable(self, cell: Cell, directions: Sequence[str]) -> bool:
        """Whether it can be compared with an average over these: scored, on the base of most others."""
        return cell.state == "scored" and cell.directions == directions and self.on_main_base(cell)

    def _is_of(self, result: Result, system: System, quantity: Quantity) -> bool:
        if system.model is None:
            kind = "pivot" if system.pivot else "composition"
            same = (result.model, result.source, result.target) == (None, system.source, system.target)
            return same and result.kind == kind and self._on_base(result, system.source, system.initial)
        # Into and out of English there is nothing to pivot.
        direct = not system.pivot or "EN" in _SIDES.get(quantity.name, ())
        kinds = {"pivot"} if system.pivot else set()
        return (
            result.kind in kinds | ({"model"} if direct else set())
            and result.model in self._same(system.model)
            and self._on_base(result, system.model, system.initial)
            and result.plus == system.plus
        )

    def _same(self, number: int) -> tuple[int | None, ...]:
        """A number for "(44) + pivot" trains nothing: its results may be those of (44)."""
        model = self._models.get(number)
        other = model is not None and model.trains == "none" and model.updates is None
        return (number, model.initial) if other and model is not None and model.initial is not None else (number,)

    def _on_base(self, result: Result, number: int | None, initial: int | None) -> bool:
        """Packs of the same recipe on the English-centric base are other models (Tables 18 and 19)."""
        model = None if number is None else self._models.get(number)
        if model is None or model.trains != "pack" or result.base is None:
            return initial is None
        return result.base == (model.initial if initial is None else initial)

    def _scored(self, results: Sequence[Result], quantity: Quantity, only: frozenset[str] | None) -> Cell | None:
        by_base: dict[tuple[int | None, str | None], list[Result]] = {}
        for result in results:
            by_base.setdefault((result.base, result.base_fingerprint), []).append(result)
        cells = {key: cell for key, group in by_base.items() if (cell := self._pooled(group, quantity, only)) is not None}
        if not cells:
            return None
        main = [key for key in cells if key[1] is not None and key[1] == self.main_bases.get(key[0])]
        chosen = main[0] if main else next(iter(cells))
        others = [
            f"also run on the base {short(key[1])}, which is not averaged with this one" for key in cells if key != chosen
        ]
        if not main and chosen[1] and chosen[0] in self.main_bases:
            others.insert(0, f"on another base, {short(chosen[1])}: not to be compared with the rest")
        return replace(cells[chosen], notes=(*cells[chosen].notes, *others))

    def _pooled(self, results: Sequence[Result], quantity: Quantity, only: frozenset[str] | None) -> Cell | None:
        """The mean over directions for each seed, then over seeds; seeds that lack directions others have are left out."""
        seeds: dict[int, dict[str, Scores]] = {}
        used: dict[int, list[Result]] = {}
        for result in results:
            scored = split_of(result.by_set, quantity.split)
            members = quantity.members(scored, self.new)
            figures = {direction: scored[direction] for direction in members if only is None or direction in only}
            if figures:
                seeds.setdefault(result.seed, {}).update(figures)
                used.setdefault(result.seed, []).append(result)
        if not seeds:
            return None
        most = max(map(len, seeds.values()))
        whole = next(frozenset(figures) for figures in seeds.values() if len(figures) == most)
        kept = {seed: figures for seed, figures in sorted(seeds.items()) if frozenset(figures) == whole}
        dropped = sorted(set(seeds) - set(kept))
        notes = [f"seed {', '.join(map(str, dropped))} has other directions and is left out"] if dropped else []
        rows = {seed: joined(figures.values()) for seed, figures in kept.items()}
        return Cell(
            state="scored",
            scores={metric: Spread.of([one.mean(metric) for one in rows.values()]) for metric in METRICS},
            off_target=joined(rows.values()).share("off_target"),
            directions=tuple(sorted(whole)),
            results=tuple(result for seed in kept for result in used[seed]),
            notes=tuple(notes),
        )

    def _of_base(self, system: System, quantity: Quantity) -> Cell | None:
        """A base has no job of its own where it came ready made: each job on it has its scores."""
        if system.model is None or system.pivot:
            return None
        on_it = [r for r in self.all if r.base == system.model and not r.failed]
        on_it.sort(key=lambda r: r.base_fingerprint != self.main_bases.get(r.base))
        for result in on_it:
            average = split_of(by_set(result.base_averages), quantity.split).get(quantity.name)
            if average is not None:
                scores = {metric: Spread.of([average.mean(metric)]) for metric in METRICS}
                return Cell(state="scored", scores=scores, directions=(quantity.name,))
        return None


def split_of(scores: BySet, split: str) -> Mapping[str, Scores]:
    return scores.get(split) or scores.get(_SUBSTITUTES.get(split, split)) or {}


def short(fingerprint: str | None) -> str:
    return f"{fingerprint[:12]}…" if fingerprint and len(fingerprint) > 13 else fingerprint or "without a fingerprint"


PaperFigures = Mapping[tuple[System, Quantity, Metric], float]


def paper_figures(tables: Iterable[Table]) -> PaperFigures:
    """Every figure that the paper prints, chrF from 0 to 100: what a table has in BLEU another may have in chrF."""
    found: dict[tuple[System, Quantity, Metric], float] = {}
    for table in tables:
        for row in table.rows:
            for column, score in zip(table.columns, row.scores, strict=True):
                if score is None or column.metric.endswith("-delta"):
                    continue
                metric: Metric = "chrf" if column.metric == "chrf" else "bleu"
                found.setdefault((row.system, Quantity.of(column), metric), 100 * score if metric == "chrf" else score)
    return found
