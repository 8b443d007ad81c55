"""Which text is in another language than it should be, by py3langid, a detector of 139 languages, or by n-grams. Layer 4.

`foreign_lines` examines a text, `LanguageFilter` judges line by line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

from graftmt.errors import ConfigError, LanguageError, nearest
from graftmt.prepare.detector import NO_LANGUAGE, detector, detector_code, detector_languages, language_detector
from graftmt.prepare.evidence import FEWEST_LETTERS as FEWEST_LETTERS_OF_EVIDENCE
from graftmt.prepare.evidence import Evidence, OwnText, learn, spread, worth_judging
from graftmt.prepare.ngrams import NgramClassifier, enough_to_learn
from graftmt.prepare.scripts import letters_worth

__all__ = [
    "LanguageCheck",
    "LanguageFilter",
    "detector_code",
    "detector_languages",
    "foreign_lines",
    "language_detector",
    "long_enough",
]

FEWEST_LETTERS = 20
"""In a line; the detector guesses at shorter ones."""
FEWEST_LINES = 20
"""Below which a share says nothing."""
EXAMPLES = 5

FEWEST_LETTERS_OF_A_LINE = 8
"""Latin letters, or as much in another script, for one line to be judged; the margins below protect what is short."""
DETECTOR_MARGIN = 0.7
"""By how much another language must beat the right one: log-probability / √bytes. Chosen on docs-l10n's training lines."""
NGRAM_MARGIN = 1.0
"""The same for the n-gram classifier: log-probability / √n-grams."""


@dataclass(frozen=True)
class LanguageCheck:
    """What the detector says of a text; it takes close languages for each other, so a share is an estimate."""

    share: float | None
    """Of the lines checked, those in another language; None where it is not known."""
    reason: str
    """Why it is not known; empty where it is."""
    examples: list[str]
    """Some of the lines in another language, each after the detector's code for it."""


def foreign_lines(
    sides: Mapping[str, Sequence[str]], *, candidates: Sequence[str] = (), limit: int = 2_000
) -> dict[str, LanguageCheck]:
    """The share of lines in another language, judged as `prepare clean` does: by all of the corpus's text, short lines too.

    `candidates` are languages that wrong lines may be in, besides the corpus's own. Default: likely ones.
    """
    checks: dict[str, LanguageCheck] = {}
    try:
        known = detector_languages()
    except ConfigError:
        missing = "the language detector is not installed: pip install 'graftmt[prepare]'"
        return {language: LanguageCheck(None, missing, []) for language in sides}
    samples = {language: spread(lines, limit) for language, lines in sides.items() if detector_code(language) in known}
    codes = [code for name in candidates if (code := detector_code(name)) in known]
    evidence = learn(samples, candidates=codes or None)
    for language in sides:
        if language not in samples:
            checks[language] = LanguageCheck(None, f"the language detector does not know {language}", [])
            continue
        judged = [line for line in samples[language] if worth_judging(line)]
        if len(judged) < FEWEST_LINES:
            reason = f"too few lines of {FEWEST_LETTERS_OF_EVIDENCE} letters or more to tell: {len(judged)}, at least "
            checks[language] = LanguageCheck(None, f"{reason}{FEWEST_LINES} are needed", [])
            continue
        wrong = [f"{code}: {line}" for line in judged if (code := evidence.other_language(line, language))]
        checks[language] = LanguageCheck(len(wrong) / len(judged), "", wrong[:EXAMPLES])
    return checks


FEWEST_CANDIDATES = 3
"""Languages of a corpus from which on the detector chooses among them alone."""


@dataclass(frozen=True)
class LanguageFilter:
    """Says of one line whether another language wins clearly. Plain data: it travels to other processes as it is.

    A language with trusted text is judged by a classifier trained on it, the others by the detector; where there is a
    classifier, it has to agree with the detector's languages too, so that lines in a language that the detector does not know
    are found everywhere.
    """

    candidates: tuple[str, ...] = ()
    """What the detector chooses among, by its own codes; all it knows where empty."""
    detected: Mapping[str, str] = field(default_factory=dict)
    """language → the detector's code, for those it judges."""
    classifier: NgramClassifier | None = None
    evidence: Evidence | None = None
    """What the corpus's own text says, where there is a sample of it: then it judges instead of the detector alone."""
    detector_margin: float = DETECTOR_MARGIN
    notes: Mapping[str, str] = field(default_factory=dict)
    """language → how it is judged, or why it is not, for a person."""

    @classmethod
    def make(
        cls,
        languages: Sequence[str],
        *,
        open_set: bool = False,
        trusted: Mapping[str, Sequence[str]] | None = None,
        sample: Mapping[str, Sequence[str]] | None = None,
        candidates: Sequence[str] = (),
        margin: float | None = None,
    ) -> LanguageFilter:
        """`trusted`: text in languages that the detector does not know, or does not know well; others may be among them.

        `sample`: text of the corpus, spread over all of it. It is the evidence by which short texts are judged too; with
        trusted text, what is right in it stands for the other languages. `candidates`: languages that wrong text may be in,
        besides the corpus's own. `margin`: instead of the one that the sample shows.
        """
        trusted = trusted or {}
        codes = {language: detector_code(language) for language in languages}
        known = detector_languages() if set(languages) - trusted.keys() else frozenset()
        detected = {language: code for language, code in codes.items() if code in known and language not in trusted}
        closed = tuple(sorted(set(detected.values())))
        # Between two languages alone, a line in a third would be taken for one of them: what a bilingual corpus is full of.
        extra = _named_candidates(candidates, known)
        few = len(closed) < FEWEST_CANDIDATES and not extra
        chosen = () if open_set or few else tuple(sorted({*closed, *extra}))
        evidence = None
        if sample is not None and detected:
            texts_of = {language: sample.get(language, ()) for language in detected}
            evidence = learn(texts_of, candidates=chosen or None, everything=open_set, margin=margin)
        by_detector = cls(chosen, detected, evidence=evidence)
        classifier = None
        if trusted:
            texts = {language: list(lines) for language, lines in trusted.items()}
            for language in detected:
                lines = [line for line in (sample or {}).get(language, ()) if not by_detector.other_language(line, language)]
                if enough_to_learn(lines):
                    texts[language] = lines
            if len(texts) < 2:
                others = ", ".join(language for language in languages if language not in trusted) or "another language"
                raise ConfigError(
                    f"trusted text for {', '.join(trusted)} alone tells it from nothing: too little of the corpus's own text "
                    f"in other languages could be confirmed. Give trusted text for {others} too."
                )
            classifier = NgramClassifier.train(texts)
        notes = {}
        among = f"among {', '.join(chosen)}" if chosen else f"among all {len(known)} languages it knows"
        if evidence is not None and not (chosen or open_set):
            among = f"among {', '.join(closed)} and {len(evidence.candidates) - len(closed)} likely languages"
        for language, code in codes.items():
            twins = [other for other, name in detected.items() if name == code and other != language]
            if language in trusted:
                assert classifier is not None
                notes[language] = f"n-gram classifier, among {', '.join(classifier.languages)}"
            elif language in detected:
                same = f"; cannot tell it from {', '.join(twins)}" if twins else ""
                learnt = _learnt(evidence.own[language]) if evidence else ""
                notes[language] = f"py3langid, {among}{same}{learnt}" + (" and the n-gram classifier" if classifier else "")
            else:
                notes[language] = f"not checked: py3langid does not know it; give text you trust with --trusted {language}=FILE"
        return cls(chosen, detected, classifier, evidence, notes=notes)

    def other_language(self, text: str, language: str) -> str:
        """The language that wins clearly instead; "" where the line is as it should be, or where that cannot be told."""
        judged = self.evidence is not None and language in self.evidence.own
        if self.evidence is not None and judged and (found := self.evidence.other_language(text, language)):
            return found
        if not long_enough(text):
            return ""
        if not judged and language in self.detected:
            model, own = detector(self.candidates), self.detected[language]
            if model.classify(text)[0] != own:
                ranking = [(code, score) for code, score in model.rank(text) if code != NO_LANGUAGE]
                best, score = ranking[0]
                if (score - dict(ranking)[own]) / sqrt(len(text.encode(errors="replace"))) > self.detector_margin:
                    return str(best)
        if self.classifier is not None and language in self.classifier.languages:
            best, margin = self.classifier.winner(text, language)
            if margin > NGRAM_MARGIN:
                return best
        return ""


def _named_candidates(names: Sequence[str], known: frozenset[str]) -> tuple[str, ...]:
    codes = []
    for name in names:
        if (code := detector_code(name)) not in known:
            raise LanguageError(
                f"candidate {name!r}: the language detector does not know it{nearest(code, sorted(known)) or '.'} "
                "Leave it out, or give text in it with --trusted."
            )
        codes.append(code)
    return tuple(codes)


def _learnt(own: OwnText) -> str:
    """What a person may want to know of the evidence: the margin, and other languages that are there."""
    others = sorted((code for code in own.shares if code != own.code), key=lambda code: -own.shares[code])
    found = ", ".join(f"{code} {own.shares[code]:.1%}" for code in others[:5])
    return f"; margin {own.margin:.1f}" + (f"; seems to hold {found}" if found else "")


def long_enough(text: str) -> bool:
    """Whether there is enough in a line to judge it by."""
    # Each letter is worth one or more, so most lines need no closer look.
    return sum(map(str.isalpha, text)) >= FEWEST_LETTERS_OF_A_LINE or letters_worth(text) >= FEWEST_LETTERS_OF_A_LINE
