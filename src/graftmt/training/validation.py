"""How good a model is while it trains: loss, BLEU and chrF on named directions, and the options of that. Layer 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch

from graftmt.configuration import check_numbers, one_or_more, zero_or_more
from graftmt.data import BatchMaker, Corpus, Direction, TokenizedCorpus
from graftmt.decoding import SearchOptions, search_all
from graftmt.errors import DataError
from graftmt.evaluation import METRICS, score_direction
from graftmt.model import Transformer
from graftmt.text import Codec
from graftmt.training.optimization import smoothed_loss


@dataclass(frozen=True, kw_only=True)
class ValidationConfig:
    """What is looked at while training."""

    split: str = "valid"
    directions: tuple[str, ...] = ()
    """Up to eight English-centric ones unless named."""
    lines: int = 200
    every: int = 1000
    """Steps between validations."""
    metric: Literal["loss", "chrf", "bleu"] = "loss"
    """What the best checkpoint is best in."""
    translate: bool = True
    """Also translate (greedily) for BLEU and chrF; the loss alone is quicker."""
    translate_lines: int | None = None
    """Translate only the first of `lines`; the loss is always of all (default: translate all)."""
    watch: tuple[str, ...] | None = None
    """Directions that are scored next to the others and do not count for the best checkpoint. A pack watches up to
    three that are not trained, or on a few lines (data.few), unless they are named; [] watches none."""

    def __post_init__(self) -> None:
        check_numbers(self, "at least 1, or 0 for no validation", zero_or_more, "lines")
        check_numbers(self, "at least 1", one_or_more, "every", "translate_lines")

    @property
    def translates(self) -> bool:
        """A metric of translations asks for them too."""
        return self.translate or self.metric != "loss"

    def score(self, scores: Mapping[str, Any]) -> float:
        """What the best checkpoint has most of."""
        return float(-scores["loss"] if self.metric == "loss" else scores[self.metric])


@dataclass
class Validator:
    """Validates one set of directions, always the same lines in the same batches."""

    codec: Codec
    corpus: TokenizedCorpus
    texts: dict[str, list[str]]
    directions: list[Direction]
    lines: int
    max_length: int
    batch_tokens: int = 8192
    watched: list[Direction] = field(default_factory=list)
    """Scored too, without counting: directions that training does not see …"""
    watched_model: Transformer | None = None
    """… by this model, where they have another one."""
    translate_lines: int | None = None
    """How many of the lines are translated (default: all)."""

    @classmethod
    def open(
        cls,
        corpus: Corpus,
        tokenized: TokenizedCorpus,
        codec: Codec,
        directions: Sequence[Direction],
        *,
        lines: int,
        max_length: int,
        watched: Sequence[Direction] = (),
        watched_model: Transformer | None = None,
        translate_lines: int | None = None,
    ) -> Validator:
        languages = sorted({language for direction in (*directions, *watched) for language in direction})
        texts = corpus.texts(languages)
        return cls(
            *(codec, tokenized, texts, list(directions), lines, max_length),
            watched=list(watched),
            watched_model=watched_model,
            translate_lines=translate_lines,
        )

    def validate(self, model: Transformer, *, smoothing: float, precision: str, translate: bool) -> dict[str, Any]:
        """{"loss": …, "bleu": …, "chrf": …, "directions": {"en-fr": {…}}}: averages over the directions, and each.

        Where directions are watched, "watched" has their averages.
        """
        other = self.watched_model or model
        model.eval()
        other.eval()
        autocast = torch.autocast(model.device.type, torch.bfloat16, enabled=precision == "bf16")
        # Layers compiled for training run as they are here: other shapes and modes would be compiled anew.
        with torch.inference_mode(), autocast, torch.compiler.set_stance("force_eager"):
            rows = {direction: self._rows(direction) for direction in (*self.directions, *self.watched)}
            scores = {str(d): {"loss": self._loss(other if d in self.watched else model, d, rows[d], smoothing)} for d in rows}
            groups = [(model, self.directions), (other, self.watched)] if other is not model else [(model, list(rows))]
            for each, directions in groups if translate else []:
                for direction, found in self._translate(each, {d: rows[d][: self.translate_lines] for d in directions}).items():
                    scores[str(direction)] |= found
        result = {**_averages(scores, self.directions), "directions": scores}
        return {**result, "watched": _averages(scores, self.watched)} if self.watched else result

    def _rows(self, direction: Direction) -> list[int]:
        """The first lines that have text on both sides."""
        source, target = self.texts[direction.source], self.texts[direction.target]
        both = [row for row, pair in enumerate(zip(source, target, strict=True)) if pair[0].strip() and pair[1].strip()]
        if not both:
            raise DataError(f"the {self.corpus.split!r} split has no line with text on both sides of {direction}.")
        return both[: self.lines]

    def _loss(self, model: Transformer, direction: Direction, rows: list[int], smoothing: float) -> float:
        """Mean loss of a target token; lines too long to train on are too long to validate on."""
        maker = BatchMaker(self.corpus, self.codec)
        lengths = np.maximum(maker.lengths[direction.source][rows], maker.lengths[direction.target][rows])
        kept = [index for index in np.argsort(lengths, kind="stable") if lengths[index] <= self.max_length]
        if not kept:
            raise DataError(
                f"every validation line of {direction} has more than data.max_length = {self.max_length} tokens; raise it, "
                "or validate on shorter lines."
            )
        total, tokens = 0.0, 0
        size = max(1, self.batch_tokens // (int(lengths[kept[-1]]) + 2))
        for start in range(0, len(kept), size):
            part = np.array([rows[index] for index in kept[start : start + size]])
            batch = maker.make([direction] * len(part), part).to(model.device)
            total += float(smoothed_loss(model, batch.source, batch.decoder_input, batch.labels, smoothing))
            tokens += batch.target_tokens
        return total / tokens

    def _translate(self, model: Transformer, rows: dict[Direction, list[int]]) -> dict[Direction, dict[str, float]]:
        """Greedy translations of all directions in one go, so that batches are full; BLEU and chrF of each."""
        sources, prefixes = [], []
        for direction, numbers in rows.items():
            before, after = self.codec.source_prefix(*direction), self.codec.source_suffix(*direction)
            text = self.corpus.texts[direction.source]
            sources += [[*before, *text.line(number)[: self.max_length], *after] for number in numbers]
            prefixes += [self.codec.decoder_prefix(direction.target)] * len(numbers)
        options = SearchOptions(beam=1, batch_tokens=4 * self.batch_tokens)
        searched = search_all(model, sources, prefixes, options, end=self.codec.end_id, forbidden=self.codec.forbidden)
        found = iter(searched)
        scores: dict[Direction, dict[str, float]] = {}
        for direction, numbers in rows.items():
            decode = self.codec.target_tokenizer(direction.target).decode
            hypotheses = [decode(next(found)[0].tokens) for _ in numbers]
            references = [self.texts[direction.target][number] for number in numbers]
            score = score_direction(hypotheses, references, source=direction.source, target=direction.target)
            scores[direction] = {metric: score.mean(metric) for metric in METRICS}
        return scores


def _averages(scores: dict[str, dict[str, float]], directions: Sequence[Direction]) -> dict[str, float]:
    entries = [scores[str(direction)] for direction in directions]
    return {name: sum(entry[name] for entry in entries) / len(entries) for name in entries[0]}
