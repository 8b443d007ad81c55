from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from graftmt.packs import alignment
from graftmt.packs.alignment import translation_table, translations_of
from graftmt.text import Vocabulary
from graftmt.text.kinds.inline_cased import FIRST_PIECE_ID

WORDS = 50
ROWS = FIRST_PIECE_ID + WORDS + 1
TEXT = Vocabulary([f"▁{number}" for number in range(WORDS + 1)], [])
FUNCTION_WORD = ROWS - 1  # of the base side: in every line, the translation of nothing

Lines = list[tuple[list[int], list[int]]]


def bitext(lines: int, seed: int = 0) -> tuple[Lines, dict[int, int]]:
    """Lines of words drawn unevenly, their translations in any order, each with "the" before it half of the time."""
    draw = random.Random(seed)
    words = list(range(FIRST_PIECE_ID, FIRST_PIECE_ID + WORDS))
    dictionary = dict(zip(words, draw.sample(words, WORDS), strict=True))
    pairs = []
    for _ in range(lines):
        line = draw.choices(words, weights=[1 / (5 + word) for word in words], k=draw.randint(3, 12))
        translated = [
            row for word in draw.sample(line, len(line)) for row in (FUNCTION_WORD, dictionary[word])[draw.random() < 0.5 :]
        ]
        pairs.append((line, translated))
    return pairs, dictionary


def best(table: dict[int, dict[int, float]]) -> dict[int, int]:
    return {row: max(weights, key=weights.__getitem__) for row, weights in table.items()}


def test_a_dictionary_is_recovered() -> None:
    pairs, dictionary = bitext(1000)
    found = best(translation_table(pairs, TEXT, TEXT))
    right = sum(found.get(word) == translation for word, translation in dictionary.items())
    assert right >= 0.95 * WORDS


def test_weights_are_few_sum_to_one_and_come_best_first() -> None:
    pairs, _ = bitext(300)
    table = translation_table(pairs, TEXT, TEXT, iterations=1, top=3)
    assert table
    for weights in table.values():
        values = list(weights.values())
        assert 1 <= len(values) <= 3
        assert sum(values) == pytest.approx(1)
        assert values == sorted(values, reverse=True)


def test_the_sizes_of_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, _ = bitext(200)
    whole = translation_table(pairs, TEXT, TEXT)
    monkeypatch.setattr(alignment, "_CHUNK_CELLS", 100)
    chunked = translation_table(pairs, TEXT, TEXT)
    assert whole.keys() == chunked.keys()
    for row, weights in whole.items():
        assert chunked[row] == pytest.approx(weights)


def test_cells_are_all_pairs_of_tokens_of_a_line() -> None:
    part = alignment._Part.of([(np.array([7, 8]), np.array([9])), (np.array([8]), np.array([9, 7, 7]))], None)
    new_token, base_token = part.cells()
    assert list(zip(new_token.tolist(), base_token.tolist(), strict=True)) == [(0, 0), (1, 0), (2, 1), (2, 2), (2, 3)]


def test_a_sample_comes_from_all_lines_and_is_always_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, _ = bitext(2000)
    table = translation_table(iter(pairs), TEXT, TEXT, max_pairs=500)
    assert table == translation_table(pairs, TEXT, TEXT, max_pairs=500)
    assert table != translation_table(pairs[:500], TEXT, TEXT)
    assert len(alignment._sample(pairs, 500)) == 500
    monkeypatch.setattr(alignment, "_MOST_CELLS", 1000)
    assert 0 < sum(len(new) * len(base) for new, base in alignment._sample(pairs, 500)) <= 1000


def test_symbols_of_both_vocabularies_and_long_lines_take_no_part() -> None:
    pairs, _ = bitext(200)
    marked = [([4, *new, 5], [*base, 6]) for new, base in pairs]
    blank: Lines = [([], [9]), ([9], []), ([5], [6])]
    long: Lines = [([8] * 1000, [9] * 1000)]
    assert translation_table([*marked, *blank * 2, *long * 2], TEXT, TEXT) == translation_table(pairs, TEXT, TEXT)


@pytest.mark.parametrize("pairs", [[], [([], [])], [([8], [9])], [([4], [4])] * 3])
def test_lines_that_say_nothing_give_nothing(pairs: Lines) -> None:
    assert translation_table(pairs, TEXT, TEXT) == {}


@pytest.mark.parametrize("size", [1.0, 1e-60])
def test_what_is_equal_but_for_the_last_digits_goes_by_its_row(size: float) -> None:
    new, base = torch.tensor([7] * 12), torch.arange(40, 52)
    score = torch.full((12,), size / 3, dtype=torch.float64)
    noise = torch.linspace(-4e-16, 4e-16, 12, dtype=torch.float64)
    for one in (noise, -noise, noise * 0):
        assert alignment._best(new, base, score * (1 + one), 8) == {7: dict.fromkeys(range(40, 48), 0.125)}


def test_a_table_in_symbols() -> None:
    vocabulary, base = Vocabulary(["▁", "▁νερό", "▁το"], []), Vocabulary(["▁", "▁water", "▁the"], ["en"])
    table = {8: {8: 0.8, 7: 0.2}, 9: {7: 1.0}}
    assert translations_of(vocabulary, base, table) == {"▁νερό": {"▁water": 0.8}}
