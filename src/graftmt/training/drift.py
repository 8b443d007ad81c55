"""Before and after a re-training: what old directions lose and what new ones gain. Layer 4."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graftmt.base import Base
from graftmt.checked import read_checked_json, write_checked_json
from graftmt.configuration import to_mapping
from graftmt.data import Corpus, tokenize_corpus
from graftmt.errors import GraftError
from graftmt.model import Transformer
from graftmt.progress import say
from graftmt.text import TextCodec
from graftmt.training.run_configuration import RetrainConfig
from graftmt.training.training_job import Prepared
from graftmt.training.validation import Validator

Scores = Mapping[str, Mapping[str, float]]
"""Direction → {"loss": …, "bleu": …, "chrf": …}."""


@dataclass(frozen=True)
class Drift:
    """The same validation lines three times: by the base that was, at the start, and by the result."""

    base: Scores
    """Without losses: those of another vocabulary do not compare. Directions of new languages are not here."""
    start: Scores
    """The base's weights under the new vocabulary, before the first step."""
    end: Scores
    new: tuple[str, ...]
    """The directions of new languages."""

    def to_dict(self) -> dict[str, Any]:
        return {
            direction: {
                "new": direction in self.new,
                "base": self.base.get(direction),
                "start": self.start[direction],
                "end": entry,
            }
            for direction, entry in self.end.items()
        }

    def lines(self) -> list[str]:
        """A table for people: chrF, or the loss where nothing was translated."""
        metric = "chrf" if all("chrf" in entry for entry in self.end.values()) else "loss"
        width = max(12, *(len(direction) + 2 for direction in self.end))
        columns = "".join(f"{name:>9}" for name in ("base", "start", "end", "change"))
        lines = [f"{'chrF' if metric == 'chrf' else 'loss':<{width}}    {columns}"]
        groups = {
            "old": [direction for direction in self.end if direction not in self.new],
            "new": [direction for direction in self.end if direction in self.new],
        }
        for kind, directions in groups.items():
            rows = {direction: [scores.get(direction, {}).get(metric) for scores in self._all()] for direction in directions}
            lines += [_row(direction, kind, values, width) for direction, values in rows.items()]
            if len(rows) > 1:
                lines.append(_row("average", kind, [_mean(column) for column in zip(*rows.values(), strict=True)], width))
        return lines

    def _all(self) -> tuple[Scores, Scores, Scores]:
        return self.base, self.start, self.end


def _row(name: str, kind: str, values: Sequence[float | None], width: int) -> str:
    """The change is that against the base where it knows the direction, otherwise against the start."""
    base, start, end = values
    first = start if base is None else base
    change = None if first is None or end is None else end - first
    cells = [*(("–" if value is None else f"{value:.2f}") for value in values), "–" if change is None else f"{change:+.2f}"]
    return f"{name:<{width}}{kind:<4}" + "".join(f"{cell:>9}" for cell in cells)


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if len(numbers) == len(values) else None


def scores_before(
    config: RetrainConfig,
    parent: Base,
    device: str,
    model: Transformer,
    prepared: Prepared,
) -> dict[str, Scores] | None:
    """{"base": …, "start": …}: measured once and kept as before.json, since a resumed run has other weights by then."""
    validator = prepared.validator
    if validator is None:
        return None
    path = config.run / "before.json"
    options: dict[str, Any] = {
        "smoothing": config.stages[0].label_smoothing,
        "precision": config.precision,
        "translate": config.validation.translates,
    }
    asked = json.dumps([parent.fingerprint, config.seed, options, config.data.max_length, to_mapping(config.validation)])
    mark = hashlib.sha256(f"{prepared.data} {asked}".encode()).hexdigest()
    if (stored := _stored(path)) is not None and stored["of"] == mark:
        return {"base": stored["base"], "start": stored["start"]}
    say("validating the base, and its weights under the new vocabulary …")
    found = {"base": {}, "start": validator.validate(model, **options)["directions"]}
    known = [direction for direction in validator.directions if set(direction) <= set(parent.languages)]
    if known and config.validation.translates:
        languages = sorted({language for direction in known for language in direction})
        valid = Corpus.open(config.data.corpus, config.validation.split, languages)
        own = Validator.open(
            valid,
            tokenize_corpus(valid, parent.tokenizer.side("source"), config.data.cache),
            TextCodec(parent.tokenizer),
            known,
            lines=validator.lines,
            translate_lines=validator.translate_lines,
            max_length=validator.max_length,
        )
        scores = own.validate(parent.model.to(device), **options)["directions"]
        found["base"] = {name: {key: entry[key] for key in ("bleu", "chrf")} for name, entry in scores.items()}
    write_checked_json(path, {"of": mark, **found})
    return found


def _stored(path: Path) -> dict[str, Any] | None:
    """What before.json holds; none if it is not there or damaged, for it is measured again then."""
    with suppress(GraftError):
        found = read_checked_json(path, "the scores before training")
        parts = [found.get(part) for part in ("base", "start")]
        if "of" in found and all(
            isinstance(part, dict) and all(isinstance(row, dict) for row in part.values()) for part in parts
        ):
            return found
    return None


def drift_of(before: Mapping[str, Scores] | None, after: Mapping[str, Any] | None, new: Sequence[str]) -> Drift | None:
    """What was measured before, next to the validation of the weights that were kept; `new` names the new directions."""
    return None if before is None or after is None else Drift(before["base"], before["start"], after["directions"], tuple(new))
