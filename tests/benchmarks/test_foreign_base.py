"""The foreign model of the benchmark reads what NLLB-200 reads: code, text, end; the decoder starts from the end and a code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from graftmt.text.foreign.language_codes import NLLB

ROOT = Path(__file__).parents[2]
CODES = {"eng_Latn": 90, "fra_Latn": 91, "rus_Cyrl": 92}
TOKENS = {
    "eng_Latn": [[10, 11], [12], [], [13, 14, 15]],
    "fra_Latn": [[20], [], [21, 22], [23, 24]],
    "rus_Cyrl": [[], [30, 31], [32], [33] * 40],
}


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from peers import nllb_training

    yield nllb_training


def test_rows_of_a_batch(peer: ModuleType) -> None:
    import numpy as np

    pairs = peer.Pairs(TOKENS, CODES, longest=30)
    batch = pairs.batch(np.array([0, 3]), np.array([0, 1]), np.array([1, 0]))
    assert batch["input_ids"].tolist() == [[90, 10, 11, 2], [91, 23, 24, 2]]
    assert batch["decoder_input_ids"].tolist() == [[2, 91, 20, 1, 1], [2, 90, 13, 14, 15]]
    assert batch["labels"].tolist() == [[91, 20, 2, -100, -100], [90, 13, 14, 15, 2]]


def test_batches_hold_pairs_that_have_text_on_both_sides(peer: ModuleType) -> None:
    pairs = peer.Pairs(TOKENS, CODES, longest=30)
    options = peer.TrainingOptions(seconds=1, batch_tokens=40, device="cpu")
    seen = set()
    for _, batch in zip(range(30), pairs.batches(options, pool=200), strict=False):
        assert batch["input_ids"].numel() <= 40 and batch["labels"].numel() <= 40
        for source, labels in zip(batch["input_ids"].tolist(), batch["labels"].tolist(), strict=True):
            languages = {code: language for language, code in CODES.items()}
            read, written = ([row for row in rows[1:] if row not in (1, 2, -100)] for rows in (source, labels))
            line = TOKENS[languages[source[0]]].index(read)
            assert TOKENS[languages[labels[0]]][line] == written != []
            seen.add((source[0], labels[0]))
    assert len(seen) == 6  # each direction; Russian line 3 is too long


def test_the_corpus_gets_names_that_nllb_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import foreign_text

    assert set(foreign_text.BASE_LANGUAGES.values()) | set(foreign_text.NEW_LANGUAGES.values()) <= set(NLLB)
    assert not set(foreign_text.BASE_LANGUAGES.values()) & set(foreign_text.NEW_LANGUAGES.values())
    assert "foreign_text" in sys.modules
