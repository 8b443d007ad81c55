"""What a corpus's own text says about its languages, so that short phrases can be judged one by one. Layer 4.

The detector was trained on general text, and its guess at a phrase of two words is worth little. A sample of the whole
corpus tells more: which languages occur in it at all, which words each side is made of, and how sure the detector is of its
good lines. From that come, for each language, a column of log-probabilities of its text *in this corpus*, a bonus for
languages that do occur, and the margin by which another language has to win.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from graftmt.prepare.detector import NO_LANGUAGE, Features, Floats, columns_of, detector, detector_code, features_of
from graftmt.prepare.scripts import letters_worth

LIKELY = frozenset(
    re.findall(
        r"\w+",
        "en ru de ja es zh fr it pt pl nl tr fa vi ar cs id ko uk hu ro el sv fi bg da he sk th no hr lt ca sr sl hi et ms lv "
        "bn ta ur",
    )
)
"""The languages that most text on the web is in: those that wrong lines are in, where the corpus does not show others."""
FEWEST_LETTERS = 4
"""In Latin letters' worth, for a text to be judged."""
MOST_TEXTS = 4_000
"""Of a language, to learn from; more does not make it better."""
ROUNDS = 3
STRENGTHS = (500.0, 1_000.0, 2_000.0)
"""The detector's knowledge of a language weighs as much as this many features of the corpus's own text: less where the corpus
repeats itself. Each is compared at FLATTER times its value, which explains unseen texts best; the smaller one parts languages
better. Chosen on docs-l10n's training lines and CLDR phrases."""
FLATTER = 4.0
RIGHT_AT_FIRST, OTHER_AT_FIRST = 0.9, 0.01
"""Share of a corpus's text expected to be in its language and, at least, in each likely other one."""
UNLIKELY = 0.05
"""Times that, for all others."""
OCCURS = 0.003
"""Share of the texts from which on a language counts as one that occurs in the corpus."""
OCCURRING_WEIGHT = 2.0
"""How often the log of a language's share over what was expected counts: its short lines are fewer than its clear ones show."""
WHOLLY_OTHER = 0.5
"""Where half of the texts are nearer to one other language by this lead, the text as a whole is taken to be in that one."""
NOTABLE = 0.1
"""Of such text, the share from which on a language is named."""
LARGEST_MARGIN = 4.5
SURELY_OTHER = 3.0
TOLERATED_LOSS = 0.011
"""The margin is raised until no more than this share of the texts with a lead under SURELY_OTHER is over it."""
FEWEST_TEXTS = 200
"""Below which nothing is learnt about the margin; then it is the largest."""
SHORT_TEXTS = 4.0
"""Added to the margin: this / bytes, which counts in words of a few letters alone."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OwnText:
    """What the text in one language of a corpus is like."""

    code: str
    column: Floats
    """Log-probability of each of the detector's features in this corpus's text."""
    first: float
    """First value of a score; the columns of other languages have theirs."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """code → estimated share of the texts, for the languages that seem to occur."""
    bonus: Floats = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    """For each of the candidates' columns: by how much it is likelier to occur than a likely language at first."""
    margin: float = LARGEST_MARGIN
    instead: tuple[str, ...] = ()
    """The codes of the languages that most of the text is in, where these are others; then nothing was learnt."""

    def score(self, found: Features) -> float:
        places, weights = found
        return float(weights @ self.column[places]) + self.first


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """Judges texts of a corpus by what was learnt from it. Plain data: it travels to other processes."""

    candidates: tuple[str, ...]
    """The detector's codes for the languages that it chooses among."""
    own: Mapping[str, OwnText]
    """By language of the corpus."""

    def other_language(self, text: str, language: str) -> str:
        """The code of the language that wins clearly instead; "" where the text is as it should be or that cannot be told."""
        if not worth_judging(text):
            return ""
        found = features_of(text)
        if found is None:
            return ""
        best, lead = self.winner(found, language, len(text.encode(errors="replace")))
        return best if lead > self.own[language].margin else ""

    def winner(self, found: Features, language: str, size: int) -> tuple[str, float]:
        """The likeliest other language, and by how much it beats this one: log-odds per √byte, with its bonus."""
        codes, table, first = columns_of(self.candidates)
        own = self.own[language]
        places, weights = found
        scores = weights @ table[places] + first
        ours = own.score(found)
        leads = (scores - ours) / sqrt(size) + own.bonus
        best = int(leads.argmax())
        winner, lead = codes[best], float(leads[best])
        for other in self.own.values():
            # Text in another language of the same corpus has the same subjects and style, which its own column knows.
            if other.code != own.code and (more := (other.score(found) - ours) / sqrt(size)) > lead:
                winner, lead = other.code, more
        return winner, lead - SHORT_TEXTS / size


def bonus_of(code: str, own: OwnText) -> float:
    """More for languages that occur in the corpus, less for unlikely ones; none that wins for the language itself."""
    if code == own.code:
        return -np.inf
    expected = OTHER_AT_FIRST if code in LIKELY or code in own.shares else OTHER_AT_FIRST * UNLIKELY
    right = max(own.shares.get(own.code, RIGHT_AT_FIRST), OTHER_AT_FIRST)
    occurs = OCCURRING_WEIGHT * log(max(own.shares.get(code, 0.0), OTHER_AT_FIRST) / OTHER_AT_FIRST)
    return occurs + log(expected / OTHER_AT_FIRST) - log(right / RIGHT_AT_FIRST)


def worth_judging(text: str) -> bool:
    return sum(map(str.isalpha, text)) >= FEWEST_LETTERS or letters_worth(text) >= FEWEST_LETTERS


def learn(
    samples: Mapping[str, Iterable[str]],
    *,
    candidates: Sequence[str] | None = None,
    everything: bool = False,
    margin: float | None = None,
) -> Evidence:
    """Learns from texts of each language, of which most should be in it; languages are those that the detector knows.

    `candidates`, the detector's codes: what wrong lines may be in. By default those likely and those that clearly occur;
    `everything`: all that the detector knows. `margin`: instead of the one that is learnt.
    """
    texts = {language: _Sample.of(lines) for language, lines in samples.items()}
    owns = {language: _own_text(detector_code(language), sample) for language, sample in texts.items()}
    codes = {own.code for own in owns.values()}
    if everything:
        codes |= set(detector().labels) - {NO_LANGUAGE}
    elif candidates is not None:
        codes |= set(candidates)
    else:
        codes |= LIKELY.union(*(own.shares for own in owns.values()))
    chosen = tuple(sorted(codes))
    columns = columns_of(chosen)[0]
    owns = {
        language: replace(own, bonus=np.array([bonus_of(code, own) for code in columns], dtype=np.float32))
        for language, own in owns.items()
    }
    evidence = Evidence(candidates=chosen, own=owns)
    margins = {name: _margin_of(evidence, name, texts[name]) if margin is None else margin for name in owns}
    return replace(evidence, own={name: replace(own, margin=margins[name]) for name, own in owns.items()})


def spread(texts: Sequence[str], most: int) -> list[str]:
    """At most `most` of the texts, evenly spread."""
    count = min(most, len(texts))
    return [texts[index * len(texts) // count] for index in range(count)]


@dataclass(frozen=True, eq=False)
class _Sample:
    """Distinct texts of one language as the detector sees them, one after the other."""

    features: list[Features]
    sizes: NDArray[np.float64]
    """Bytes of each text."""

    @classmethod
    def of(cls, lines: Iterable[str]) -> _Sample:
        distinct = [text for text in dict.fromkeys(lines) if worth_judging(text)]
        texts = spread(distinct, MOST_TEXTS)
        pairs = [(found, len(text.encode(errors="replace"))) for text in texts if (found := features_of(text))]
        return cls([found for found, _ in pairs], np.array([size for _, size in pairs], dtype=np.float64))


def _own_text(code: str, sample: _Sample) -> OwnText:
    """Expectation maximisation: which texts are in the language, and what such text is made of, by turns."""
    model = detector()
    labels = model.labels
    columns = {label: [place for place, name in enumerate(model.nb_classes) if name == label] for label in labels}
    table, first = model.nb_ptc, np.asarray(model.nb_pc, dtype=np.float32)
    scores = np.zeros((len(sample.features), len(first)), dtype=np.float32)
    for row, (places, weights) in enumerate(sample.features):
        scores[row] = weights @ table[places].astype(np.float32) + first
    # Of a language in two scripts, the one that this text is in.
    mine = max(columns[code], key=lambda place: float(scores[:, place].sum()))
    known = np.exp(table[:, mine].astype(np.float32))
    own = OwnText(code=code, column=np.log(known), first=float(first[mine]))
    if not sample.features:
        return own
    merged = np.stack([scores[:, columns[label]].max(axis=1) for label in labels], axis=1)
    right = labels.index(code)
    middle = np.median((merged - merged[:, [right]]) / np.sqrt(sample.sizes)[:, None], axis=0)
    middle[labels.index(NO_LANGUAGE)] = -np.inf
    if len(merged) >= FEWEST_TEXTS and middle.max() > WHOLLY_OTHER:
        # Learning from text that is in another language would make that look right.
        winners = Counter(labels[place] for place in merged.argmax(axis=1).tolist())
        instead = tuple(name for name, count in winners.most_common(4) if name != code and count >= NOTABLE * len(merged))
        return replace(own, shares={labels[int(middle.argmax())]: 1 - OTHER_AT_FIRST, code: OTHER_AT_FIRST}, instead=instead)
    least = np.array(
        [0.0 if label == NO_LANGUAGE else OTHER_AT_FIRST * (1.0 if label in LIKELY else UNLIKELY) for label in labels]
    )
    shares = least.copy()
    shares[right] = RIGHT_AT_FIRST
    found = np.zeros_like(shares)
    strength = _strength_for(known, sample.features)
    for _ in range(ROUNDS):
        odds = merged / np.sqrt(sample.sizes)[:, None] + np.log(np.maximum(shares, 1e-30))
        odds = np.exp(odds - odds.max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        found = odds.mean(axis=0)
        shares = np.maximum(found, least)
        own = OwnText(code=code, column=_column(known, sample.features, odds[:, right], strength), first=own.first)
        merged[:, right] = [own.score(features) for features in sample.features]
    occurring = {
        label: float(share) for label, share in zip(labels, found, strict=True) if share >= OCCURS and label != NO_LANGUAGE
    }
    return OwnText(code=code, column=own.column, first=own.first, shares={**occurring, code: float(shares[right])})


def _column(known: Floats, features: Sequence[Features], right: NDArray[np.floating], strength: float) -> Floats:
    """The detector's column, moved towards what the texts that are right are made of."""
    counts = np.zeros(len(known), dtype=np.float32)
    for share, (places, weights) in zip(right, features, strict=True):
        if share > 0.5:
            counts[places] += np.float32(share) * weights
    # Less one occurrence of each, so that no text vouches for itself.
    counts = np.maximum(counts - np.float32(log(2)), 0)
    column: Floats = np.log((counts + np.float32(strength) * known) / (counts.sum() + np.float32(strength)))
    return column


def _strength_for(known: Floats, features: Sequence[Features]) -> float:
    """How much the detector's knowledge should weigh, by how well each text is explained by all others."""
    counts = np.zeros(len(known), dtype=np.float32)
    for places, weights in features:
        counts[places] += weights
    total = float(counts.sum())
    fits = dict.fromkeys(STRENGTHS, 0.0)
    for places, weights in features:
        others, size = np.maximum(counts[places] - weights, 0), total - float(weights.sum())
        for strength in STRENGTHS:
            flat = FLATTER * strength
            fits[strength] += float(weights @ np.log((others + flat * known[places]) / (size + flat)))
    return max(STRENGTHS, key=fits.__getitem__)


def _margin_of(evidence: Evidence, language: str, sample: _Sample) -> float:
    """As small as loses few of the texts that seem to be right."""
    leads = np.array(
        [evidence.winner(found, language, int(size))[1] for found, size in zip(sample.features, sample.sizes, strict=True)]
    )
    seem_right = leads[leads <= SURELY_OTHER]
    if len(seem_right) < FEWEST_TEXTS:
        return LARGEST_MARGIN
    return float(np.clip(np.quantile(seem_right, 1 - TOLERATED_LOSS), 0.0, LARGEST_MARGIN))
