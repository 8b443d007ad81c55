"""Our own kind of text: each symbol has its row, and text comes back from rows."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftmt.errors import ConfigError, DataError, LanguageError
from graftmt.text import (
    BEGINNING_ID,
    END_ID,
    PADDING_ID,
    UNKNOWN_ID,
    Subwords,
    Tokenizer,
    Vocabulary,
    normalise,
    train_subwords,
)


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


@given(text=st.text())
def test_text_comes_back_from_ids(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == normalise(text)
    assert all(UNKNOWN_ID < row < tokenizer.vocabulary.first_code_id for row in ids)


@given(text=st.text())
def test_ids_are_the_rows_of_the_pieces(tokenizer: Tokenizer, text: str) -> None:
    symbols = [tokenizer.vocabulary.symbol(row) for row in tokenizer.encode(text)]
    assert symbols == tokenizer.subwords.encode(text)


def test_special_symbols_in_text_are_text(tokenizer: Tokenizer) -> None:
    text = "</s> <pad> <lang:fr> <unk> <U>"
    ids = tokenizer.encode(text)
    assert not {END_ID, PADDING_ID, UNKNOWN_ID, tokenizer.vocabulary.code("fr")} & set(ids)
    assert tokenizer.decode(ids) == text


@given(data=st.data())
def test_decode_never_raises(tokenizer: Tokenizer, data: st.DataObject) -> None:
    rows = st.integers(-2, len(tokenizer) + 5) | st.integers(0, 300)
    tokenizer.decode(data.draw(st.lists(rows))).encode("utf-8")


def test_decode_skips_what_has_no_text_and_stops_at_the_end(tokenizer: Tokenizer) -> None:
    fox, dogs = tokenizer.encode("The fox"), tokenizer.encode("dogs")
    code = tokenizer.vocabulary.code("fr")
    assert tokenizer.decode([0, code, PADDING_ID, *fox, code, *dogs, END_ID, *dogs]) == "The fox dogs"
    assert tokenizer.decode([END_ID, *fox]) == ""
    assert tokenizer.decode([*fox, UNKNOWN_ID, len(tokenizer), -1]) == "The fox⁇⁇⁇"
    assert tokenizer.decode(iter(fox)) == "The fox"


def test_prefixes_by_placement(with_bytes: Subwords) -> None:
    source = Tokenizer(with_bytes, ["en", "fr"], "source")
    english, french = source.vocabulary.code("en"), source.vocabulary.code("fr")
    assert source.source_prefix("en", "fr") == [french]
    assert source.decoder_prefix("fr") == [END_ID]
    decoder = Tokenizer(with_bytes, ["en", "fr"], "decoder")
    assert decoder.source_prefix("en", "fr") == [english]
    assert decoder.decoder_prefix("fr") == [END_ID, french]


@pytest.mark.parametrize("placement", ["source", "decoder"])
def test_unknown_target_languages_are_refused_in_both_places(with_bytes: Subwords, placement: str) -> None:
    tokenizer = Tokenizer(with_bytes, ["en", "fr"], placement)  # type: ignore[arg-type]
    with pytest.raises(LanguageError, match=r"'kab' .*: en, fr"):
        tokenizer.decoder_prefix("kab")
    with pytest.raises(LanguageError):
        tokenizer.source_prefix("kab", "kab")


def test_forbidden_rows_are_those_no_target_has(tokenizer: Tokenizer) -> None:
    symbols = {tokenizer.vocabulary.symbol(row) for row in tokenizer.forbidden}
    assert symbols == {"<s>", "<pad>", "<unk>", "<lang:de>", "<lang:en>", "<lang:fr>", "<lang:pt_br>"}


def test_unknown_placement(with_bytes: Subwords) -> None:
    with pytest.raises(ConfigError, match="did you mean 'decoder'"):
        Tokenizer(with_bytes, ["en"], "decodr")  # type: ignore[arg-type]


def test_fingerprint_tells_tokenizers_apart(plain: Subwords, with_bytes: Subwords) -> None:
    tokenizers = [
        Tokenizer(plain, ["en", "fr"]),
        Tokenizer(plain, ["fr", "en"]),
        Tokenizer(plain, ["en"]),
        Tokenizer(plain, ["en", "fr"], "decoder"),
        Tokenizer(with_bytes, ["en", "fr"]),
    ]
    assert len({tokenizer.fingerprint for tokenizer in tokenizers}) == len(tokenizers)
    assert Tokenizer(Subwords(plain.model_bytes), ("en", "fr")).fingerprint == tokenizers[0].fingerprint
    assert len(tokenizers[0].fingerprint) == 64


def test_pickled_is_the_same_and_leaves_caches_behind(plain: Subwords) -> None:
    tokenizer = Tokenizer(plain, ["en", "fr"], "decoder")
    before = len(pickle.dumps(tokenizer))
    expected = tokenizer.encode("The quick brown fox")
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.fingerprint == tokenizer.fingerprint
    assert copy.encode("The quick brown fox") == expected
    assert len(pickle.dumps(tokenizer)) == before


def test_unknown_rate_counts_pieces() -> None:
    model = train_subwords({"en": ["a b"] * 10}, merges=2)  # "▁a" and "▁b"
    tokenizer = Tokenizer(model, ["en"])
    assert tokenizer.encode("a x") == [*tokenizer.encode("a"), tokenizer.vocabulary.id("▁"), UNKNOWN_ID]
    assert tokenizer.unknown_rate(["a x", "b"]) == 1 / 4
    assert tokenizer.unknown_rate([]) == tokenizer.unknown_rate([""]) == 0.0


def test_bytes_are_counted_apart() -> None:
    model = train_subwords({"en": ["a b"] * 10}, merges=2, byte_fallback=True)
    counts = Tokenizer(model, ["en"]).count(["a é"])
    assert (counts.lines, counts.pieces, counts.unknown, counts.bytes) == (1, 4, 0, 2)
    assert counts.unknown_rate == 0.0
    assert counts.byte_rate == 1 / 2
