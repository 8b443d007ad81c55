"""What became of a pack: scores of trained and other directions, against a pivot, wrong numbers, and samples. Layer 6."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from graftmt.assessment.direction_lines import LONGEST_SENTENCE, Evaluation, evaluate_directions, with_sentences
from graftmt.base import Base
from graftmt.data import Corpus, Direction
from graftmt.decoding import SearchOptions, batch_tokens_for
from graftmt.evaluation import score_chrf
from graftmt.packs import Pack, Side
from graftmt.packs.card import kind_of
from graftmt.progress import progress
from graftmt.text import languages_of
from graftmt.translator import Translator

OTHERS = 4
"""Directions that were not trained, or on a few lines, and are scored, unless all are asked for."""
STANDARD = 2
"""Of the base's own directions, as many are scored to compare with."""
SAMPLES = 10
NOTABLE = 1.0
"""A difference in chrF that is worth acting on."""
FEW_LINES = 100
"""Below which such a difference may be chance."""

_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Numbers:
    """Translations of lines with a number, and how many have other numbers: what chrF hardly sees and a reader minds most."""

    lines: int = 0
    wrong: int = 0

    @property
    def share(self) -> float:
        """Of those that are wrong; 0.0 where no line has a number."""
        return self.wrong / self.lines if self.lines else 0.0


NO_NUMBERS = Numbers()


def count_numbers(evaluations: Iterable[Evaluation]) -> Numbers:
    """A translation is wrong whose numbers are neither those of the source nor those of the reference, in any order."""
    lines = wrong = 0
    for one in evaluations:
        for source, hypothesis, reference in zip(one.sources, one.hypotheses, one.references, strict=True):
            right = (_numbers(source), _numbers(reference))
            if any(right):
                lines += 1
                wrong += _numbers(hypothesis) not in right
    return Numbers(lines, wrong)


def _numbers(text: str) -> list[int]:
    """Runs of digits of any script, in order of size: 1,000 and 1.000 are the same, 2/3 and 3. 2. too."""
    return sorted(int(digits[:18]) for digits in _DIGITS.findall(text))


@dataclass(frozen=True)
class Verdict:
    """`scores`: direction → source, target, bleu, chrf, lines, zero_shot, few_lines and, for those two kinds, `pivot` with the
    scores of that route."""

    split: str
    beam: int
    scores: dict[str, dict[str, Any]]
    samples: list[dict[str, str]]
    copying: float = 0.0
    """chrF of the sources of the trained directions, left as they are."""
    own: float | None = None
    """Mean chrF of some of the base's own directions on this text; None where it has no lines for any."""
    own_directions: tuple[str, ...] = ()
    numbers: Numbers = NO_NUMBERS
    """Of the trained directions' translations."""
    own_numbers: Numbers = NO_NUMBERS

    @property
    def words(self) -> str:
        """What the scores come to, in a sentence or two, with a caution where they rest on few lines."""
        return f"{self._summary()}{self._caution()}"

    def _summary(self) -> str:
        kinds: dict[str, list[float]] = {}
        for entry in self.scores.values():
            kinds.setdefault(kind_of(entry), []).append(entry["chrf"])
        trained = kinds.pop("trained", [])
        others = [chrf for chrfs in kinds.values() for chrf in chrfs]
        pivots = [entry["pivot"] for entry in self.scores.values() if "pivot" in entry]
        said = f"No {self.split} line is of a trained direction."
        if trained:
            said = f"Trained directions: chrF {fmean(trained):.1f}."
        if not others:
            return f"{said} The {self.split} text has no sentences in other languages of the base, so none was tried."
        said += f" {' and '.join(kinds).replace('few lines', 'with a few lines').capitalize()}: {fmean(others):.1f}"
        if not pivots:
            return f"{said}."
        through, by_pivot = pivots[0]["through"], fmean(entry["chrf"] for entry in pivots)
        difference = by_pivot - fmean(others)
        advice = (
            f"for these, translate with --pivot {through}"
            if difference > NOTABLE
            else "no pivot is needed"
            if difference < -NOTABLE
            else "either will do, and no pivot is quicker"
        )
        return f"{said}, and {by_pivot:.1f} through {through}: {advice}."

    def _caution(self) -> str:
        counts = [entry["lines"] for entry in self.scores.values()]
        fewest = min(counts)
        if fewest >= FEW_LINES:
            return ""
        lines = f"{'' if fewest == max(counts) else 'as few as '}{fewest} line{'s' * (fewest != 1)}"
        same = ", by which the best checkpoint was chosen too" if self.split == "valid" else ""
        return f" Scored on {lines} of the {self.split} text{same}: a rough sign. More lines (--test, --lines) say more."

    def facts(self) -> dict[str, Any]:
        """For the pack's card."""
        compared = {"untranslated": round(self.copying, 2), "base": None if self.own is None else round(self.own, 2)}
        numbers = {} if not self.numbers.lines else {"numbers": {"lines": self.numbers.lines, "wrong": self.numbers.wrong}}
        scored_on = f"{self.split}, beam {self.beam}"
        return {"scored_on": scored_on, "scores": self.scores, "compared_with": compared, **numbers, "samples": self.samples}


def judge(
    base: Base,
    pack: Pack,
    corpus: Corpus,
    partners: Sequence[str],
    *,
    few: Sequence[str] = (),
    lines: int = 200,
    beam: int = 5,
    others: int = OTHERS,
) -> Verdict | None:
    """Translates held-out text in every trained direction and in some others, `lines` lines in each.

    `few`: those of the partners with only a few lines; they are looked at as those that were not trained at all. None where the
    text has no line for any of them, which `no_verdict` says in words.
    """
    translator = Translator(base, [pack])
    many = [name for name in partners if name not in few]
    other: Side = "target" if pack.side == "source" else "source"
    rest = [name for name in languages_of(base.tokenizer, other) if name not in many]
    trained = with_sentences(corpus, [_direction(pack, new, old) for new in pack.languages for old in many])
    watched = [
        direction
        for new in pack.languages
        for direction in _spread(with_sentences(corpus, [_direction(pack, new, old) for old in rest]), others)
    ]
    if not (trained or watched):
        return None
    options = SearchOptions(beam=beam, batch_tokens=batch_tokens_for(base.model.device.type))
    both = {*base.source_languages} & {*base.target_languages}
    pivot = next((name for name in many if name in both), None)
    with progress("judging", 0) as report:
        found = evaluate_directions(
            translator, corpus, [*trained, *watched], pairs=lines, options=options, on_batch=lambda n: report.update(n, "lines")
        )
        own = own_directions(base, corpus, pack.side, many)
        standard = evaluate_directions(Translator(base), corpus, own, pairs=lines, options=options) if own else []
        through = (
            evaluate_directions(translator, corpus, watched, pairs=lines, options=options, pivot=pivot)
            if watched and pivot is not None
            else []
        )
    by_pivot = {str(evaluation.direction): {"through": pivot, **figures(evaluation)} for evaluation in through}
    scores = {str(one.direction): _entry(one, watched, few, by_pivot.get(str(one.direction))) for one in found}
    judged = [one for one in found if one.direction in trained]
    return Verdict(
        corpus.split,
        beam,
        scores,
        sample_translations(found, SAMPLES),
        copying=fmean(score_chrf(one.sources, one.references).value or 0.0 for one in judged) if judged else 0.0,
        own=fmean(one.scores.figures({"chrf": 2})["chrf"] for one in standard) if standard else None,
        own_directions=tuple(map(str, own)),
        numbers=count_numbers(judged),
        own_numbers=count_numbers(standard),
    )


def _entry(
    evaluation: Evaluation, watched: Sequence[Direction], few: Sequence[str], pivot: dict[str, Any] | None
) -> dict[str, Any]:
    """What the card says of one direction."""
    direction = evaluation.direction
    seen = not {*direction}.isdisjoint(few)
    entry = {**direction._asdict(), **figures(evaluation)}
    entry |= {"zero_shot": direction in watched and not seen, "few_lines": direction in watched and seen}
    return entry if pivot is None else {**entry, "pivot": pivot}


def own_directions(base: Base, corpus: Corpus, side: Side, partners: Sequence[str]) -> list[Direction]:
    """Directions of the base's own into (or from) the partners, that the text has lines for: two of them are a standard."""
    pairs = [(other, partner) for partner in partners for other in base.languages if other not in partners]
    named = [Direction(*(pair if side == "source" else pair[::-1])) for pair in pairs]
    possible = [one for one in named if one.source in base.source_languages and one.target in base.target_languages]
    return _spread(with_sentences(corpus, possible), STANDARD)


def no_verdict(corpus: Corpus) -> str:
    """Why `judge` gave none, and what would."""
    return (
        f"no verdict: no line of the {corpus.split} text in {corpus.folder} has text on both sides and at most "
        f"{LONGEST_SENTENCE} characters in the source. Give sentences, one a line (--test), for scores and samples."
    )


def _direction(pack: Pack, new: str, old: str) -> Direction:
    return Direction(new, old) if pack.side == "source" else Direction(old, new)


def _spread(directions: Sequence[Direction], count: int) -> list[Direction]:
    """`count` of them, evenly spread."""
    count = min(count, len(directions))
    return [directions[index * len(directions) // count] for index in range(count)]


def figures(evaluation: Evaluation) -> dict[str, Any]:
    return evaluation.scores.figures({"bleu": 2, "chrf": 2})


def sample_translations(evaluations: Sequence[Evaluation], count: int) -> list[dict[str, str]]:
    """Translations a person can judge: from each direction in turn, from different places of the test set, none twice."""
    found: list[dict[str, str]] = []
    left = [set(range(len(evaluation.sources))) for evaluation in evaluations]
    for number in range(count):
        evaluation, rows = evaluations[number % len(evaluations)], left[number % len(evaluations)]
        if not rows:
            continue
        # Full sentences say more than labels: the longest of a stretch of the test set, if it fits on a screen's line or two.
        first = number * 17 % len(evaluation.sources)
        stretch = [row for row in range(first, first + 17) if row in rows and len(evaluation.sources[row]) <= 200]
        row = max(stretch or [min(rows)], key=lambda index: len(evaluation.sources[index]))
        rows.remove(row)
        found.append(
            {
                "direction": str(evaluation.direction),
                "source": evaluation.sources[row],
                "translation": evaluation.hypotheses[row],
                "reference": evaluation.references[row],
            }
        )
    return found
