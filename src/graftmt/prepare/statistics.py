"""What a corpus holds and how training would draw from it: the paper's Tables 8 and 21, for any corpus. Layer 4."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from graftmt.data import Direction, select_directions
from graftmt.data.directions import parse_direction
from graftmt.data.sampling import mixed_probabilities
from graftmt.documents import write_json
from graftmt.errors import ConfigError, DataError
from graftmt.evaluation.plots import plot_matrix
from graftmt.evaluation.tables import Column, Table
from graftmt.files import write_text
from graftmt.places import FILES, check_place
from graftmt.prepare.source import Source
from graftmt.progress import progress


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Line counts of one corpus."""

    name: str
    languages: tuple[str, ...]
    total: int
    """Lines, whatever languages have text there."""
    lines: dict[str, int]
    """Per language, those with text."""
    pairs: dict[tuple[str, str], int]
    """Lines with text in both, for each two languages in the order of `languages`; those without any are left out."""
    words: dict[str, int] = field(default_factory=dict)
    characters: dict[str, int] = field(default_factory=dict)

    def between(self, one: str, other: str) -> int:
        return self.pairs.get((one, other), 0) or self.pairs.get((other, one), 0)

    def pairs_of(self, language: str) -> int:
        """The paper's X-* lines: pairs of this language with all others."""
        return sum(self.between(language, other) for other in self.languages if other != language)

    def pivot_pairs_of(self, language: str, pivot: str) -> int:
        """The paper's X-EN lines: pairs with English; for English itself, with all others."""
        return self.pairs_of(language) if language == pivot else self.between(language, pivot)

    def sizes(self, directions: Iterable[Direction]) -> dict[Direction, int]:
        """The pairs of each direction that has any."""
        sizes = {direction: self.between(*direction) for direction in directions}
        return {direction: size for direction, size in sizes.items() if size}


def count_lines(source: Source, *, text: bool = False) -> Statistics:
    """Reads a corpus once; with `text`, words between spaces and characters are counted too."""
    languages = source.languages
    together: Counter[tuple[bool, ...]] = Counter()
    words, characters = Counter[str](), Counter[str]()
    with progress(f"reading {source.name}", 0) as report:
        for number, line in enumerate(source):
            if number % 10_000 == 0:
                report.update(number, "lines")
            together[tuple(bool(part) and not part.isspace() for part in line)] += 1
            if text:
                for language, part in zip(languages, line, strict=True):
                    words[language] += len(part.split())
                    characters[language] += len(part)
    return Statistics(
        name=source.name,
        languages=languages,
        total=together.total(),
        lines={
            language: sum(count for present, count in together.items() if present[number])
            for number, language in enumerate(languages)
        },
        pairs=_pairs(languages, together),
        words=dict(words),
        characters=dict(characters),
    )


def _pairs(languages: Sequence[str], together: Mapping[tuple[bool, ...], int]) -> dict[tuple[str, str], int]:
    counts: Counter[tuple[str, str]] = Counter()
    for present, count in together.items():
        for pair in combinations([language for language, there in zip(languages, present, strict=True) if there], 2):
            counts[pair] += count
    return dict(sorted(counts.items(), key=lambda item: [languages.index(language) for language in item[0]]))


@dataclass(frozen=True)
class Sampling:
    """How training on these directions draws: with what probability each, and each target language."""

    view: str
    temperature: float
    fixed: dict[Direction, float]
    directions: dict[Direction, float]

    @property
    def targets(self) -> dict[str, float]:
        sums: dict[str, float] = {}
        for direction, probability in self.directions.items():
            sums[direction.target] = sums.get(direction.target, 0.0) + probability
        return sums


def sampling(
    statistics: Statistics,
    view: str,
    *,
    temperature: float,
    fixed: Mapping[Direction, float] | None = None,
    pivot: str = "en",
) -> Sampling:
    """p ∝ lines^(1/T) over the directions of a view; `fixed` ones keep their probability, the others share the rest."""
    sizes = statistics.sizes(select_directions(view, statistics.languages, pivot))
    if not sizes:
        raise DataError(f"{statistics.name} has no line with text on both sides of any direction of {view}.")
    probabilities = mixed_probabilities(sizes, temperature, fixed)
    return Sampling(view, temperature, dict(fixed or {}), dict(zip(sizes, map(float, probabilities), strict=True)))


def parse_fixed(values: Sequence[str], languages: Sequence[str]) -> dict[Direction, float]:
    """`en-el=0.05`, several by commas or by repeating."""
    fixed: dict[Direction, float] = {}
    for item in (item.strip() for value in values for item in value.split(",") if item.strip()):
        name, equals, number = item.partition("=")
        try:
            probability = float(number)
        except ValueError:
            probability = -1.0
        if not equals or not 0 <= probability <= 1:
            raise ConfigError(f"--fixed: {item!r} is not a direction and its probability; write for instance en-el=0.05.")
        direction = parse_direction(name.strip(), languages)
        if direction in fixed:
            raise ConfigError(f"--fixed: {direction} has two probabilities; give it one.")
        fixed[direction] = probability
    return fixed


def language_table(statistics: Statistics, samplings: Sequence[Sampling] = (), *, pivot: str = "en") -> Table:
    """One row per language as in the paper's Tables 8 and 21: most pairs with English first, English itself before all."""
    has_pivot = pivot in statistics.languages
    name = pivot.upper()
    heads = ["lines", *([f"X-{name} lines"] if has_pivot else []), "X-* lines"]
    heads += [f"target prob. ({sample.view}, T={sample.temperature:g})" for sample in samplings]
    heads += [*(["words"] if statistics.words else []), *(["characters"] if statistics.characters else [])]
    targets = [sample.targets for sample in samplings]

    def order(language: str) -> tuple[bool, int, str]:
        pairs = statistics.pivot_pairs_of(language, pivot) if has_pivot else statistics.pairs_of(language)
        return language != pivot, -pairs, language

    rows: list[tuple[str, ...]] = []
    sums = [0, 0, 0]
    for language in sorted(statistics.languages, key=order):
        counts = [
            statistics.lines[language],
            statistics.pivot_pairs_of(language, pivot) if has_pivot else 0,
            statistics.pairs_of(language),
        ]
        sums = [total + count for total, count in zip(sums, counts, strict=True)]
        shares = [f"{target.get(language, 0.0):.3f}" for target in targets]
        rows.append((language, *_cells(counts, has_pivot), *shares, *_text_cells(statistics, [language])))
    ones = [f"{sum(target.values()):.1f}" for target in targets]
    rows.append(("total", *_cells(sums, has_pivot), *ones, *_text_cells(statistics, statistics.languages)))
    columns = (Column(name="language"), *(Column(name=head, alignment="right") for head in heads))
    notes = [f"{statistics.total:,} lines; totals count a pair of languages once each way."]
    for sample in samplings:
        if sample.fixed:
            listed = ", ".join(f"{direction}={probability:g}" for direction, probability in sample.fixed.items())
            notes.append(f"{sample.view}: fixed {listed}; the other directions share the rest by temperature.")
    return Table(title=statistics.name, columns=columns, rows=tuple(rows), notes=tuple(notes))


def _cells(counts: Sequence[int], has_pivot: bool) -> list[str]:
    return [f"{count:,}" for number, count in enumerate(counts) if has_pivot or number != 1]


def _text_cells(statistics: Statistics, languages: Iterable[str]) -> list[str]:
    counts = [counted for counted in (statistics.words, statistics.characters) if counted]
    languages = list(languages)
    return [f"{sum(counted[language] for language in languages):,}" for counted in counts]


def pair_table(statistics: Statistics) -> Table:
    """Lines with text in both, for each two languages (the paper's Table 22 with its hidden columns)."""
    rows = [
        (one, *("–" if one == other else f"{statistics.between(one, other):,}" for other in statistics.languages))
        for one in statistics.languages
    ]
    columns = (Column(name="language"), *(Column(name=language, alignment="right") for language in statistics.languages))
    return Table(title="Line pairs", columns=columns, rows=tuple(rows))


def document(statistics: Statistics, samplings: Sequence[Sampling] = (), *, pivot: str = "en") -> dict[str, Any]:
    """All of it for other programs."""
    languages = {}
    for language in statistics.languages:
        facts = {"lines": statistics.lines[language], "pairs": statistics.pairs_of(language)}
        if pivot in statistics.languages:
            facts["pivot_pairs"] = statistics.pivot_pairs_of(language, pivot)
        if statistics.words:
            facts |= {"words": statistics.words[language], "characters": statistics.characters[language]}
        languages[language] = facts
    return {
        "name": statistics.name,
        "lines": statistics.total,
        "pivot": pivot if pivot in statistics.languages else None,
        "languages": languages,
        "pairs": {f"{one}-{other}": count for (one, other), count in statistics.pairs.items()},
        "sampling": [
            {
                "view": sample.view,
                "temperature": sample.temperature,
                "fixed": {str(direction): probability for direction, probability in sample.fixed.items()},
                "targets": sample.targets,
                "directions": {str(direction): probability for direction, probability in sample.directions.items()},
            }
            for sample in samplings
        ],
    }


def write_statistics(
    folder: Path, statistics: Statistics, samplings: Sequence[Sampling] = (), *, pivot: str = "en"
) -> list[Path]:
    """statistics.md, statistics.json and, where matplotlib is installed, pairs.png and a sampling-VIEW.png for each view."""
    check_place(folder, FILES)
    tables = [language_table(statistics, samplings, pivot=pivot), pair_table(statistics)]
    written = [folder / "statistics.md", folder / "statistics.json"]
    write_text(written[0], "\n".join(table.markdown() for table in tables))
    write_json(written[1], document(statistics, samplings, pivot=pivot))
    if importlib.util.find_spec("matplotlib") is None or not statistics.pairs:
        return written
    largest = max(statistics.pairs.values())
    unit, name = next(
        (unit, name) for unit, name in ((10**6, "millions"), (10**3, "thousands"), (1, "lines")) if largest >= unit
    )
    both_ways = {way: count / unit for pair, count in statistics.pairs.items() for way in (pair, pair[::-1])}
    plot_matrix(folder / "pairs.png", both_ways, title=f"Line pairs ({name})")
    written.append(folder / "pairs.png")
    for sample in samplings:
        path = folder / f"sampling-{''.join(part if part.isalnum() else '-' for part in sample.view)[:60]}.png"
        percent = {(source, target): 100 * probability for (source, target), probability in sample.directions.items()}
        plot_matrix(path, percent, title=f"Sampling of {sample.view}, T={sample.temperature:g} (%)")
        written.append(path)
    return written


def default_views(languages: Sequence[str], pivot: str = "en") -> list[str]:
    """The paper's two stages of training, or the one that a corpus without English allows."""
    centric = "english-centric" if pivot == "en" else f"{pivot}-centric"
    return [*([centric] if pivot in languages else []), "multi-parallel"]
