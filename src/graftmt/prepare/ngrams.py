"""A character-n-gram classifier of languages, trained in seconds from text one trusts: for those no detector knows. Layer 4.

Naive Bayes over the runs of one to four characters of a text. It knows the languages it was trained on and no other.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graftmt.errors import DataError
from graftmt.text.pretokenization import CharacterTable

LONGEST = 4
"""Characters of the longest n-gram."""
BUCKETS = 1 << 17
"""N-grams are counted by hash; some share a bucket, which costs a little accuracy and bounds the memory."""
SMOOTHING = 0.05
"""Added to each count, so that an n-gram not seen in training rules nothing out."""
FEWEST_CHARACTERS = 2_000
"""Of letters, to learn a language from."""
MOST_CHARACTERS = 2_000_000
"""Of trusted text that are read; more does not make it better."""

Floats: TypeAlias = NDArray[np.float32]

# Marks belong to the letters before them: Hindi's vowel signs, Thai's tones.
_WORDS = CharacterTable(lambda character: character if unicodedata.category(character)[0] in "LM" else " ")


@dataclass(frozen=True, eq=False)
class NgramClassifier:
    """Plain data that travels to other processes: one column of log-probabilities a language."""

    languages: tuple[str, ...]
    table: Floats
    """(bucket, language): log-probability of the n-grams in a bucket."""

    @classmethod
    def train(cls, trusted: Mapping[str, Iterable[str]]) -> NgramClassifier:
        """Learns from lines of each language; at least two languages, for one has to be told from another."""
        if len(trusted) < 2:
            raise DataError(
                f"a classifier needs trusted text in two languages or more; got {', '.join(trusted) or 'none'}. "
                "Give some in a language that wrong lines may be in."
            )
        table = np.empty((BUCKETS, len(trusted)), dtype=np.float32)
        for column, (language, lines) in enumerate(trusted.items()):
            counts = np.zeros(BUCKETS, dtype=np.int64)
            characters = 0
            for line in lines:
                letters = letters_of(line)
                characters += len(letters)
                np.add.at(counts, buckets_of(letters), 1)
                if characters > MOST_CHARACTERS:
                    break
            if characters < FEWEST_CHARACTERS:
                raise DataError(
                    f"the trusted text for {language!r} has {characters:,} letters; at least {FEWEST_CHARACTERS:,} are needed "
                    "to learn a language from: a few dozen lines."
                )
            smoothed = counts + SMOOTHING
            table[:, column] = np.log(smoothed / smoothed.sum())
        return cls(tuple(trusted), table)

    def scores(self, text: str) -> Floats:
        """A score a language, larger is likelier; divided by √n so that differences mean the same in short and long texts."""
        buckets = buckets_of(letters_of(text))
        total: Floats = self.table[buckets].sum(axis=0)
        return total / np.float32(np.sqrt(max(1, len(buckets))))

    def classify(self, text: str) -> str:
        """The likeliest language; the first one for a text without letters."""
        return self.languages[int(self.scores(text).argmax())]

    def winner(self, text: str, language: str) -> tuple[str, float]:
        """The likeliest language, and by how much it beats `language`."""
        scores = self.scores(text)
        best = int(scores.argmax())
        return self.languages[best], float(scores[best] - scores[self.languages.index(language)])


def enough_to_learn(lines: Iterable[str]) -> bool:
    """Whether these lines would do as the trusted text of a language."""
    characters = 0
    return any((characters := characters + len(letters_of(line))) >= FEWEST_CHARACTERS for line in lines)


def letters_of(text: str) -> str:
    """The words alone, in lower case, one space between and around them: numbers and signs belong to no language."""
    words = text.lower().translate(_WORDS).split()
    return f" {' '.join(words)} " if words else ""


def buckets_of(letters: str) -> NDArray[np.int64]:
    """The bucket of each n-gram in the text; the same in every process and on every machine."""
    points = np.frombuffer(letters.encode("utf-32-le", errors="surrogatepass"), dtype=np.uint32)
    found = []
    hashes = np.zeros(len(points), dtype=np.uint32)
    for size in range(1, min(LONGEST, len(points)) + 1):
        # hash of the n characters from here = hash of the n - 1 from here, mixed with the last one
        hashes = (hashes[: len(points) - size + 1] ^ points[size - 1 :]) * np.uint32(0x9E3779B1)
        hashes = hashes ^ (hashes >> np.uint32(15))
        found.append(hashes % np.uint32(BUCKETS))
    return np.concatenate(found).astype(np.int64) if found else np.zeros(0, dtype=np.int64)
