"""A tiny real tokenizer, corpora on disk, and corpora of random tokens in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from graftmt.data import Corpus, TokenizedCorpus
from graftmt.data.cache import TokenizedText
from graftmt.text import Subwords, Tokenizer, train_subwords

SENTENCES = {
    "en": ["the quick brown fox jumps over the lazy dog", "where is the library ?", "a small house by the sea"],
    "fr": ["le renard brun saute par-dessus le chien paresseux", "où est la bibliothèque ?", "une petite maison"],
    "de": ["der schnelle braune Fuchs springt über den faulen Hund", "wo ist die Bibliothek ?", "ein kleines Haus"],
    "ru": ["быстрая лиса прыгает через ленивую собаку", "где библиотека ?", "маленький дом у моря"],
}


@pytest.fixture(scope="session")
def subwords() -> Subwords:
    return train_subwords({language: lines * 10 for language, lines in SENTENCES.items()}, merges=60)


@pytest.fixture(scope="session")
def tokenizer(subwords: Subwords) -> Tokenizer:
    return Tokenizer(subwords, sorted(SENTENCES))


WriteCorpus = Callable[..., Corpus]


@pytest.fixture
def write_corpus(tmp_path: Path) -> WriteCorpus:
    """Writes `split.language.txt` files and opens them as a corpus."""

    def write(texts: Mapping[str, Sequence[str]], split: str = "train", folder: str = "corpus") -> Corpus:
        (tmp_path / folder).mkdir(exist_ok=True)
        for language, lines in texts.items():
            text = "".join(f"{line}\n" for line in lines)
            (tmp_path / folder / f"{split}.{language}.txt").write_text(text, encoding="utf-8")
        return Corpus.open(tmp_path / folder, split)

    return write


@pytest.fixture
def corpus(write_corpus: WriteCorpus) -> Corpus:
    """Four languages, three lines each."""
    return write_corpus(SENTENCES)


RandomCorpus = Callable[..., TokenizedCorpus]


@pytest.fixture(scope="session")
def random_corpus(tokenizer: Tokenizer) -> RandomCorpus:
    """Lines of random tokens with lengths as in real text: log-normal, alike across languages; some lines are missing."""

    def make(lines: int = 2000, *, missing: Mapping[str, float] | None = None, seed: int = 0) -> TokenizedCorpus:
        random = np.random.default_rng(seed)
        common = random.normal(2.8, 0.7, lines)
        texts = {}
        for language in tokenizer.languages:
            lengths = np.exp(common + random.normal(0, 0.2, lines)).astype(np.int64) + 1
            lengths[random.random(lines) < (missing or {}).get(language, 0.0)] = 0
            starts = np.append(0, np.cumsum(lengths))
            ids = random.integers(10, tokenizer.vocabulary.first_code_id, starts[-1]).astype(np.uint16)
            texts[language] = TokenizedText(language, ids, starts, 0.0)
        return TokenizedCorpus("train", texts)

    return make
