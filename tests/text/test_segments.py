from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftmt.text.casing import lowercase
from graftmt.text.segments import BOUNDARY, Segmenter

WORDS = st.text(min_size=1).map(lambda text: "".join(text.split())).filter(bool)


@given(WORDS)
def test_segments_join_to_the_word(word: str) -> None:
    assert "".join(Segmenter()(word)) == BOUNDARY + word
    assert "".join(Segmenter(frozenset("abc▁"))(word)) == BOUNDARY + word


@given(st.text("aAbBcCxX1é▁", min_size=1))
def test_characters_outside_the_alphabet_stand_alone(word: str) -> None:
    alphabet = frozenset("abc▁")
    first, *rest = Segmenter(alphabet)(word)
    assert first == BOUNDARY or set(lowercase(first[1:])) <= alphabet
    for segment in rest:
        outside = set(lowercase(segment)) - alphabet
        assert len(segment) == 1 if outside or BOUNDARY in segment else True


@pytest.mark.parametrize(
    ("word", "segments"),
    [
        ("hello", ["▁hello"]),
        ("abc123", ["▁abc", "123"]),
        ("(see)", ["▁(", "see", ")"]),
        ("<lang:fr>", ["▁<", "lang", ":", "fr", ">"]),
        ("Windowsの設定をアップデート", ["▁Windows", "の", "設定", "を", "アップデート"]),
        ("らーめん", ["▁らーめん"]),
        ("人々", ["▁人々"]),
        ("ﾃｽﾄテスト", ["▁ﾃｽﾄテスト"]),
        ("ａｂｃabc", ["▁ａｂｃabc"]),
        ("caf\u00e9кафе", ["▁café", "кафе"]),
        ("п\u02bcять", ["▁п\u02bcять"]),
        ("\u02bbokina", ["▁\u02bbokina"]),
        ("12\u02bc", ["▁12", "\u02bc"]),
        ("e\u0301e1\u0301", ["▁e\u0301e", "1\u0301"]),
        ("می\u200cخواهم", ["▁می\u200cخواهم"]),
        ("👩\u200d👧ok", ["▁👩\u200d👧", "ok"]),
        ("٣3", ["▁٣", "3"]),
        ("▁", ["▁", "▁"]),
        ("a▁▁b", ["▁a", "▁", "▁", "b"]),
        ("iPhone15Pro", ["▁i", "Phone", "15", "Pro"]),
    ],
)
def test_named_cuts(word: str, segments: list[str]) -> None:
    assert Segmenter()(word) == segments


def test_boundary_stands_alone_before_an_unknown_character() -> None:
    assert Segmenter(frozenset("ab▁"))("xab") == ["▁", "x", "ab"]
    assert Segmenter(frozenset("ab▁"))("aXb") == ["▁a", "X", "b"]
    assert Segmenter(frozenset("ab▁"))("AB") == ["▁AB"]
