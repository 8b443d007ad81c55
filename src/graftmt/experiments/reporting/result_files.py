"""The result files of the experiments, one a job, read for reports; those of all versions. Layer 7.

Format 1 has no hash in its names: a job's name is its key, a test set's its plain name, and a folder has one set of settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypedDict

from graftmt.documents import check_fields, read_json
from graftmt.errors import DataError
from graftmt.evaluation import Scores, joined
from graftmt.experiments.jobs import Job, Proxy
from graftmt.experiments.score_files import from_document, tokenizer_in

Kind = Literal["model", "composition", "pivot", "size"]
BySet = dict[str, dict[str, Scores]]
"""Test set → direction, or name of an average → its rows."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one job found, or why it failed."""

    job: str
    name: str
    """The job's, with a hash of its settings."""
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
    proxy: Proxy | None = None
    """Of `code:proxy`."""
    base: int | None = None
    base_fingerprint: str | None = None
    base_averages: Scores = field(default_factory=Scores)
    """The paper's averages of the base."""
    scores: Scores = field(default_factory=Scores)
    set_names: Mapping[str, str] = field(default_factory=dict)
    """Test set → its name with a hash, by which translations are kept."""
    last_sets: frozenset[str] = frozenset()
    """Test sets that were translated with the weights that training ended with, and not with the best."""
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

    @cached_property
    def by_set(self) -> BySet:
        return by_set(self.scores)

    @property
    def seconds_per_thousand_lines(self) -> float | None:
        lines = sum(self.scores.known("lines"))
        return 1000 * self.seconds["evaluation"] / lines if lines and "evaluation" in self.seconds else None


def by_set(scores: Scores) -> BySet:
    return {name: {rows.directions[0]: rows for rows in scores.select(set=name).by_pair().values()} for name in scores.sets}


def results_folder(folder: Path) -> Path:
    """The folder of the result files, given itself or the one of the experiments."""
    return folder / "results" if (folder / "results").is_dir() else folder


def experiments_folder(folder: Path) -> Path:
    """What has the result files in it and, where they were kept, translations: itself given, or its `results`."""
    inside = results_folder(folder).resolve()
    return inside.parent if inside.name == "results" else inside


class TrainedJob(TypedDict):
    """What a result says of a job that trained a model."""

    kind: Kind
    model: int
    source: int | None
    target: int | None
    initial: int | None
    plus: str | None
    languages: list[str]
    seed: int
    lines: int | None


SCORES, COMPARISONS = "results.json", "comparisons.json"
"""JSON files of a report, which are no results where it lies among them: all numbers, and what was tested."""


@dataclass(frozen=True)
class ResultFile:
    """One of them, as it is stored."""

    path: Path
    document: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.document.get("name") or self.document.get("job"))

    @property
    def is_earlier(self) -> bool:
        """Kept from before its model, or in format 1 its base, was made again."""
        return ".base-" in self.path.name or (self.path.stem != self.name and bool(self.document.get("name")))

    @property
    def base(self) -> dict[str, Any]:
        return self.document.get("base") or {}

    @classmethod
    def read(cls, path: Path) -> ResultFile:
        found = cls(path, read_json(path, "a result"))
        for key in ("job", "kind"):
            if key not in found.document:
                raise found._problem(f"has no {key!r}")
        return found

    def _problem(self, words: str) -> DataError:
        return DataError(f"the result {self.path} {words}; it is no job's result, or it was cut off: run that job again.")

    @property
    def trained_job(self) -> Job:
        """The job that it is of, where that trained a model."""
        try:
            check_fields(self.document, TrainedJob)
        except ValueError as error:
            raise self._problem(f"is not what was expected ({error})") from None
        found = {name: self.document[name] for name in TrainedJob.__required_keys__}
        return Job(**{**found, "languages": tuple(found["languages"])})

    def result(self, *, superseded: bool = False) -> Result:
        """`superseded`: its base has been made again since."""
        try:
            return self._result(superseded)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            words = f"has no {error}" if isinstance(error, KeyError) else f"is not what was expected ({error})"
            raise self._problem(words) from None

    def _result(self, superseded: bool) -> Result:
        document, base = self.document, self.base
        scores, curve = document.get("scores") or {}, document.get("curve") or ()
        rows = _rows(scores, self.name)
        return Result(
            job=document["job"],
            name=self.name,
            kind=document["kind"],
            profile=document.get("profile") or "",
            **{key: document.get(key) for key in ("model", "source", "target", "lines", "plus", "parameters", "steps")},
            languages=tuple(document.get("languages") or ()),
            seed=document.get("seed") or 1,
            proxy=_proxy(document.get("proxy")),
            base=base.get("id") if base else _base_in(document["job"]),
            base_fingerprint=base.get("fingerprint"),
            base_averages=_rows(base.get("scores") or {}, self.name, "averages"),
            scores=rows,
            set_names={one.get("set", name): name for name, one in scores.items()},
            last_sets=frozenset(one.get("set", name) for name, one in scores.items() if _is_last(one)),
            curve=tuple(_numbers(point) for point in curve),
            bleu_curve=tuple({"step": point["step"], **_numbers(point["bleu"])} for point in curve if point.get("bleu")),
            seconds=_numbers(document.get("seconds") or {}),
            tokenizers=tuple(sorted(filter(None, {tokenizer_in(one) for one in rows.signatures("bleu")}))),
            machine=_line(document.get("machine")),
            verified={key: value for key, value in (document.get("verified") or {}).items() if isinstance(value, bool)},
            failed=document.get("failed") or None,
            superseded=superseded or self.is_earlier,
            file=self.path,
        )


def read_files(folder: Path) -> list[ResultFile]:
    """All that a folder has."""
    inside = results_folder(folder)
    named = (path for path in inside.glob("*.json") if path.name not in (SCORES, COMPARISONS))
    found = [ResultFile.read(path) for path in sorted(named) if not path.name.startswith(".")]
    if not found:
        raise DataError(f"there are no results in {inside}; make some with `graftmt experiment run`, or check --results.")
    return found


def _proxy(found: Any) -> Proxy | None:
    """A result has it if its pack takes the code of one."""
    if found is None:
        return None
    distances = {str(language): float(far) for language, far in found["distances"].items()}
    return Proxy(language=str(found["language"]), by=_line(found["by"]), distances=distances)


def _rows(scores: Mapping[str, Any], job: str, part: str = "directions") -> Scores:
    return joined(from_document(one, one.get("set", name), job, part) for name, one in scores.items())


def _is_last(scores: Mapping[str, Any]) -> bool:
    return (scores.get("settings") or {}).get("checkpoint") == "last"


def _base_in(job: str) -> int | None:
    """A job that failed has no base yet; its name says which one, where that is not its model's own."""
    match = re.search(r"-on(\d+)(-|$)", job)
    return int(match[1]) if match else None


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {key: float(value) for key, value in values.items() if isinstance(value, int | float)}


def _line(value: Any) -> str | None:
    if isinstance(value, Mapping):
        return ", ".join(inner if isinstance(inner, str) else f"{key} {inner}" for key, inner in value.items() if inner)
    return None if value is None else str(value)
