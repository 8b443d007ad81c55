"""Tiny real models, trained once per session on a few sentences in many scripts."""

from __future__ import annotations

import pytest

from graftmt.text import Subwords, Tokenizer, train_subwords

TEXTS = {
    "en": ["The quick brown fox jumps over 12 lazy dogs.", "HTML pages: see the URLs of <b>your</b> iPhone 15!"],
    "fr": ["Où est la bibliothèque ? Elle est fermée à 18 h.", "L'été dernier, nous étions à Paris."],
    "de": ["Die Straße ist groß; STRASSE ohne Eszett.", "Schöne Grüße aus München"],
    "ru": ["Быстрая коричневая лиса прыгает через ленивую собаку.", "В Москве 25 градусов"],
    "uk": ["П\u02bcять хвилин до Києва", "м\u02bcята"],
    "el": ["Η γρήγορη καφέ αλεπού", "Ο ΚΌΣΜΟΣ είναι όμορφος"],
    "ar": ["الثعلب البني السريع يقفز فوق الكلب", "١٢٣ كتاب"],
    "he": ["השועל החום המהיר קופץ", "שלום עולם"],
    "ja": ["すばやい茶色のキツネが犬を飛び越える。", "ラーメンを食べる", "らーめん"],
    "hi": ["तेज़ भूरी लोमड़ी आलसी कुत्ते पर कूदती है", "नमस्ते दुनिया"],
    "emoji": ["👩‍👩‍👧 family 👍🏽 ok", "a ▁ b x▁y 2▁3"],
}

MERGES = 450


@pytest.fixture(scope="session")
def plain() -> Subwords:
    return _train(byte_fallback=False)


@pytest.fixture(scope="session")
def with_bytes() -> Subwords:
    return _train(byte_fallback=True)


@pytest.fixture(scope="session")
def tokenizer(with_bytes: Subwords) -> Tokenizer:
    return Tokenizer(with_bytes, ["de", "en", "fr", "pt_br"])


def _train(*, byte_fallback: bool) -> Subwords:
    # Repeated, so that merges are learned; a min_character_count of 10 keeps all characters of the sentences.
    texts = {language: lines * 10 for language, lines in TEXTS.items()}
    return train_subwords(texts, merges=MERGES, byte_fallback=byte_fallback)
