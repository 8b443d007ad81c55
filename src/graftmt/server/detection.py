"""Which of the languages served here a text is in, with confidence. Layer 5.

py3langid chooses among the served languages that it knows. A new language that it does not know competes with all of these
together by the statistics of its pack's vocabulary.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any

from graftmt.packs import Side
from graftmt.prepare.language_id import detector_code
from graftmt.server.catalog import Catalog
from graftmt.server.piece_statistics import PieceStatistics

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
            return new
        if len(self._codes) == 1:
            ranking = [(next(iter(self._codes)), 1.0)]
        else:
            ranking = [(code, float(share)) for code, share in self._identifier.rank(text)]
        known: dict[str, float] = {}
        for name, share in ranking:
            for code in self._codes.get(name, ()):
                known[code] = rest * share / len(self._codes[name])
        return new | known

    def _new_shares(self, text: str, letters: int) -> dict[str, float]:
        """Of the languages that the detector does not know, against the base's vocabulary, which stands for all others."""
        assert self._statistics is not None
        weight = min(letters, MOST_LETTERS) / CALM
        costs = {code: statistics.cost(text) * weight for code, statistics in self._statistics.items()}
        best = min(costs.values())
        likelihoods = {code: math.exp(best - cost) for code, cost in costs.items()}
        total = sum(likelihoods.values())
        return {code: likelihood / total for code, likelihood in likelihoods.items() if code}
