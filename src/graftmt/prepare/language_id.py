"""Which text is in another language than it should be, by py3langid, a detector of 139 languages, or by n-grams. Layer 4.

`wrong_language_share` examines a text, `LanguageFilter` judges line by line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import sqrt
from typing import Any

from graftmt.errors import ConfigError
from graftmt.prepare.ngrams import NgramClassifier, enough_to_learn
from graftmt.prepare.scripts import letters_worth

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

_NO_LANGUAGE = "zxx"  # the detector's word for code, numbers and the like

# Codes that the detector writes otherwise: old ones, macrolanguages, and those of three letters that NLLB and others use.
_OTHER_NAMES: dict[str, str] = dict(
    re.findall(
        r"(\w+):(\w+)",
        """
        nb:no nob:no fil:tl tgl:tl iw:he in:id cmn:zh mo:ro sh:sr jw:jv
        afr:af als:sq amh:am ara:ar arb:ar arg:an asm:as aze:az azj:az bak:ba bel:be ben:bn bos:bs bre:br bul:bg cat:ca ces:cs
        cym:cy dan:da deu:de dzo:dz ekk:et ell:el eng:en epo:eo est:et eus:eu fao:fo fas:fa fin:fi fra:fr fry:fy gaz:om gla:gd
        gle:ga glg:gl guj:gu hat:ht hau:ha heb:he hin:hi hrv:hr hun:hu hye:hy ibo:ig ind:id isl:is ita:it jav:jv jpn:ja kan:kn
        kat:ka kaz:kk khk:mn khm:km ki:kik kin:rw kir:ky kmr:ku kor:ko kur:ku lao:lo lat:la lav:lv lin:ln lit:lt ltz:lb lug:lg
        lvs:lv mal:ml mar:mr mkd:mk mlg:mg mlt:mt mon:mn msa:ms mya:my nep:ne nld:nl nno:nn nor:no npi:ne oci:oc ori:or orm:om
        ory:or pan:pa pbt:ps pes:fa plt:mg pol:pl por:pt prs:fa pus:ps que:qu quy:qu ron:ro rus:ru san:sa sin:si slk:sk slv:sl
        sme:se sna:sn som:so sot:st spa:es sqi:sq srp:sr swa:sw swe:sv swh:sw tam:ta tat:tt tel:te tgk:tg tha:th tuk:tk tur:tr
        uig:ug ukr:uk urd:ur uzb:uz uzn:uz vie:vi vol:vo wln:wa xho:xh yor:yo zho:zh zsm:ms zul:zu
        """,
    )
)


@dataclass(frozen=True)
class LanguageCheck:
    """What the detector says of a text; it takes close languages for each other, so a share is an estimate."""

    share: float | None
    """Of the lines checked, those in another language; None where it is not known."""
    reason: str
    """Why it is not known; empty where it is."""
    examples: list[str]
    """Some of the lines in another language, each after the detector's code for it."""


def wrong_language_share(
    lines: Sequence[str], language: str, *, candidates: Sequence[str] = (), limit: int = 500
) -> LanguageCheck:
    """Asks the detector about `limit` of the lines, evenly spread, that have at least twenty letters.

    `candidates`: the languages it chooses among, all it knows unless given; fewer mean fewer false alarms.
    """
    try:
        detector = _detector(tuple(sorted({detector_code(name) for name in (*candidates, language)})) if candidates else ())
    except ImportError:
        return LanguageCheck(None, "the language detector is not installed: pip install 'graftmt[prepare]'", [])
    name = detector_code(language)
    if name not in detector.labels:
        return LanguageCheck(None, f"the language detector does not know {language}", [])
    longer = [line for line in lines if sum(map(str.isalpha, line)) >= FEWEST_LETTERS]
    count = min(limit, len(longer))
    sample = [longer[index * len(longer) // count] for index in range(count)]
    found = [(code, line) for line in sample if (code := detector.classify(line)[0]) != _NO_LANGUAGE]
    if len(found) < FEWEST_LINES:
        reason = f"too few lines of {FEWEST_LETTERS} letters or more to tell: {len(found)}, at least {FEWEST_LINES} are needed"
        return LanguageCheck(None, reason, [])
    wrong = [f"{code}: {line}" for code, line in found if code != name]
    return LanguageCheck(len(wrong) / len(found), "", wrong[:EXAMPLES])


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
    ) -> LanguageFilter:
        """`trusted`: text in languages that the detector does not know, or does not know well; others may be among them.

        `sample`: text of the corpus. With trusted text, what the detector finds right in it stands for the other languages.
        """
        trusted = trusted or {}
        codes = {language: detector_code(language) for language in languages}
        known = detector_languages() if set(languages) - trusted.keys() else frozenset()
        detected = {language: code for language, code in codes.items() if code in known and language not in trusted}
        closed = tuple(sorted(set(detected.values())))
        # Between two languages alone, a line in a third would be taken for one of them: what a bilingual corpus is full of.
        candidates = () if open_set or len(closed) < FEWEST_CANDIDATES else closed
        by_detector = cls(candidates, detected)
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
        among = f"among {', '.join(candidates)}" if candidates else f"among all {len(known)} languages it knows"
        for language, code in codes.items():
            twins = [other for other, name in detected.items() if name == code and other != language]
            if language in trusted:
                assert classifier is not None
                notes[language] = f"n-gram classifier, among {', '.join(classifier.languages)}"
            elif language in detected:
                same = f"; cannot tell it from {', '.join(twins)}" if twins else ""
                notes[language] = f"py3langid, {among}{same}" + (" and the n-gram classifier" if classifier else "")
            else:
                notes[language] = f"not checked: py3langid does not know it; give text you trust with --trusted {language}=FILE"
        return cls(candidates, detected, classifier, notes=notes)

    def other_language(self, text: str, language: str) -> str:
        """The language that wins clearly instead; "" where the line is as it should be, or where that cannot be told."""
        if not long_enough(text):
            return ""
        if language in self.detected:
            detector, own = _detector(self.candidates), self.detected[language]
            if detector.classify(text)[0] != own:
                ranking = [(code, score) for code, score in detector.rank(text) if code != _NO_LANGUAGE]
                best, score = ranking[0]
                if (score - dict(ranking)[own]) / sqrt(len(text.encode(errors="replace"))) > self.detector_margin:
                    return str(best)
        if self.classifier is not None and language in self.classifier.languages:
            best, margin = self.classifier.winner(text, language)
            if margin > NGRAM_MARGIN:
                return best
        return ""


def long_enough(text: str) -> bool:
    """Whether there is enough in a line to judge it by."""
    # Each letter is worth one or more, so most lines need no closer look.
    return sum(map(str.isalpha, text)) >= FEWEST_LETTERS_OF_A_LINE or letters_worth(text) >= FEWEST_LETTERS_OF_A_LINE


def detector_languages() -> frozenset[str]:
    """The codes that the detector knows; an error says how to install it where it is missing."""
    try:
        return frozenset(_detector().labels) - {_NO_LANGUAGE}
    except ImportError:
        raise ConfigError(
            "language-ID filtering needs py3langid: pip install 'graftmt[prepare]', or leave it out with --no-language-id."
        ) from None


def detector_code(language: str) -> str:
    """The detector's code for a language: `pt` for pt_br, `zh` for zh-Hans, `no` for nb, `fr` for fra_Latn."""
    primary = language.lower().replace("-", "_").split("_")[0]
    return _OTHER_NAMES.get(primary, primary)


@cache
def _detector(languages: tuple[str, ...] = ()) -> Any:
    """One of our own, read from the wheel in half a second: py3langid's shared one can be changed by others.

    Classifying only reads it, so threads may share it.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    detector = LanguageIdentifier.from_model_file(MODEL_FILE)
    known = [name for name in languages if name in detector.labels]
    if len(known) > 1:
        detector.set_languages(known)
    return detector


def language_detector(codes: Iterable[str] = ()) -> Any:
    """The detector, choosing among these of its codes or all that it knows; None where it is not installed."""
    try:
        return _detector(tuple(sorted(codes)))
    except ImportError:
        return None
