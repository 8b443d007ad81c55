"""The scores of one job on one test set, as its result file has them. Layer 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graftmt.assessment.directions import direction_lines
from graftmt.assessment.run import AssessOptions, assess
from graftmt.data import Corpus, Direction
from graftmt.data.corpus import read_lines
from graftmt.decoding import SearchOptions, batch_tokens_for
from graftmt.evaluation import DirectionScores, averages, score_direction
from graftmt.evaluation.matrix import label
from graftmt.experiments.profiles import Profile
from graftmt.files import write_text
from graftmt.translator import Translator

DIGITS = 3


@dataclass(frozen=True)
class Scored:
    """Directions with their figures, and translations of those that were scored now."""

    directions: Mapping[str, DirectionScores] = field(default_factory=dict)
    off_target: Mapping[str, float | None] = field(default_factory=dict)
    translations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    lines: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Language → the test set as it was scored, lines without text included."""

    @classmethod
    def of(cls, result: Mapping[str, Any] | None, name: str) -> Scored:
        """What an earlier result has."""
        if result is None or name not in result["scores"]:
            return cls()
        document = result["scores"][name]
        signatures = document["signatures"]
        found, rates = {}, {}
        for direction, entry in document["directions"].items():
            found[direction] = DirectionScores(
                source=entry["source"],
                target=entry["target"],
                lines=entry["lines"],
                bleu=entry["bleu"],
                chrf=entry["chrf"],
                bleu_signature=signatures["bleu"][entry["tokenize"]],
                chrf_signature=signatures["chrf"],
            )
            rates[direction] = entry["off_target"]
        return cls(found, rates)

    def with_more(self, more: Scored) -> Scored:
        return Scored(
            {**self.directions, **more.directions},
            {**self.off_target, **more.off_target},
            {**self.translations, **more.translations},
            {**self.lines, **more.lines},
        )

    def averages(self, pivot: str, new: Sequence[str]) -> dict[str, dict[str, float]]:
        """By the paper's names: →EN, X→/EN …; over all directions there are."""
        found = averages(self.directions.values(), pivot, new)
        return {
            label(group, pivot): {
                "bleu": round(one.bleu, DIGITS),
                "chrf": round(one.chrf, DIGITS),
                "directions": one.directions,
            }
            for group, one in found.items()
            if group != "all"
        }

    def document(self, pivot: str, new: Sequence[str]) -> dict[str, Any]:
        directions, bleu, chrf = {}, {}, ""
        for direction, scores in self.directions.items():
            tokenize = _tokenizer(scores.bleu_signature)
            rate = self.off_target.get(direction)
            directions[direction] = {
                "source": scores.source,
                "target": scores.target,
                "bleu": round(scores.bleu, DIGITS),
                "chrf": round(scores.chrf, DIGITS),
                "off_target": None if rate is None else round(rate, 4),
                "lines": scores.lines,
                "tokenize": tokenize,
            }
            bleu[tokenize], chrf = scores.bleu_signature, scores.chrf_signature
        return {
            "averages": self.averages(pivot, new),
            "directions": directions,
            "signatures": {"bleu": bleu, "chrf": chrf},
        }

    def keep(self, folder: Path, name: str, lines: int | None) -> None:
        """The first translations, or all, for comparisons by paired bootstrap."""
        for direction, texts in self.translations.items():
            write_text(folder / f"{name}.{direction}.txt", "".join(f"{line}\n" for line in texts[:lines]))

    def keep_lines(self, folder: Path, name: str) -> None:
        """The test set that they are translations of, once for all jobs."""
        for language, texts in self.lines.items():
            write_text(folder / f"{name}.{language}.txt", "".join(f"{line}\n" for line in texts))


def _tokenizer(signature: str) -> str:
    return next((part.removeprefix("tok:") for part in signature.split("|") if part.startswith("tok:")), "")


def search_options(profile: Profile, translator: Translator) -> SearchOptions:
    return profile.evaluation.search(batch_tokens_for(translator.base.model.device.type))


def score(
    profile: Profile,
    name: str,
    corpus: Corpus,
    translator: Translator,
    directions: Sequence[Direction],
    *,
    new: Sequence[str],
    through: str | None,
    work: Path,
    quiet: bool,
) -> Scored:
    """All directions; each is kept in the `work` folder when it is translated, so that a kill costs little."""
    options = AssessOptions(
        directions=tuple(directions),
        lines=profile.evaluation.sets[name].lines,
        through=through,
        search=search_options(profile, translator),
        tokenize=profile.evaluation.sets[name].tokenize,
        pivot=profile.pivot,
        new=tuple(new),
        off_target=profile.evaluation.off_target,
        output=work,
        quiet=quiet,
    )
    found = assess(translator, corpus, options).scored
    languages = sorted({language for direction in found for language in direction})
    return Scored(
        {str(direction): one.scores for direction, one in found.items()},
        {str(direction): None if one.off_target is None else one.off_target.rate for direction, one in found.items()},
        {str(direction): list(read_lines(work / f"{corpus.split}.{direction}.txt")) for direction in found},
        {language: list(read_lines(work / "lines" / f"{corpus.split}.{language}.txt")) for language in languages},
    )


def score_in_hops(profile: Profile, name: str, corpus: Corpus, steps: Sequence[tuple[Translator, Direction]]) -> Scored:
    """One direction by several models in a row, each with a base of its own."""
    options = profile.evaluation.sets[name]
    direction = Direction(steps[0][1].source, steps[-1][1].target)
    (lines,) = direction_lines(corpus, [direction], lines=options.lines)
    texts = list(lines.sources)
    for translator, hop in steps:
        texts = translator.translate(texts, source=hop.source, target=hop.target, options=search_options(profile, translator))
    scores = score_direction(
        texts, lines.references, source=direction.source, target=direction.target, tokenize=options.tokenize
    )
    return Scored({str(direction): scores}, {str(direction): None}, {str(direction): texts})
