"""The result files of the experiments, one a job, read for reports. Layer 7."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from graftmt.errors import ConfigError, DataError
from graftmt.files import read_json

Kind = Literal["model", "composition", "pivot", "size"]
Metric = Literal["bleu", "chrf"]
METRICS: tuple[Metric, ...] = ("bleu", "chrf")
METRIC_NAMES: dict[Metric, str] = {"bleu": "BLEU", "chrf": "chrF"}


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Of one direction; `off_target` is a share from 0 to 1, None where it was not judged."""

    bleu: float
    chrf: float
    off_target: float | None = None
    lines: int | None = None


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one job found, or why it failed."""

    job: str
    kind: Kind
    profile: str
    model: int | None = None
    source: int | None = None
    target: int | None = None
    languages: tuple[str, ...] = ()
    seed: int = 1
    lines: int | None = None
    """Of the training corpus, where a `size` job limits them."""
    plus: str | None = None
    """A component more than the model's own recipe has."""
    base: int | None = None
    base_fingerprint: str | None = None
    base_averages: Mapping[str, Mapping[str, Scores]] = field(default_factory=dict)
    scores: Mapping[str, Mapping[str, Scores]] = field(default_factory=dict)
    """Split → direction → scores."""
    averages: Mapping[str, Mapping[str, Scores]] = field(default_factory=dict)
    """Split → the paper's name of an average → scores; for jobs that keep no directions."""
    curve: tuple[Mapping[str, float], ...] = ()
    """`step`, and the chrF of each direction that was validated then."""
    bleu_curve: tuple[Mapping[str, float], ...] = ()
    parameters: int | None = None
    steps: int | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    tokenizers: tuple[str, ...] = ()
    """BLEU's, from the signatures."""
    machine: str | None = None
    verified: Mapping[str, bool] = field(default_factory=dict)
    failed: str | None = None
    superseded: bool = False
    """Kept from before its base was trained again."""
    file: Path = Path()
    """That it was read from."""

    @property
    def training_seconds(self) -> float | None:
        """Back-translation is part of what a pack costs."""
        return self.seconds["training"] + self.seconds.get("augmentation", 0.0) if "training" in self.seconds else None

    @property
    def seconds_per_thousand_lines(self) -> float | None:
        lines = sum(score.lines or 0 for split in self.scores.values() for score in split.values())
        return 1000 * self.seconds["evaluation"] / lines if lines and "evaluation" in self.seconds else None


def results_folder(folder: Path) -> Path:
    """The folder of the result files, given itself or the one of the experiments."""
    return folder / "results" if (folder / "results").is_dir() else folder


def experiments_folder(folder: Path) -> Path:
    """What has the result files in it and, where they were kept, translations: itself given, or its `results`."""
    inside = results_folder(folder).resolve()
    return inside.parent if inside.name == "results" else inside


SCORES, COMPARISONS = "results.json", "comparisons.json"
"""JSON files of a report, which are no results where it lies among them: all numbers, and what was tested."""


def read_results(folder: Path, profile: str | None = None) -> list[Result]:
    """All results of one profile; without its name there must be only one."""
    inside = results_folder(folder)
    named = (path for path in inside.glob("*.json") if path.name not in (SCORES, COMPARISONS))
    files = sorted(path for path in named if not path.name.startswith("."))
    found = [_result(read_json(path, "a result"), path) for path in files]
    if not found:
        raise DataError(f"there are no results in {inside}; make some with `graftmt experiment run`, or check --results.")
    profiles = sorted({result.profile for result in found})
    if profile is None and len(profiles) > 1:
        raise ConfigError(f"{inside} has results of {', '.join(profiles)}; say which: graftmt experiment report NAME.")
    chosen = [result for result in found if profile in (None, result.profile)]
    if not chosen:
        raise ConfigError(f"{inside} has no results of profile {profile!r}; it has those of {', '.join(profiles)}.")
    return chosen


def _result(document: Mapping[str, Any], path: Path) -> Result:
    try:
        base = document.get("base") or {}
        scores = document.get("scores") or {}
        return Result(
            job=document["job"],
            kind=document["kind"],
            profile=document.get("profile") or "",
            model=document.get("model"),
            source=document.get("source"),
            target=document.get("target"),
            languages=tuple(document.get("languages") or ()),
            seed=document.get("seed") or 1,
            lines=document.get("lines"),
            plus=document.get("plus"),
            base=base.get("id") if base else _base_in(document["job"]),
            base_fingerprint=base.get("fingerprint"),
            base_averages=_splits(base.get("scores") or {}, "averages"),
            scores=_splits(scores, "directions"),
            averages=_splits(scores, "averages"),
            curve=tuple(_numbers(point) for point in document.get("curve") or ()),
            bleu_curve=tuple({"step": p["step"], **_numbers(p["bleu"])} for p in document.get("curve") or () if p.get("bleu")),
            parameters=document.get("parameters"),
            steps=document.get("steps"),
            seconds=_numbers(document.get("seconds") or {}),
            tokenizers=tuple(sorted(set(_tokenizers(scores)))),
            machine=_line(document.get("machine")),
            verified={key: value for key, value in (document.get("verified") or {}).items() if isinstance(value, bool)},
            failed=document.get("failed") or None,
            superseded=".base-" in path.name,
            file=path,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        problem = f"has no {error}" if isinstance(error, KeyError) else f"is not what was expected ({error})"
        raise DataError(f"the result {path} {problem}; it is no job's result, or it was cut off: run that job again.") from None


def _base_in(job: str) -> int | None:
    """A job that failed has no base yet; its name says which one, where that is not its model's own."""
    match = re.search(r"-on(\d+)(-|$)", job)
    return int(match[1]) if match else None


def _splits(scores: Mapping[str, Any], part: str) -> dict[str, dict[str, Scores]]:
    return {
        split: {name: _scores(figures) for name, figures in (found.get(part) or {}).items()}
        for split, found in scores.items()
        if isinstance(found, Mapping)
    }


def _scores(figures: Mapping[str, Any]) -> Scores:
    off_target = figures.get("off_target")
    if isinstance(off_target, Mapping):  # as `graftmt evaluate` writes it
        off_target = off_target.get("rate")
    lines = figures.get("lines")
    for value in (figures["bleu"], figures["chrf"], *(one for one in (off_target, lines) if one is not None)):
        if not isinstance(value, int | float):
            raise TypeError(f"{value!r} is no number")
    return Scores(bleu=figures["bleu"], chrf=figures["chrf"], off_target=off_target, lines=lines)


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {key: float(value) for key, value in values.items() if isinstance(value, int | float)}


def _tokenizers(value: Any) -> Iterator[str]:
    """What stands after `tok:` in sacreBLEU's signatures, wherever these are."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _tokenizers(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _tokenizers(inner)
    elif isinstance(value, str):
        yield from re.findall(r"\btok:([^|]+)", value)


def _line(value: Any) -> str | None:
    if isinstance(value, Mapping):
        return ", ".join(inner if isinstance(inner, str) else f"{key} {inner}" for key, inner in value.items() if inner)
    return None if value is None else str(value)
