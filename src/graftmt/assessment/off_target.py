"""How many translations are in the wrong language: what collapses when a model forgets its language codes. Layer 5."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graftmt.errors import ConfigError
from graftmt.prepare.language_id import LanguageFilter, detector_code, detector_languages, long_enough
from graftmt.prepare.ngrams import enough_to_learn


@dataclass(frozen=True, kw_only=True)
class OffTarget:
    """What languages the translations of one direction are in."""

    rate: float | None
    """Of the lines judged, those in another language; None where that cannot be told."""
    judged: int
    """Lines with enough letters to tell."""
    into: dict[str, int]
    """Other language → lines in it, the most frequent first."""
    empty: int
    """Lines without a translation; they are in no language, and not judged."""


@dataclass(frozen=True)
class Judge:
    """Tells the languages at hand apart. Plain data: it travels to other processes.

    py3langid judges the languages that it knows, choosing among those at hand. The others are judged by a classifier that
    learns from the test set's own lines; so are all, where py3langid is not installed.
    """

    filter: LanguageFilter = field(default_factory=LanguageFilter)
    how: Mapping[str, str] = field(default_factory=dict)
    """language → how it is judged, or why it cannot be."""

    @classmethod
    def make(cls, languages: Sequence[str], texts: Mapping[str, Sequence[str]]) -> Judge:
        """`languages`: what translations may be in, right or wrong. `texts`: the test set's lines in them."""
        installed = importlib.util.find_spec("py3langid") is not None
        known = detector_languages() if installed else frozenset()
        unknown = [language for language in languages if detector_code(language) not in known]
        learned = {language: texts[language] for language in unknown if enough_to_learn(texts.get(language, ()))}
        chosen = list(languages) if installed else list(learned)
        try:
            judge = LanguageFilter.make(chosen, trusted=learned, sample=texts) if chosen else LanguageFilter()
        except ConfigError:  # learned from one language alone, which cannot be told from anything
            learned = {}
            judge = LanguageFilter.make(chosen) if installed else LanguageFilter()
        how = {}
        for language in languages:
            if language in learned:
                how[language] = f"{judge.notes[language]}, learned from the test set"
            elif language in judge.detected:
                how[language] = judge.notes[language]
            else:
                missing = "does not know it" if installed else "is not installed (pip install 'graftmt[prepare]')"
                how[language] = f"cannot be told: py3langid {missing}, and the test set has too little text to learn it from"
        return cls(judge, how)

    def judges(self, language: str) -> bool:
        learned = self.filter.classifier is not None and language in self.filter.classifier.languages
        return learned or language in self.filter.detected

    def judge(self, lines: Sequence[str], language: str) -> OffTarget:
        """Which of the lines, all of them meant to be in `language`, are not."""
        empty = sum(not line.strip() for line in lines)
        if not self.judges(language):
            return OffTarget(rate=None, judged=0, into={}, empty=empty)
        judged = [line for line in lines if long_enough(line)]
        found = Counter(other for line in judged if (other := self.filter.other_language(line, language)))
        # By their names here; of two that the detector has one code for, the first.
        names = {code: name for name, code in reversed(list(self.filter.detected.items()))}
        into = {names.get(code, code): count for code, count in found.most_common()}
        rate = sum(found.values()) / len(judged) if judged else None
        return OffTarget(rate=rate, judged=len(judged), into=into, empty=empty)


def floors(judge: Judge, languages: Sequence[str], texts: Mapping[str, Sequence[str]]) -> dict[str, float | None]:
    """What the judge says of text that is in the right language: its own error, below which a rate means nothing.

    Where it has learned from these very lines, every other line is judged by what the others teach.
    """
    if judge.filter.classifier is None:
        return {language: judge.judge(texts[language], language).rate for language in languages}
    names = tuple(judge.how)
    half = Judge.make(names, {language: list(lines)[::2] for language, lines in texts.items()})
    return {language: half.judge(texts[language][1::2], language).rate for language in languages}
