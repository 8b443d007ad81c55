"""The counters of a run, and state.json of a checkpoint, which holds them. Layer 4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from graftmt.configuration import check_numbers, from_mapping, zero_or_more
from graftmt.documents import read_json
from graftmt.errors import CheckpointError, ConfigError

FORMAT = 1
COUNTERS = ("stage", "step", "best_step", "without_improvement", "target_tokens", "seconds")


@dataclass
class RunState:
    """The counters of a run: all that is needed, with the tensors, to resume as if it had never stopped."""

    stage: int = 0
    step: int = 0
    """Updates done in this stage."""
    best_score: float | None = None
    best_step: int = 0
    without_improvement: int = 0
    target_tokens: int = 0
    seconds: float = 0.0
    """Spent training, over all the commands it took."""
    validations: list[dict[str, Any]] = field(default_factory=list)

    @property
    def best_validation(self) -> dict[str, Any] | None:
        """Of the weights that are kept."""
        best = (self.stage, self.best_step)
        return next((entry for entry in self.validations if (entry.get("stage"), entry.get("step")) == best), None)


def read_state_document(path: Path) -> dict[str, Any]:
    """state.json of a checkpoint, with all its keys and these of their kinds; another format is left to the caller."""
    document = read_json(path / "state.json", "the checkpoint")
    missing = [key for key in ("format", "state", "config", "data") if key not in document]
    if document.get("format") == FORMAT and not missing:
        try:
            missing = _wrong_keys(document)
        except ConfigError as error:
            raise CheckpointError(f"the checkpoint: {path / 'state.json'} is damaged ({error}).") from None
    if missing:
        raise CheckpointError(f"the checkpoint: {path / 'state.json'} is damaged (keys {', '.join(missing)}).")
    return document


def _wrong_keys(document: Mapping[str, Any]) -> list[str]:
    state = document["state"]
    kinds = {"state": dict, "config": dict, "data": str, "marks": dict}
    wrong = [key for key, kind in kinds.items() if not isinstance(document.get(key, kind()), kind)]
    if wrong:
        return wrong
    if missing := sorted({field.name for field in fields(RunState)} ^ state.keys()):
        return missing
    found = from_mapping(RunState, state, "state")
    check_numbers(found, "at least 0", zero_or_more, *COUNTERS)
    stages = document["config"].get("stages")
    if isinstance(stages, list) and 0 < len(stages) <= found.stage:
        return ["state.stage"]
    return [f"state.validations.{number}" for number, entry in enumerate(found.validations) if not is_validation(entry)]


def is_validation(entry: Mapping[str, Any]) -> bool:
    """Whether a validation names its step; scores are numbers, or mappings of such."""
    placed = all(type(entry.get(key, 0)) is int for key in ("stage", "step"))
    watched = entry.get("watched", {})
    figures = [entry.get("loss", 0), entry.get("chrf", 0), *(watched.values() if isinstance(watched, Mapping) else ["damaged"])]
    directions = entry.get("directions", {})
    return placed and all(isinstance(one, int | float) for one in figures) and isinstance(directions, Mapping)
