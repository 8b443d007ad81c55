"""A published report as a page cites it: scores, differences and jobs by number of model and direction. Layer 7."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from graftmt.errors import DataError
from graftmt.evaluation import Difference, Metric, joined, score_bleu, score_chrf
from graftmt.evaluation.scores import default_tokenizer
from graftmt.experiments import definitions
from graftmt.experiments.definitions import System
from graftmt.experiments.reporting.cells import PIVOT, SIDES, Cell, Quantity, Results, paper_figures
from graftmt.experiments.reporting.kept_texts import TRANSLATIONS
from graftmt.experiments.reporting.kept_translations import ROUNDED, Kept, result_of_seed, scored_translations
from graftmt.experiments.reporting.page_claims import ClaimError
from graftmt.experiments.reporting.result_files import COMPARISONS, Result, experiments_folder
from graftmt.experiments.reporting.selection import select_results
from graftmt.experiments.score_files import tokenizer_in

_SYSTEM = re.compile(
    r"(?P<pivot>pivot:)?(?P<model>\d{1,6})(?:\+(?:(?P<target>\d{1,6})|(?P<plus>[a-z][\w:-]*)))?(?:@(?P<base>\d{1,6}))?"
)
_AVERAGES = {"→en": "→EN", "←en": "←EN", "/en": "/EN"}


def parse_system(text: str) -> System:
    """`12`, `14+31` for a composition, `pivot:14+31` through English, `7@3` on another base, `24+code:none`."""
    found = _SYSTEM.fullmatch(text)
    if found is None:
        raise ClaimError(f"{text!r} is no model; expected a number such as 12, or 14+31 for two packs that are combined.")
    model, target, base = (None if found[name] is None else int(found[name]) for name in ("model", "target", "base"))
    for number in (model, target):
        if number is not None and number not in definitions.models():
            raise ClaimError(f"there is no model ({number}); `graftmt recipes` and the report's tables have the numbers.")
    common: dict[str, Any] = {"pivot": bool(found["pivot"]), "initial": base, "plus": found["plus"]}
    return System(source=model, target=target, **common) if target is not None else System(model=model, **common)


class CitedReport:
    """The results of one folder."""

    def __init__(self, folder: Path, *, recompute: bool = False) -> None:
        """`recompute`: scores are computed from the translations, and must be those of the result files."""
        self.folder, self.recompute = folder, recompute
        selected = select_results(folder)
        place = experiments_folder(folder)
        self.documents = {file.name: file.document for file in selected.files}
        results, models = selected.results, definitions.models()
        self.by_corpus = {corpus: Results(results, models, corpus) for corpus in ("TED", "ParaCrawl")}
        self.kept = Kept(place / TRANSLATIONS, remembered=[place / COMPARISONS])
        self._check_texts = cache(self.kept.texts.check)
        """A damaged file is an error, once any is needed, and not the same as one that is not there."""
        self.paper = paper_figures(definitions.tables().values())
        self._computed = cache(self._compute)

    def results_of(self, system: System) -> Results:
        number = system.source if system.model is None else system.model
        assert number is not None, "parse_system gives one"
        return self.by_corpus[definitions.models()[number].corpus]

    def quantity(self, text: str, results: Results, split: str) -> Quantity:
        """`el-en`, `el-/en`, `/en-el`, `x-x` between all new languages; of a base `→en`, `←en`, `/en`."""
        if text in _AVERAGES:
            return Quantity(name=_AVERAGES[text], split=split)
        if text == "x-x":
            return Quantity(name="X→X", languages=tuple(sorted(results.new)), split=split)
        source, _, target = text.partition("-")
        if not source or not target or {source, target} <= {PIVOT, f"/{PIVOT}"}:
            raise ClaimError(f"{text!r} is no direction; expected such as el-en, el-/en, /en-el, →en or x-x.")
        names = {f"/{PIVOT}": "/EN", PIVOT: "EN"}
        new = tuple(language for language in (source, target) if language in results.new | definitions.new_languages("TED"))
        if f"/{PIVOT}" in (source, target) or (PIVOT in (source, target) and new):
            languages = tuple(language for language in (source, target) if language not in names)
            return Quantity(name=f"{names.get(source, 'X')}→{names.get(target, 'X')}", languages=languages, split=split)
        return Quantity(name=text, languages=new, split=split)

    def cell(self, system: System, quantity: Quantity) -> Cell:
        cell = self.results_of(system).cell(system, quantity)
        if cell.state == "failed":
            raise ClaimError(f"{self.folder}: {cell.notes[0] if cell.notes else 'the job failed'}.")
        if cell.state != "scored":
            raise ClaimError(
                f"{self.folder} has no result of {_name(system)} in {quantity.label} ({quantity.split}){self._known()}"
            )
        return cell

    def _known(self) -> str:
        numbers = {result.model for found in self.by_corpus.values() for result in found.all if result.model is not None}
        return f"; it has those of {', '.join(f'({number})' for number in sorted(numbers))}."

    def seeds(self, cell: Cell, seed: int | None) -> list[int]:
        """That one, or all."""
        there = sorted({result.seed for result in cell.results})
        if seed is not None and seed not in there:
            raise ClaimError(f"{self.folder} has no result with seed {seed}; it has {', '.join(map(str, there))}.")
        return there if seed is None else [seed]

    def scores(self, cell: Cell, quantity: Quantity, metric: Metric, seed: int | None = None) -> list[float]:
        """One a seed, each the mean over the directions; of a base without a job of its own, what its packs carry."""
        if not cell.results:
            if self.recompute or seed is not None:
                raise ClaimError(f"{self.folder} has only the average of this base, no result of its own to compute it from.")
            return [cell.scores[metric].mean]
        return [
            fmean(
                self._score(result_of_seed(cell, one, name, quantity.split), quantity.split, name, metric)
                for name in cell.directions
            )
            for one in self.seeds(cell, seed)
        ]

    def off_target(self, cell: Cell, quantity: Quantity, seed: int | None) -> float:
        """The share of translations in a wrong language."""
        chosen = [
            result_of_seed(cell, one, name, quantity.split).by_set[quantity.split][name]
            for one in (self.seeds(cell, seed) if cell.results else ())
            for name in cell.directions
        ]
        share = joined(chosen).share("off_target")
        if share is None:
            raise ClaimError(f"{self.folder} does not have it: the result files have no off-target rate there.")
        return share

    def _score(self, result: Result, split: str, direction: str, metric: Metric) -> float:
        stored = result.by_set[split][direction].mean(metric)
        if self.recompute:
            computed = self._computed(result.file, split, direction, metric)
            if abs(computed - stored) > ROUNDED:
                name = f"the {metric} of {result.job} in {direction}"
                raise ClaimError(
                    f"{self.folder}: {name} is {computed:.3f} by the translations and {stored:.3f} by its result file; one of "
                    "them was replaced."
                )
        return stored

    def _compute(self, file: Path, split: str, direction: str, metric: Metric) -> float:
        (result,) = (one for found in self.by_corpus.values() for one in found.all if one.file == file)
        self._check_texts()
        try:
            translations = scored_translations(self.kept.texts, result, split, direction)
        except DataError as problem:
            raise ClaimError(
                f"{self.folder}: {problem}, so that {result.job} cannot be scored in {direction}. A report has all "
                "translations of packs, and of a base those from and into English; make it again, without --no-translations."
            ) from None
        references = self.kept.texts.lines(result.set_names[split], direction).references
        if metric == "chrf":
            value = score_chrf(translations, references).value
        else:
            signatures = result.by_set[split][direction].signatures("bleu")
            tokenize = tokenizer_in(signatures[0]) if signatures else ""
            target = direction.partition("-")[2]
            value = score_bleu(translations, references, tokenize=tokenize or default_tokenizer(target)).value
        assert value is not None, "sacreBLEU always has a score"
        return value

    def pair(self, first: System, second: System, quantity: Quantity) -> tuple[Cell, Cell]:
        """Both over the same directions."""
        results = self.results_of(first)
        one = self.cell(first, quantity)
        other = results.narrowed(self.cell(second, quantity), one.directions, second, quantity)
        one = results.narrowed(one, other.directions, first, quantity)
        if one.directions != other.directions or one.base != other.base:
            what = "on the same base" if one.base != other.base else "scored in the same directions"
            raise ClaimError(f"{self.folder}: {_name(first)} and {_name(second)} are not {what}, and cannot be compared.")
        return one, other

    def shared_seeds(self, first: Cell, second: Cell, seed: int | None) -> list[int]:
        shared = sorted({*self.seeds(first, seed)} & {*self.seeds(second, seed)})
        if not shared:
            raise ClaimError(f"{self.folder}: the two have no seed in common; claim their scores instead.")
        return shared

    def compared(self, first: Cell, second: Cell, seeds: Sequence[int], split: str) -> Difference:
        """The first less the second, tested; a report may remember the test the other way round."""
        self._check_texts()
        pairs = [(seed, seed) for seed in seeds]
        try:
            return self.kept.compare(second, first, pairs, split)[0]
        except DataError as problem:
            try:
                found, _ = self.kept.compare(first, second, pairs, split)
            except DataError:
                raise ClaimError(f"{self.folder} has no such test: {problem}.") from None
        turned = {"first": found.second, "second": found.first, "low": -found.high, "high": -found.low}
        return Difference(**turned, p=found.p, sacrebleu_p=found.sacrebleu_p)

    def jobs(self, system: System, language: str | None, seed: int | None) -> list[Result]:
        """Those of one language, one a seed."""
        results = self.results_of(system)
        found: dict[str, tuple[Result, ...]] = {}
        for one in (sorted(results.new) or [""]) if language is None else [language]:
            for name in ("→EN", *(name for names in SIDES.values() for name in names)):
                cell = results.cell(system, Quantity(name=name, languages=(one,)))
                if cell.state == "scored" and cell.results:
                    found.setdefault(one, cell.results)
        if not found and system.model is None:
            cell = results.cell(system, Quantity(name="X→X", languages=tuple(sorted(results.new))))
            found = {"": cell.results} if cell.results else {}
        if not found:
            raise ClaimError(
                f"{self.folder} has no result of {_name(system)}{f' for {language}' if language else ''}{self._known()}"
            )
        if len({tuple(one.name for one in group) for group in found.values()}) > 1:
            raise ClaimError(f"{self.folder} has results of {_name(system)} for {', '.join(found)}; name one language.")
        group = next(iter(found.values()))
        chosen = [one for one in group if seed in (None, one.seed)]
        if not chosen:
            raise ClaimError(f"{self.folder} has no result of {_name(system)} with seed {seed}.")
        return chosen


def _name(system: System) -> str:
    name = f"({system.model})" if system.model is not None else f"({system.source}+{system.target})"
    return f"{name}{' through English' if system.pivot else ''}"
