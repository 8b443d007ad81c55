from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftmt.text.casing import (
    LOWER,
    NEUTRAL,
    TITLE_MARKER,
    UPPER,
    UPPER_MARKER,
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
