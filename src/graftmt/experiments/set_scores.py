"""The translations and scores of one job on one test set. Layer 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graftmt.assessment.assess import AssessOptions, assess
from graftmt.assessment.direction_lines import direction_lines
from graftmt.data import Corpus, Direction
from graftmt.data.corpus import segmented
from graftmt.data.line_files import read_lines
from graftmt.decoding import SearchOptions, batch_tokens_for
from graftmt.evaluation import Scores, joined, score_direction
from graftmt.experiments.profiles import Profile
from graftmt.files import write_text
from graftmt.prepare.segmentation import desegment
from graftmt.translator import Translator


@dataclass(frozen=True)
class SetScores:
    """The rows of some directions, with the translations that they are of."""

    scores: Scores
    translations: Mapping[str, Sequence[str]]
    lines: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Language → the test set as it was scored, lines without text included."""

    def keep(self, folder: Path, name: str, set_name: str, lines: int | None) -> None:
        """The first translations, or all, for comparisons by paired bootstrap; and the test set, once for all jobs."""
        for direction, texts in self.translations.items():
            write_text(folder / name / f"{set_name}.{direction}.txt", "".join(f"{line}\n" for line in texts[:lines]))
        for language, texts in self.lines.items():
            write_text(folder / "lines" / f"{set_name}.{language}.txt", "".join(f"{line}\n" for line in texts))


def search_options(profile: Profile, translator: Translator) -> SearchOptions:
    return profile.evaluation.search(batch_tokens_for(translator.base.model.device.type))


def score(
    profile: Profile,
    name: str,
    corpus: Corpus,
    translator: Translator,
    directions: Sequence[Direction],
    *,
    through: str | None,
    work: Path,
) -> SetScores:
    """All directions; each is kept in the `work` folder when it is translated, so that a kill costs little."""
    fewer = profile.evaluation.sets[name].between_lines is not None
    groups = (
        {"": list(directions)}
        if not fewer
        else {
            "some": [one for one in directions if not is_between(one, profile)],
            "between": [one for one in directions if is_between(one, profile)],
        }
    )
    parts = [
        _score_some(profile, name, corpus, translator, some, group == "between", through=through, work=work / group)
        for group, some in groups.items()
        if some
    ]
    return SetScores(
        joined(part.scores for part in parts),
        {direction: texts for part in parts for direction, texts in part.translations.items()},
        {language: texts for part in reversed(parts) for language, texts in part.lines.items()},  # the first has the most lines
    )


def is_between(direction: Direction, profile: Profile) -> bool:
    """Whether it joins two initial languages, neither of them the pivot."""
    return not {*direction} & {profile.pivot, *profile.new}


def _score_some(
    profile: Profile,
    name: str,
    corpus: Corpus,
    translator: Translator,
    directions: Sequence[Direction],
    between: bool,
    *,
    through: str | None,
    work: Path,
) -> SetScores:
    """Directions that have the same number of lines."""
    options = AssessOptions(
        directions=tuple(directions),
        lines=profile.evaluation.sets[name].lines_for(between=between),
        through=through,
        search=search_options(profile, translator),
        tokenize=profile.evaluation.sets[name].tokenize,
        pivot=profile.pivot,
        new=tuple(one for one in profile.new if one in translator.languages),
        off_target=profile.evaluation.off_target,
        output=work,
    )
    scores = assess(translator, corpus, options).scores
    languages = sorted({language for pair in scores.pairs for language in pair})
    return SetScores(
        scores,
        {direction: list(read_lines(work / f"{corpus.split}.{direction}.txt")) for direction in scores.directions},
        {language: list(read_lines(work / "lines" / f"{corpus.split}.{language}.txt")) for language in languages},
    )


def score_in_hops(profile: Profile, name: str, corpus: Corpus, steps: Sequence[tuple[Translator, Direction]]) -> SetScores:
    """One direction by several models in a row, each with a base of its own; Chinese words are joined again before scoring."""
    options = profile.evaluation.sets[name]
    direction = Direction(steps[0][1].source, steps[-1][1].target)
    (lines,) = direction_lines(corpus, [direction], lines=options.lines)
    texts = list(lines.sources)
    for translator, hop in steps:
        texts = translator.translate(texts, source=hop.source, target=hop.target, options=search_options(profile, translator))
    references: Sequence[str] = lines.references
    if direction.target in segmented(corpus.files.items()).get("segmented", ()):
        texts, references = list(map(desegment, texts)), list(map(desegment, references))
    scores = score_direction(texts, references, **direction._asdict(), tokenize=options.tokenize)
    return SetScores(scores, {str(direction): texts})
