"""Which of the languages served here a text is in, with confidence. Layer 6.

py3langid chooses among the served languages that it knows. A new language that it does not know competes with all of these
together by the statistics of its pack's vocabulary. A base's own language that it does not know is told by its script; where
others share that script, it is named after them, or stands for the macrolanguage that py3langid knows.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any

from graftmt.packs import Side
from graftmt.prepare.language_id import detector_code
from graftmt.prepare.scripts import expected_scripts, letter_scripts
from graftmt.server.catalog import Catalog
from graftmt.server.piece_statistics import PieceStatistics
from graftmt.text.languages import member_of, tag_of_code

MOST_CHARACTERS = 2000
"""Of a text that are looked at."""
MOST_LETTERS, CALM = 40, 4.0
"""Evidence of the vocabularies counts for at most this many letters, and is divided by `CALM`: letters do not come alone."""
SHOWN = 0.01
"""Probability below which a language is not named."""


@dataclass(frozen=True)
class Guess:
    """A language and how sure it is, from 0 to 100."""

    language: str
    confidence: float


class Detector:
    """Detects among the languages of one catalog; made anew for the next one."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._codes: dict[str, list[str]] = {}
        """The detector's code → those of languages here."""
        self._unheard: list[str] = []
        """The base's languages that neither the detector nor a vocabulary of their own tells."""
        self._scripts: dict[str, frozenset[str]] = {}
        self._lock = threading.Lock()
        self._identifier: Any = None
        self._statistics: dict[str, PieceStatistics] | None = None

    def guesses(self, text: str) -> list[Guess]:
        """Likely languages, the likeliest first; at least one, with confidence 0 where nothing can be told."""
        with self._lock:
            if self._statistics is None:
                self._prepare()
        text = text[:MOST_CHARACTERS]
        shares = self._shares(text)
        ranked = sorted(shares.items(), key=lambda item: -item[1])
        found = [Guess(code, round(100 * share, 1)) for code, share in ranked if share >= SHOWN]
        return found or [Guess(next(iter(self._catalog.languages)), 0.0)]

    def guess(self, text: str, side: Side | None = None) -> Guess:
        """The likeliest language, among those of one side if `side` is given."""
        for guess in self.guesses(text):
            language = self._catalog.languages[guess.language]
            if side is None or (language.reads if side == "source" else language.writes):
                return guess
        readable = self._catalog.translator.source_languages
        return Guess(readable[0], 0.0)

    def _prepare(self) -> None:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        labels = set(self._identifier.labels)
        unknown: list[str] = []
        for code, language in self._catalog.languages.items():
            name = detector_code(code)
            if name in labels:
                self._codes.setdefault(name, []).append(code)
            elif language.new:
                unknown.append(code)
            else:
                self._unheard.append(code)
        for code in list(self._unheard):
            if (name := macrolanguage(code)) in labels and name not in self._codes:
                self._codes[name] = [code]
                self._unheard.remove(code)
        self._scripts = {code: scripts_of(code) for code in self._catalog.languages}
        if self._codes:
            self._identifier.set_languages(sorted(self._codes))
        statistics: dict[str, PieceStatistics] = {}
        if unknown:
            text = self._catalog.base.tokenizer.side("source")
            statistics[""] = PieceStatistics(text, max(1, len(self._catalog.base.languages)))
        for code in unknown:
            pack = self._catalog.pack_for(code, "source") or self._catalog.pack_for(code, "target")
            assert pack is not None, "a new language has a pack"
            statistics[code] = PieceStatistics(pack.pack.tokenizer, len(pack.pack.languages))
        self._statistics = statistics

    def _shares(self, text: str) -> dict[str, float]:
        """code → probability; empty where there is nothing to go by."""
        assert self._statistics is not None
        letters = sum(map(str.isalpha, text))
        if not letters:
            return {}
        new = self._new_shares(text, letters) if self._statistics else {}
        rest = 1.0 - sum(new.values())
        if not self._codes:
            unheard = self._unheard_shares(letter_scripts(text), 0.0)
            return new | {code: rest * share for code, share in unheard.items()}
        if len(self._codes) == 1:
            ranking = [(next(iter(self._codes)), 1.0)]
        else:
            ranking = [(code, float(share)) for code, share in self._identifier.rank(text)]
        counts = letter_scripts(text)
        unheard = self._unheard_shares(counts, ranking[0][1])
        rest *= 1.0 - sum(unheard.values())
        known: dict[str, float] = {}
        for name, share in ranking:
            codes = self._codes.get(name, ())
            fits = [self._fit(code, counts) for code in codes]
            if not any(fits):
                fits = [1.0] * len(fits)
            known |= {code: rest * share * fit / sum(fits) for code, fit in zip(codes, fits, strict=True)}
        return new | known | unheard

    def _fit(self, code: str, counts: dict[str, float]) -> float:
        """The share of a text's letters in scripts of a language; 1 where it is not known which these are."""
        scripts, total = self._scripts[code], sum(counts.values())
        if not scripts or not total:
            return 1.0
        return sum(count for script, count in counts.items() if script in scripts) / total

    def _unheard_shares(self, counts: dict[str, float], surest: float) -> dict[str, float]:
        """Of languages told by their script alone.

        All of what is in a script that no known language has, and, of the rest, their part of what the detector is unsure of.
        """
        fits = {code: fit for code in self._unheard if (fit := self._fit(code, counts))}
        if not fits:
            return {}
        heard = [fit for codes in self._codes.values() for code in codes if (fit := self._fit(code, counts))]
        covered = max(heard, default=0.0)
        part = len(fits) / (len(fits) + len(heard))
        total = max(fits.values()) * (1.0 - covered + covered * (1.0 - surest) * part)
        return {code: total * fit / sum(fits.values()) for code, fit in fits.items()}

    def _new_shares(self, text: str, letters: int) -> dict[str, float]:
        """Of the languages that the detector does not know, against the base's vocabulary, which stands for all others."""
        assert self._statistics is not None
        weight = min(letters, MOST_LETTERS) / CALM
        costs = {code: statistics.cost(text) * weight for code, statistics in self._statistics.items()}
        best = min(costs.values())
        likelihoods = {code: math.exp(best - cost) for code, cost in costs.items()}
        total = sum(likelihoods.values())
        return {code: likelihood / total for code, likelihood in likelihoods.items() if code}


def macrolanguage(code: str) -> str:
    """The detector's code for the macrolanguage that a language belongs to: `ar` for arz_Arab. Empty where there is none."""
    tag = tag_of_code(code)
    return "" if tag is None else detector_code(member_of(tag.language))


def scripts_of(code: str) -> frozenset[str]:
    """The scripts that a language is written in: those its code names, or the likely one. Empty where that is not known."""
    if found := expected_scripts(code, detector_code(code), ()):
        return found
    tag = tag_of_code(code)
    return frozenset() if tag is None or not tag.written_in else expected_scripts(f"x_{tag.written_in}", "", ())
