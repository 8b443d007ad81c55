"""Views of a corpus name the directions they are said to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftmt.data import Direction, parse_direction, select_directions
from graftmt.errors import ConfigError, LanguageError

LANGUAGES = ["en", "fr", "de", "zh-hant"]
CODES = st.from_regex(r"[a-z]{2}(-[a-z]{2,4})?", fullmatch=True)


def test_english_centric_is_english_with_each_other_both_ways() -> None:
    directions = select_directions("english-centric", LANGUAGES)
    assert len(directions) == len(set(directions)) == 2 * (len(LANGUAGES) - 1)
    assert all("en" in direction and direction.source != direction.target for direction in directions)


def test_the_centre_may_be_another_language() -> None:
    directions = set(select_directions("french-centric", [*LANGUAGES, "french"]))
    assert directions == set(select_directions("english-centric", [*LANGUAGES, "french"], pivot="french"))
    assert all("french" in direction for direction in directions)


def test_multi_parallel_is_every_ordered_pair() -> None:
    directions = select_directions("multi-parallel", LANGUAGES)
    assert len(directions) == len(set(directions)) == len(LANGUAGES) * (len(LANGUAGES) - 1)
    assert all(direction.source != direction.target for direction in directions)


def test_one_way_views_together_are_the_centric_view() -> None:
    into, out_of = select_directions("to-zh-hant", LANGUAGES), select_directions("from-zh-hant", LANGUAGES)
    assert {direction.target for direction in into} == {direction.source for direction in out_of} == {"zh-hant"}
    assert {*into, *out_of} == set(select_directions("zh-hant-centric", LANGUAGES))


def test_lists_are_taken_in_order_without_repeats() -> None:
    expected = [Direction("fr", "en"), Direction("en", "zh-hant")]
    assert select_directions("fr-en, en-zh-hant,fr-en", LANGUAGES) == expected
    assert select_directions(["fr-en", "en-zh-hant", "fr-en"], LANGUAGES) == expected


@given(languages=st.lists(CODES, min_size=2, max_size=6, unique=True))
def test_what_is_written_is_what_is_parsed(languages: list[str]) -> None:
    for direction in select_directions("multi-parallel", languages):
        parsed = parse_direction(str(direction), languages)
        assert str(parsed) == str(direction)  # a code with a hyphen may be cut in two ways, both known
        assert set(parsed) <= set(languages)


@pytest.mark.parametrize(
    ("text", "unknown"), [("en-fx", "fx"), ("fx-en", "fx"), ("zh-hant-fx", "fx"), ("fx-zh-hant", "fx"), ("english", "english")]
)
def test_an_unknown_language_is_named(text: str, unknown: str) -> None:
    with pytest.raises(LanguageError, match=f"'{text}': '{unknown}' is not a language here"):
        parse_direction(text, LANGUAGES)


def test_the_nearest_language_is_offered() -> None:
    with pytest.raises(LanguageError, match=r"did you mean 'zh-hant'\?"):
        parse_direction("en-zh-hans", LANGUAGES)
    with pytest.raises(LanguageError, match=r"to-zh-hans: 'zh-hans' .* did you mean 'zh-hant'\?"):
        select_directions("to-zh-hans", LANGUAGES)
    with pytest.raises(LanguageError, match=r"'zh-hans' .* did you mean 'zh-hant'\?"):
        select_directions("zh-hans-centric", LANGUAGES)


@pytest.mark.parametrize("language", ["en", "zh-hant", "qa"])
def test_one_language_is_no_direction(language: str) -> None:
    with pytest.raises(LanguageError, match=f"'{language}' is one language.*such as en-fr") as caught:
        parse_direction(language, LANGUAGES, {"qa": "no text in 'qa'."})
    assert "did you mean" not in str(caught.value)


def test_a_language_that_is_lacking_here_has_its_own_reason() -> None:
    lacking = {"qa": "no text in 'qa'."}
    for view in ("en-qa", "qa-en", "en-fr,qa-zh-hant", "to-qa", "from-qa", "qa-centric", ["qa-fr"]):
        with pytest.raises(LanguageError, match=r": no text in 'qa'\.$"):
            select_directions(view, LANGUAGES, lacking=lacking)
    with pytest.raises(LanguageError, match="'xx' is not a language here"):
        select_directions("qa-xx", LANGUAGES, lacking=lacking)
    assert select_directions("en-fr", LANGUAGES, lacking=lacking) == [Direction("en", "fr")]


def test_a_language_is_not_translated_into_itself() -> None:
    with pytest.raises(LanguageError, match="to itself"):
        parse_direction("en-en", LANGUAGES)


@pytest.mark.parametrize("view", ["", ",", []])
def test_no_direction_at_all_is_an_error(view: str | list[str]) -> None:
    with pytest.raises(ConfigError, match="no directions were given"):
        select_directions(view, LANGUAGES)


def test_a_language_called_to_is_a_language() -> None:
    assert select_directions("to-en", ["en", "to", "fr"]) == [Direction("to", "en")]
