"""Two evaluations of the same lines: which differences chance would not explain. Layer 5."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graftmt.data import Corpus, Direction, parse_direction
from graftmt.data.line_files import read_lines
from graftmt.documents import read_json
from graftmt.errors import DataError, GraftError, first_few
from graftmt.evaluation import (
    METRIC_NAMES,
    METRICS,
    Column,
    Difference,
    Resampling,
    Table,
    compare_averages,
    compare_systems,
    groups,
)
from graftmt.evaluation.matrix import label
from graftmt.evaluation.scores import default_tokenizer
from graftmt.evaluation.significance import LEVEL, Compared, surviving
from graftmt.workers import pool

FEWEST_DIRECTIONS = 16
"""For which processes of their own are worth starting."""


@dataclass(frozen=True)
class Report:
    """A folder that `graftmt evaluate -o` has filled."""

    folder: Path
    document: dict[str, Any]

    @classmethod
    def open(cls, path: Path) -> Report:
        """The folder, or the report.json in it."""
        folder = path if path.is_dir() else path.parent
        document = read_json(folder / "report.json" if path.is_dir() else path, "the report")
        entries = document.get("directions")
        texts, lists = (document.get("split"), document.get("pivot")), document.get("new", [])
        if (
            not isinstance(entries, dict)
            or not all(map(_is_entry, entries.values()))
            or not all(isinstance(text, str) and "/" not in text for text in (*texts, *entries))
            or not isinstance(lists, list)
            or not all(isinstance(name, str) for name in lists)
            or not isinstance(document.get("tokenize"), str | None)
        ):
            raise GraftError(
                f"{path} is no report that can be compared: make one with `graftmt evaluate … -o FOLDER` of this version."
            )
        return cls(folder, document)

    @property
    def directions(self) -> dict[str, dict[str, Any]]:
        return dict(self.document["directions"])

    def translations(self, name: str, count: int) -> list[str]:
        path = self.folder / f"{self.document['split']}.{name}.txt"
        found = list(read_lines(path))
        if len(found) != count:
            raise DataError(f"{path} has {len(found):,} lines where the report says {count:,}: it was changed since.")
        return found


def _is_entry(entry: Any) -> bool:
    """Whether a direction of a report has what a comparison reads of it."""
    texts = ("reference_text", "source_text", "bleu_signature")
    return isinstance(entry, dict) and type(entry.get("lines")) is int and all(isinstance(entry.get(key), str) for key in texts)


@dataclass(frozen=True)
class Comparison:
    """Two reports, direction by direction and on average."""

    names: tuple[str, str]
    lines: dict[str, int]
    directions: dict[str, dict[str, Difference]]
    """direction → metric → difference"""
    averages: dict[str, dict[str, Difference]]
    """group → metric → difference"""
    members: dict[str, int]
    """group → directions in it"""
    signatures: dict[str, list[str]]
    left_out: dict[str, list[str]]
    """report → directions that the other does not have"""
    pivot: str
    resampling: Resampling

    def to_dict(self) -> dict[str, Any]:
        return {
            "first": self.names[0],
            "second": self.names[1],
            "resamples": self.resampling.resamples,
            "seed": self.resampling.seed,
            "level": LEVEL,
            "signatures": self.signatures,
            "left_out": self.left_out,
            "directions": {
                name: {"lines": self.lines[name], **{metric: _plain(one) for metric, one in found.items()}}
                for name, found in self.directions.items()
            },
            "significant_after_correction": {metric: self.corrected(metric) for metric in METRICS},
            "averages": {
                name: {"directions": self.members[name], **{metric: _plain(one) for metric, one in found.items()}}
                for name, found in self.averages.items()
            },
        }

    def table(self) -> Table:
        """A star where chance does not explain the difference."""
        columns = [Column(name="direction")]
        for metric in METRIC_NAMES.values():
            columns += [Column(name=name, alignment="right") for name in (metric, "Δ", "95 %", "p")]
        rows = [(name, *_cells(found)) for name, found in self.directions.items()]
        rows += [
            (f"{label(group, self.pivot)} ({self.members[group]})", *_cells(found)) for group, found in self.averages.items()
        ]
        fewest, most = min(self.lines.values()), max(self.lines.values())
        notes = [
            f"first → second: {' → '.join(self.names)}; in brackets, how many directions a mean is of",
            f"* significant: the {1 - LEVEL:.0%} interval of the difference does not hold 0; p is two-sided",
            *self._corrected(),
            *(f"{METRIC_NAMES[metric]} {signature}" for metric, found in self.signatures.items() for signature in found),
            *(f"only in {name}: {', '.join(only)}" for name, only in self.left_out.items() if only),
        ]
        title = (
            f"Paired bootstrap on {fewest:,} lines" if fewest == most else f"Paired bootstrap on {fewest:,} to {most:,} lines"
        )
        return Table(title=title, columns=tuple(columns), rows=tuple(rows), notes=tuple(notes))

    def corrected(self, metric: str) -> list[str]:
        """Directions that stay significant when the number of directions is corrected for."""
        return sorted(surviving({name: found[metric] for name, found in self.directions.items()}))

    def _corrected(self) -> Iterator[str]:
        """A note for each metric; of one direction there is nothing to correct."""
        if len(self.directions) < 2:
            return
        for metric in METRICS:
            starred, kept = sum(found[metric].significant for found in self.directions.values()), len(self.corrected(metric))
            yield (
                f"{METRIC_NAMES[metric]}: {starred} of {len(self.directions)} directions have a star; {kept} keep it when "
                "Holm's method corrects for the number of tests"
            )
        smallest = 2 / (self.resampling.resamples + 1)
        if smallest > LEVEL / len(self.directions):
            yield (
                f"with {self.resampling.resamples:,} resamples no p is below {smallest:.4f}, too coarse for that correction: "
                "take more with -n"
            )


def _plain(one: Difference) -> dict[str, Any]:
    return {
        "first": one.first,
        "second": one.second,
        "difference": one.difference,
        "interval": [one.low, one.high],
        "p": one.p,
        "significant": one.significant,
        "sacrebleu_p": one.sacrebleu_p,
    }


def _cells(found: dict[str, Difference]) -> list[str]:
    cells = []
    for metric in METRICS:
        one = found[metric]
        star = "*" if one.significant else " "
        p = "–" if one.p is None else f"{one.p:.3f}"
        cells += [
            f"{one.first:.1f} → {one.second:.1f}",
            f"{one.difference:+.1f}",
            f"{one.low:+.1f} … {one.high:+.1f}",
            f"{p}{star}",
        ]
    return cells


def compare_reports(
    first: Report,
    second: Report,
    *,
    resampling: Resampling,
    tokenize: str | None = None,
    on_direction: Callable[[int], None] | None = None,
) -> Comparison:
    """All directions that both have: over the same lines, and with the same kind of BLEU unless `tokenize` says which."""
    names = str(first.folder), str(second.folder)
    common = [name for name in first.directions if name in second.directions]
    if not common:
        raise DataError(
            f"the reports have no direction in common: {names[0]} has {_some(first.directions)}; {names[1]} has "
            f"{_some(second.directions)}."
        )
    pivot = _same(first, second, "pivot", "--pivot")
    _same(first, second, "split", "--split")
    for name in common:
        _check_same_lines(first, second, name)
        _check_same_bleu(first, second, name, tokenize)
    jobs = _jobs(first, second, common, tokenize or first.document.get("tokenize"))
    compared: dict[str, dict[str, Compared]] = {}
    for name, one in zip(common, _compare(jobs, resampling), strict=True):
        compared[name] = one
        if on_direction is not None:
            on_direction(len(compared))
    of: dict[tuple[str, str], str] = {job.direction: name for name, job in zip(common, jobs, strict=True)}
    new = sorted({name for report in (first, second) for name in report.document.get("new", ())})
    members = groups(of, pivot, new)
    return Comparison(
        names,
        {name: len(job.references) for name, job in zip(common, jobs, strict=True)},
        {name: {metric: found.own for metric, found in one.items()} for name, one in compared.items()},
        {
            group: {metric: compare_averages([compared[of[pair]][metric] for pair in pairs]) for metric in METRICS}
            for group, pairs in members.items()
        },
        {group: len(pairs) for group, pairs in members.items()},
        {metric: sorted({one[metric].signature for one in compared.values()}) for metric in METRICS},
        {
            name: [direction for direction in report.directions if direction not in common]
            for name, report in zip(names, (first, second), strict=True)
        },
        pivot,
        resampling,
    )


@dataclass(frozen=True)
class _Job:
    """One direction, to be compared in any process."""

    direction: Direction
    first: list[str]
    second: list[str]
    references: list[str]
    options: dict[str, Any]


def _jobs(first: Report, second: Report, common: Sequence[str], tokenize: str | None) -> list[_Job]:
    split = str(first.document["split"])
    corpus = Corpus.open(first.folder / "lines", split)
    directions = [parse_direction(name, corpus.languages) for name in common]
    texts = corpus.texts(sorted({language for direction in directions for language in direction}))
    lines = {direction: _lines_of(direction, texts) for direction in directions}
    # The lines that any of the directions has, counted from 0: what a resample draws from.
    place = {line: index for index, line in enumerate(sorted(set().union(*lines.values())))}
    jobs = []
    for name, direction in zip(common, directions, strict=True):
        count = int(first.directions[name]["lines"])
        if len(lines[direction]) != count:
            raise DataError(f"{corpus.folder} has {len(lines[direction]):,} lines for {name} where the report says {count:,}.")
        options = {
            "tokenize": tokenize or default_tokenizer(direction.target),
            "lines": [place[line] for line in lines[direction]],
            "of": len(place),
        }
        references = [texts[direction.target][line] for line in lines[direction]]
        jobs.append(_Job(direction, first.translations(name, count), second.translations(name, count), references, options))
    return jobs


def _lines_of(direction: Direction, texts: dict[str, list[str]]) -> list[int]:
    pairs = zip(texts[direction.source], texts[direction.target], strict=True)
    return [line for line, pair in enumerate(pairs) if all(map(str.strip, pair))]


def _compare(jobs: Sequence[_Job], resampling: Resampling) -> Iterator[dict[str, Compared]]:
    """In order. The processes that do it need no torch."""
    cores = os.cpu_count() or 1
    if len(jobs) < FEWEST_DIRECTIONS or cores < 2:
        for job in jobs:
            yield compare_systems(job.first, job.second, job.references, **job.options, resampling=resampling)
        return
    with pool(min(cores, len(jobs))) as workers:
        futures = [
            workers.submit(compare_systems, job.first, job.second, job.references, **job.options, resampling=resampling)
            for job in jobs
        ]
        for future in futures:
            yield future.result()


def _check_same_lines(first: Report, second: Report, name: str) -> None:
    one, other = first.directions[name], second.directions[name]
    if one["lines"] != other["lines"]:
        problem = f"{one['lines']:,} lines against {other['lines']:,}"
    elif one["reference_text"] != other["reference_text"]:
        problem = "the references differ"
    elif one["source_text"] != other["source_text"]:
        problem = "the source lines differ"
    else:
        return
    raise DataError(
        f"{first.folder} and {second.folder} cannot be compared in {name}: {problem}. Evaluate both on the same split of the "
        "same corpus, with the same --lines."
    )


def _check_same_bleu(first: Report, second: Report, name: str, tokenize: str | None) -> None:
    kinds = [report.directions[name]["bleu_signature"] for report in (first, second)]
    if tokenize is None and kinds[0] != kinds[1]:
        raise DataError(
            f"{first.folder} and {second.folder} have different kinds of BLEU in {name}: {kinds[0]} against {kinds[1]}. Say "
            "which one to compare with --tokenize; translations are kept, so both are scored again."
        )


def _same(first: Report, second: Report, key: str, option: str) -> str:
    one, other = first.document.get(key), second.document.get(key)
    if one != other:
        raise DataError(f"{first.folder} was made with {option} {one}, {second.folder} with {option} {other}: not comparable.")
    return str(one)


def _some(directions: dict[str, Any]) -> str:
    return first_few(list(directions), most=5)
