"""The Python files that exported folders get read and write text as graftmt does."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graftmt.interop.export.standalone.inline_cased_text import Text as InlineCasedText
from graftmt.interop.export.target_registry import text_form
from graftmt.text import Tokenizer, train_subwords

WORDS = ["The", "fox", "HTML", "iP", "été", "ß", "ẞ", "İ", "ǅ", "Ж", "ж", "Ѣ", "食", "ー", "👩", "١", "7", "⁇", "Ωμέγα"]
SYMBOLS = ["▁", "<U>", "<T>", "<E>", "<0x41>", "</s>", "<unk>", " ", "\t", "\u0301", "\u200d", "\0", "\u2585", "\ufffd"]
ANY = st.text() | st.lists(st.sampled_from(WORDS + SYMBOLS)).map("".join)
TEXTS = {"a": ["The quick brown fox HTML été Ωμέγα жук Ѣ 7 ١ ー 食べる iPhone"] * 20}


@pytest.fixture(scope="module", params=[False, True], ids=["unknown", "bytes"])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, InlineCasedText]:
    tokenizer = Tokenizer(train_subwords(TEXTS, merges=40, byte_fallback=request.param), ["a"])
    name, content = text_form(tokenizer.kind).file(tokenizer)
    path: Path = tmp_path_factory.mktemp("text") / name
    path.write_bytes(content)
    return tokenizer, InlineCasedText(str(path))


@settings(max_examples=60)
@given(text=ANY)
def test_inline_casing_outside_graftmt(both: tuple[Tokenizer, InlineCasedText], text: str) -> None:
    ours, theirs = both
    rows = ours.encode(text)
    tokens = theirs.encode(text)
    assert tokens == [ours.symbols[row] for row in rows]
    assert theirs.decode(tokens) == ours.decode(rows)


@given(tokens=st.lists(st.sampled_from(["▁a", "b", "<U>", "<T>", "<E>", "▁", "<unk>", "<0xC3>", "<0xA9>", "▁Ё"])))
def test_what_a_model_may_write_is_read_alike(both: tuple[Tokenizer, InlineCasedText], tokens: list[str]) -> None:
    ours, theirs = both
    assert theirs.decode(tokens) == ours.subwords.decode(tokens)
