"""Casing is lossless, and a word is cut where pieces must not merge."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftmt.text.pretokenization import (
    BOUNDARY,
    LOWER,
    NEUTRAL,
    TITLE_MARKER,
    UPPER,
    UPPER_MARKER,
    Segmenter,
    apply_marker,
    case_of,
    lowercase,
    marker_for,
    split_case,
)

# Letters whose case is peculiar, more often than st.text() would draw them.
PECULIAR = st.text(st.sampled_from("aAbBéÉßẞİıIiǅǆǄςσΣKkΩωŉΐﬁა\u1c90\u0345e\u0301ꭰᎠ1 -.▁"))
ANY = st.text() | PECULIAR


def restore(segment: str) -> str:
    marker = marker_for(segment)
    lower = lowercase(segment)
    return apply_marker(lower, marker) if marker else lower


@given(ANY)
def test_segments_are_restored_from_lowercase_and_marker(text: str) -> None:
    segments = split_case(text)
    assert "".join(segments) == text
    assert [restore(segment) for segment in segments] == segments


@given(ANY, st.data())
def test_any_slice_of_a_segment_is_restored(text: str, data: st.DataObject) -> None:
    """BPE cuts segments where it likes."""
    for segment in split_case(text):
        cut = data.draw(st.integers(0, len(segment)))
        assert restore(segment[:cut]) + restore(segment[cut:]) == segment


def test_upper_and_lower_characters_are_exact_pairs() -> None:
    classes = {chr(c): case_of(chr(c)) for c in range(sys.maxunicode + 1)}
    upper = {c for c, case in classes.items() if case == UPPER}
    lower = {c for c, case in classes.items() if case == LOWER}
    assert {c.lower() for c in upper} == lower
    assert {c.upper() for c in lower} == upper
    assert len(upper) > 1000


@pytest.mark.parametrize("character", ["İ", "ı", "ß", "ẞ", "\u212a", "ǅ", "ς", "1", "-", "食", "א", "\u0301"])
def test_neutral_characters_stay(character: str) -> None:
    assert case_of(character) == NEUTRAL
    assert lowercase(character) == character
    assert marker_for(character) is None


@pytest.mark.parametrize(
    ("word", "segments"),
    [
        ("iPhone", ["i", "Phone"]),
        ("HTMLParser", ["HTML", "Parser"]),
        ("HTML", ["HTML"]),
        ("URLs", ["URL", "s"]),
        ("As", ["As"]),
        ("camelCaseURLName", ["camel", "Case", "URL", "Name"]),
        ("Straße", ["Straße"]),
        ("STRAßE", ["STRAßE"]),
        ("İstanbul", ["İstanbul"]),
        ("E\u0301t\u0301", ["E\u0301t\u0301"]),
        ("plain", ["plain"]),
        ("", []),
    ],
)
def test_split(word: str, segments: list[str]) -> None:
    assert split_case(word) == segments


@pytest.mark.parametrize(
    ("piece", "marker"),
    [
        ("I", UPPER_MARKER),
        ("▁I", UPPER_MARKER),
        ("HTML", UPPER_MARKER),
        ("▁Phone", TITLE_MARKER),
        ("«Été", TITLE_MARKER),
        ("phone", None),
        ("42", None),
    ],
)
def test_marker_tests_upper_first(piece: str, marker: str | None) -> None:
    assert marker_for(piece) == marker


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
