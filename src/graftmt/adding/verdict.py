"""What became of a pack: scores of trained and zero-shot directions, against a pivot, and samples to judge by. Layer 5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graftmt.base import Base
from graftmt.data import Corpus, Direction
from graftmt.decoding import SearchOptions, batch_tokens_for
from graftmt.packs import Pack
from graftmt.progress import progress
from graftmt.translator import Evaluation, Translator

ZERO_SHOT = 4
"""Directions that were not trained and are scored, unless all are asked for."""
SAMPLES = 10


@dataclass(frozen=True)
class Verdict:
    """`scores`: direction → bleu, chrf, lines, zero_shot and, for zero-shot ones, `pivot` with the scores of that route."""

    split: str
    beam: int
    scores: dict[str, dict[str, Any]]
    samples: list[dict[str, str]]

    def facts(self) -> dict[str, Any]:
        """For the pack's card."""
        return {"scored_on": f"{self.split}, beam {self.beam}", "scores": self.scores, "samples": self.samples}


def judge(
    base: Base,
    pack: Pack,
    corpus: Corpus,
    partners: Sequence[str],
    *,
    lines: int = 200,
    beam: int = 5,
    zero_shot: int = ZERO_SHOT,
    quiet: bool = False,
) -> Verdict:
    """Translates the first lines of a held-out split in every trained direction and some that were not trained."""
    translator = Translator(base, [pack])
    others = [name for name in base.languages if name in corpus.languages and name not in partners]
    trained = [Direction(*_ordered(pack, new, old)) for new in pack.languages for old in partners if old in corpus.languages]
    watched = [Direction(*_ordered(pack, new, old)) for new in pack.languages for old in _spread(others, zero_shot)]
    options = SearchOptions(beam=beam, batch_tokens=batch_tokens_for(base.model.device.type))
    pivot = next((name for name in partners if name in base.languages), None)
    with progress("judging", 0, quiet=quiet) as report:
        found = translator.evaluate(
            corpus, [*trained, *watched], lines=lines, options=options, on_batch=lambda n: report.update(n, "lines")
        )
        through = (
            translator.evaluate(corpus, watched, lines=lines, options=options, pivot=pivot)
            if watched and pivot is not None
            else []
        )
    by_pivot = {evaluation.scores.direction: evaluation for evaluation in through}
    scores = {}
    for evaluation in found:
        name = evaluation.scores.direction
        scores[name] = {
            **_figures(evaluation),
            "zero_shot": Direction(evaluation.scores.source, evaluation.scores.target) in watched,
        }
        if name in by_pivot:
            scores[name]["pivot"] = {"through": pivot, **_figures(by_pivot[name])}
    return Verdict(corpus.split, beam, scores, sample_translations(found, SAMPLES))


def _ordered(pack: Pack, new: str, old: str) -> tuple[str, str]:
    return (new, old) if pack.side == "source" else (old, new)


def _spread(names: Sequence[str], count: int) -> list[str]:
    """`count` of them, evenly spread."""
    return (
        [names[index * len(names) // count] for index in range(min(count, len(names)))] if len(names) > count else list(names)
    )


def _figures(evaluation: Evaluation) -> dict[str, Any]:
    scores = evaluation.scores
    return {"bleu": round(scores.bleu, 2), "chrf": round(scores.chrf, 2), "lines": scores.lines}


def sample_translations(evaluations: Sequence[Evaluation], count: int) -> list[dict[str, str]]:
    """Translations a person can judge: from each direction in turn, from different places of the test set."""
    found: list[dict[str, str]] = []
    for number in range(count):
        evaluation = evaluations[number % len(evaluations)]
        total = len(evaluation.sources)
        # Full sentences say more than labels: the longest of a stretch of the test set, if it fits on a screen's line or two.
        first = number * 17 % total
        stretch = [row for row in range(first, min(total, first + 17)) if len(evaluation.sources[row]) <= 200] or [first]
        row = max(stretch, key=lambda index: len(evaluation.sources[index]))
        found.append(
            {
                "direction": evaluation.scores.direction,
                "source": evaluation.sources[row],
                "translation": evaluation.hypotheses[row],
                "reference": evaluation.references[row],
            }
        )
    return found
