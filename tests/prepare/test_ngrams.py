"""A classifier learns languages from a few lines, the same everywhere, and says what it cannot learn from."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftmt.errors import DataError
from graftmt.prepare.ngrams import BUCKETS, NgramClassifier, buckets_of, enough_to_learn, letters_of

ENGLISH = ["The dog saw the cat in the garden", "We were reading an old book this evening", "They think that it is not there"]
GERMAN = [
    "Der Hund sah die Katze im Garten",
    "Wir haben heute Abend ein altes Buch gelesen",
    "Sie denken, dass es nicht da ist",
]


@pytest.fixture(scope="module")
def classifier() -> NgramClassifier:
    return NgramClassifier.train({"en": ENGLISH * 30, "de": GERMAN * 30})


def test_it_tells_its_languages_apart(classifier: NgramClassifier) -> None:
    assert classifier.classify("the evening in the garden") == "en"
    assert classifier.classify("DER ABEND IM GARTEN 2024") == "de"
    winner, margin = classifier.winner("Das Buch ist nicht im Garten", "en")
    assert winner == "de" and margin > 1
    assert classifier.winner("Das Buch ist nicht im Garten", "de") == ("de", 0.0)


@given(st.text(max_size=60))
def test_any_text_has_finite_scores(text: str) -> None:
    small = NgramClassifier.train({"en": ENGLISH * 30, "de": GERMAN * 30}) if not _made else _made[0]
    _made[:] = [small]
    scores = small.scores(text)
    assert scores.shape == (2,) and bool((scores <= 0).all()) and bool((scores > -1e4).all())


_made: list[NgramClassifier] = []


def test_what_is_no_letter_does_not_count(classifier: NgramClassifier) -> None:
    assert list(classifier.scores("12 + 30 = {}")) == [0, 0]
    assert list(classifier.scores("the (dog) 12")) == list(classifier.scores("The dog!"))
    assert letters_of("हिन्दी भाषा, ไทย") == " हिन्दी भाषा ไทย "  # vowel signs stay with their letters


def test_buckets_are_those_of_all_runs_of_one_to_four_characters() -> None:
    assert len(buckets_of(" abc ")) == 5 + 4 + 3 + 2
    assert len(buckets_of("")) == 0
    assert len(buckets_of("a")) == 1
    assert buckets_of(" the ").max() < BUCKETS
    assert set(buckets_of("bc")) <= set(buckets_of("abcd"))


def test_it_is_the_same_in_another_process(classifier: NgramClassifier) -> None:
    copy = pickle.loads(pickle.dumps(classifier))
    assert list(copy.scores("the dog")) == list(classifier.scores("the dog"))
    code = "from graftmt.prepare.ngrams import buckets_of; print(buckets_of(' ελ ').tolist())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert done.stdout.strip() == str(buckets_of(" ελ ").tolist()), done.stderr


def test_too_little_text_or_one_language_is_an_error() -> None:
    with pytest.raises(DataError, match="two languages or more; got en"):
        NgramClassifier.train({"en": ENGLISH * 30})
    with pytest.raises(DataError, match="trusted text for 'de' has"):
        NgramClassifier.train({"en": ENGLISH * 30, "de": GERMAN})
    assert enough_to_learn(ENGLISH * 30) and not enough_to_learn(ENGLISH)
