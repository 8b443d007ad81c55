from __future__ import annotations

import pytest

from graftmt.errors import ConfigError, DataError, LanguageError
from graftmt.text import BEGINNING_ID, END_ID, PADDING_ID, UNKNOWN_ID, Subwords, Vocabulary


def test_rows_are_in_order(with_bytes: Subwords) -> None:
    vocabulary = Vocabulary(with_bytes.pieces, ["en", "fr"])
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<U>", "<T>", "<E>"]
    assert list(vocabulary.symbols) == [*specials, *with_bytes.pieces, "<lang:en>", "<lang:fr>"]
    assert (BEGINNING_ID, PADDING_ID, END_ID, UNKNOWN_ID) == (0, 1, 2, 3)
    ids = [vocabulary.beginning_id, vocabulary.padding_id, vocabulary.end_id, vocabulary.unknown_id]
    assert [vocabulary.symbol(row) for row in ids] == specials[:4]
    assert vocabulary.symbols.count("<unk>") == 1
    assert len(vocabulary) == 7 + len(with_bytes.pieces) + 2
    assert "<0x00>" in with_bytes.pieces


def test_ids_and_symbols_are_inverse(plain: Subwords) -> None:
    vocabulary = Vocabulary(plain.pieces, ["en", "fr"])
    assert [vocabulary.id(vocabulary.symbol(row)) for row in range(len(vocabulary))] == list(range(len(vocabulary)))
    assert vocabulary.ids(["<U>", "<lang:fr>"]) == [4, len(vocabulary) - 1]
    assert vocabulary.symbol(len(vocabulary)) == vocabulary.symbol(-1) == "<unk>"
    with pytest.raises(DataError, match="'no such'"):
        vocabulary.id("no such")


def test_codes_come_last_so_a_new_language_moves_no_row() -> None:
    before, after = Vocabulary(["▁", "a"], ["en", "fr"]), Vocabulary(["▁", "a"], ["en", "fr", "el"])
    assert after.symbols[: len(before)] == before.symbols
    assert after.code("el") == len(before)


def test_unknown_language_is_named_with_the_known_ones() -> None:
    vocabulary = Vocabulary(["▁"], ["en", "de", "pt_br"])
    with pytest.raises(LanguageError) as error:
        vocabulary.code("pt-br")
    assert str(error.value) == "language 'pt-br' is not known here; known: de, en, pt_br; did you mean 'pt_br'?"
    with pytest.raises(LanguageError, match=r"'kab' .*: de, en, pt_br$"):
        vocabulary.code("kab")


@pytest.mark.parametrize("languages", [["en", "en"], [""], ["e n"], ["en>"], [" en"]])
def test_impossible_languages(languages: list[str]) -> None:
    with pytest.raises((ConfigError, LanguageError)):
        Vocabulary(["▁"], languages)


@pytest.mark.parametrize("pieces", [["a", "a"], ["<U>"], ["<lang:en>"]])
def test_pieces_that_clash(pieces: list[str]) -> None:
    with pytest.raises(DataError):
        Vocabulary(pieces, ["en"])
