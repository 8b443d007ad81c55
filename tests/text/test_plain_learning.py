"""Plain, cased SentencePiece texts that are learned: deterministic, balanced like ours, the same in other programs."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from graftmt.errors import ConfigError, DataError
from graftmt.text import normalise
from graftmt.text.kinds import text_kind
from graftmt.text.kinds.sentencepiece import FILE, SentencePieceText

LINES = ["The quick brown Fox HTML été Ωμέγα жук Ѣ 7 ١ ー 食べる iPhone, «ça» 3.14!"] * 20
OPTIONS = {"merges": 60, "temperature": 5.0, "min_character_count": 3, "byte_fallback": False, "pieces": None}


def learn(**changes: object) -> SentencePieceText:
    text = text_kind("sentencepiece").learn({"en": LINES}, sizes={"en": 20}, **{**OPTIONS, **changes})
    assert isinstance(text, SentencePieceText)
    return text


@pytest.fixture(scope="module")
def with_bytes() -> SentencePieceText:
    return learn(byte_fallback=True)


def test_the_same_lines_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = learn(), learn()
    assert first.files() == second.files() and first.fingerprint == second.fingerprint
    assert pickle.loads(pickle.dumps(first)) == first
    (tmp_path / FILE).write_bytes(first.files()[FILE])
    assert text_kind("sentencepiece").open_file(tmp_path / FILE) == first


@settings(max_examples=100)
@given(text=st.text())
def test_with_bytes_only_whitespace_is_normalised(with_bytes: SentencePieceText, text: str) -> None:
    if "▁" not in text and "\0" not in text:  # a boundary that is text comes back as a space
        assert with_bytes.decode(with_bytes.encode(text)) == normalise(text)


def test_case_is_in_the_pieces() -> None:
    text = learn()
    assert {"▁The", "▁Fox", "▁quick"} <= set(text.symbols)
    assert not {"<U>", "<T>", "▁the"} & set(text.symbols)


def test_letters_digits_and_marks_are_not_merged() -> None:
    assert not {"e,", "▁3.", "4!", "▁«ç"} & set(learn(merges=200).symbols)


def test_sentencepiece_alone_gives_the_same_pieces() -> None:
    text = learn()
    model = sentencepiece.SentencePieceProcessor(model_proto=text.files()[FILE])
    for line in ["The  quick\u00a0brown\tFox ", "été, HTML 7\u3000жук"]:
        assert model.encode(line, out_type=str) == [text.symbols[row] for row in text.encode(line)]


def test_rare_characters_are_left_out() -> None:
    assert "ъ" not in text_kind("sentencepiece").learn({"a": [*LINES, "подъём"]}, sizes={"a": 21}, **OPTIONS).symbols


@pytest.mark.parametrize(("changes", "error"), [({"min_character_count": 10_000}, DataError), ({"pieces": 3}, ConfigError)])
def test_impossible_requests_are_errors(changes: dict[str, int], error: type[Exception]) -> None:
    with pytest.raises(error):
        learn(**changes)
