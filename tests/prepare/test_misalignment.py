"""Text out of step is found, and where; clean text of any kind is left alone."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from graftmt.prepare.misalignment import _BLOCK, _GAP, Alignment, _looked_at, check_alignment
from graftmt.text.languages import words_for

Lines = list[str]
SCRIPTS = ("ar", "el", "he", "hi", "ja", "ko", "ru", "th", "tr", "zh")


def names(language: str) -> tuple[Lines, Lines]:
    """Names of languages, countries and currencies, a word or two each, and the same in English: as short as text can be."""
    from babel import Locale

    ours, english = Locale(language), Locale("en")
    kinds = [(getattr(ours, kind), getattr(english, kind)) for kind in ("languages", "territories", "currencies", "scripts")]
    pairs = [(mine[key], theirs[key]) for mine, theirs in kinds for key in theirs if mine.get(key)]
    random.Random(1).shuffle(pairs)
    return [one for one, _ in pairs], [other for _, other in pairs]


def found(first: Sequence[str], second: Sequence[str], language: str) -> Alignment:
    return check_alignment(zip(first, second, strict=True), (language, "en"))


@pytest.mark.parametrize("language", SCRIPTS)
def test_short_names_in_step_are_left_alone_and_all_else_is_found(language: str) -> None:
    ours, english = names(language)
    count = len(ours) - 1
    place = count // 3
    assert found(ours, english, language).kind == "in step"
    behind = found(ours[:count], english[:place] + english[place + 1 :], language)
    assert behind.kind == "shifted" and behind.is_bad
    assert behind.stretches[0].offset == -1 and abs(behind.stretches[0].first - place) < 40
    assert f"{words_for('en') or 'en'} side is one line ahead" in str(behind)
    ahead = found(ours[:place] + ours[place + 1 :], english[:count], language)
    assert ahead.stretches[0].offset == 1 and f"{words_for(language) or language} side is one line" in str(ahead)
    shuffled = found(ours, random.Random(2).sample(english, len(english)), language)
    assert shuffled.kind == "unrelated" and shuffled.is_bad and shuffled.share > 0.9
    exchanged = found(english, ours, language)
    assert exchanged.kind == "exchanged" and exchanged.is_bad


def test_lines_far_out_of_step_are_found_by_their_lengths() -> None:
    ours, english = names("el")
    result = found(ours[:-40], english[40:], "el")
    assert result.kind == "shifted" and result.stretches[0].offset == -40
    assert "40 lines ahead" in str(result)


def test_one_file_twice() -> None:
    _, english = names("el")
    assert found(english, english, "el").kind == "same language"
    assert found(english, english, "de").kind in ("same language", "in step")  # names alone do not show their language


def test_a_hundred_lines_are_too_little_to_tell() -> None:
    ours, english = names("ko")
    result = found(ours[:100], random.Random(2).sample(english[:100], 100), "ko")
    assert result.kind == "too little" and not result.is_bad
    assert "too little text to tell" in str(result)


def test_lines_without_a_translation_do_not_disturb() -> None:
    ours, english = names("ru")
    gaps = ["" if number % 3 else line for number, line in enumerate(ours)]
    assert found(gaps * 2, english * 2, "ru").kind == "in step"
    result = found(gaps * 2, english[1:] + english + english[:1], "ru")
    assert result.kind == "shifted" and result.stretches[0].offset == -1


def test_a_large_text_is_looked_at_in_places_and_the_line_still_found() -> None:
    ours, english = (side * 25 for side in names("de"))
    assert len(ours) > 30_000
    assert found(ours, english, "de").kind == "in step"
    place = 12_345
    result = found(ours[:-1], english[:place] + english[place + 1 :], "de")
    assert result.kind == "shifted" and len(result.stretches) == 1
    assert abs(result.stretches[0].first - place) < 10


@pytest.mark.parametrize("offset", [1, -1])
def test_the_line_is_found_behind_places_that_were_looked_at_and_said_nothing(offset: int) -> None:
    """Lines that are all alike say nothing, so the stretch seems to begin at any of them."""
    ours, english = (list(side) for side in names("de"))
    ours, english = (ours * 8)[:9_000], (english * 8)[:9_000]
    start = _looked_at(len(ours))[_BLOCK + _GAP]
    ours[start - 20 : start + _BLOCK] = ["Ja"] * (_BLOCK + 20)
    english[start - 20 : start + _BLOCK] = ["Yes"] * (_BLOCK + 20)
    place = start + _BLOCK + 80
    del (ours if offset > 0 else english)[place]
    (english if offset > 0 else ours).pop()
    (stretch,) = found(ours, english, "de").stretches
    assert stretch.offset == offset and abs(stretch.first - place) < 10


@pytest.mark.parametrize("place", [0, 150])
def test_lines_of_little_worth_before_a_shift_do_not_hide_where_it_begins(place: int) -> None:
    """Half of the lines at the beginning are all alike: the rest still says that they are in step, or that they are not."""
    ours, english = (list(side[:2_000]) for side in names("ko"))
    for number in range(0, 400, 2):
        ours[number], english[number] = "예", "Yes"
    del english[place]
    (stretch,) = found(ours[:-1], english, "ko").stretches
    assert stretch.offset == -1 and abs(stretch.first - 1 - place) < 10


def test_a_stretch_in_the_middle_of_a_large_text_has_a_beginning_and_an_end() -> None:
    ours, english = (list(side) for side in names("de"))
    ours, english = (ours * 8)[:9_000], (english * 8)[:9_000]
    shifted = [*english[:3_100], *english[3_101:6_200], "nothing", *english[6_200:]]
    (stretch,) = found(ours, shifted, "de").stretches
    assert abs(stretch.first - 3_101) < 10 and abs(stretch.last - 6_200) < 10


def test_the_parts_of_a_huge_text_are_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graftmt.prepare.misalignment._PART", 1000)
    ours, english = (side * 3 for side in names("fr"))
    result = found(ours[:-1], english[1:], "fr")
    assert len(result.stretches) == 1 and "all lines" in str(result)
    late = found(ours[:-1], english[:1500] + english[1501:], "fr")
    assert abs(late.stretches[0].first - 1501) < 10 and len(late.stretches) == 1
    assert late.stretches[0].last == len(ours) - 1


def test_a_stretch_that_is_short_is_told_but_does_not_spoil_all() -> None:
    ours, english = (side * 4 for side in names("fr"))
    result = found(ours, english[:500] + english[501:611] + ["nothing"] + english[611:], "fr")
    assert result.kind == "shifted" and 0 < result.share < 0.02 and not result.is_bad


def test_nothing_at_all() -> None:
    assert found([], [], "fr").kind == "too little"
    assert found([""] * 800, [""] * 800, "fr").kind == "too little"
    assert found(["1"] * 800, ["1"] * 800, "fr").kind != "shifted"
