from __future__ import annotations

import warnings

import pytest

from graftmt.errors import ConfigError, DataError
from graftmt.text import Subwords, train_subwords
from graftmt.text.learning import balance, count_segments

regex = pytest.importorskip("regex")  # knows Unicode scripts, where our code goes by character names


def kinds(piece: str) -> set[str]:
    """The scripts of letters, the scripts of digits, and "other", of a piece without marks and shared letters."""
    found = set()
    for character in regex.sub(r"[\p{M}\u200c\u200d]", "", piece.removeprefix("▁")):
        if regex.match(r"\p{L}", character):
            shared = regex.match(r"\p{Script=Common}", character)
            script = next((s for s in SCRIPTS if regex.match(rf"\p{{Script={s}}}", character)), "no script")
            found.add("shared letter" if shared else f"letter {script}")
        else:
            found.add("digit" if regex.match(r"\p{N}", character) else "other")
    if any(kind.startswith("letter ") for kind in found):
        found.discard("shared letter")
    return found


SCRIPTS = ["Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Han", "Hiragana", "Katakana", "Devanagari"]


def test_no_piece_mixes_scripts_or_kinds(plain: Subwords) -> None:
    merged = [piece for piece in plain.pieces if len(piece) > 1]
    assert len(merged) == 450
    assert [piece for piece in merged if len(kinds(piece)) > 1] == []
    learned = set().union(*map(kinds, merged))
    assert learned >= {"letter Latin", "letter Cyrillic", "letter Arabic", "letter Hiragana", "other"}


def test_no_piece_has_upper_case_or_an_inner_boundary(plain: Subwords) -> None:
    assert [piece for piece in plain.pieces if piece != piece.lower()] == []
    assert [piece for piece in plain.pieces if "▁" in piece[1:]] == []


def test_what_is_mixed_in_the_text_is_not_merged() -> None:
    with pytest.warns(UserWarning, match="merges only"):
        model = train_subwords({"xx": ["аbаb1212<<<aB食べ"] * 50}, merges=1000)
    assert [piece for piece in model.pieces if len(kinds(piece)) > 1] == []
    assert {"1212", "<<<"} <= set(model.pieces)


def test_minimum_character_count_is_exact() -> None:
    lines = ["abab"] * 5 + ["x"] * 9 + ["X"] + ["y"] * 9 + ["ß"] * 10
    model = train_subwords({"xx": lines}, merges=1, min_character_count=10)
    assert model.alphabet == {"▁", "a", "b", "x", "ß"}  # x: 9 lower and 1 upper


def test_characters_are_counted_over_all_languages_before_balancing() -> None:
    texts = {"big": ["ab"] * 1000 + ["x"] * 6, "small": ["ab x"] * 4}
    assert "x" in train_subwords(texts, merges=1).alphabet
    texts = {"big": ["ab"] * 1000 + ["x"] * 5, "small": ["ab x"] * 4}
    assert "x" not in train_subwords(texts, merges=1).alphabet


def test_rare_characters_are_cut_out_of_their_words() -> None:
    lines = ["foo"] * 20 + ["foo☃bar"] * 3
    model = train_subwords({"xx": lines}, merges=4, min_character_count=3)
    assert "☃" in model.alphabet
    model = train_subwords({"xx": lines}, merges=4, min_character_count=4)
    assert "☃" not in model.alphabet | set("".join(model.pieces))
    assert model.encode("foo☃foo") == ["▁foo", "<unk>", *model.encode("xfoo")[2:]]


def test_temperature_scales_counts_by_lines() -> None:
    counts = {"big": {"▁a": 3200, "▁c": 10}, "small": {"▁b": 7, "▁c": 1}}
    lines = {"big": 3200, "small": 100}
    assert balance(counts, lines, 1.0) == pytest.approx({"▁a": 3200, "▁c": 11, "▁b": 7})
    # 3200 / 100 = 2^5, so at T=5 the big language has twice the weight of the small one: 2/3 and 1/3 of 3300 lines.
    scaled = balance(counts, lines, 5.0)
    assert scaled == pytest.approx({"▁a": 2200, "▁b": 7 * 11, "▁c": 10 * 2200 / 3200 + 11})


def test_temperature_goes_by_all_lines_where_a_sample_was_counted() -> None:
    counts = {"big": {"▁a": 50}, "small": {"▁b": 100}}
    scaled = balance(counts, {"big": 50, "small": 100}, 5.0, sizes={"big": 3200, "small": 100})
    assert scaled == pytest.approx({"▁a": 100, "▁b": 50})
    assert balance(counts, {"big": 50, "small": 100}, 5.0, sizes={"big": 50, "small": 100}) == balance(
        counts, {"big": 50, "small": 100}, 5.0
    )


def test_temperature_decides_which_merges_are_learned() -> None:
    texts = {"big": ["abab cdcd"] * 3200, "small": ["xyxyxyxyxyxyxy"] * 100}
    proportional = train_subwords(texts, merges=4, temperature=1.0)
    balanced = train_subwords(texts, merges=4, temperature=5.0)
    assert "xy" not in proportional.pieces
    assert "xy" in balanced.pieces


def test_counting_segments() -> None:
    segments, lines = count_segments(["The the iPhone", "", "  ", "12a"])
    assert lines == 2
    assert segments == {"▁the": 2, "▁i": 1, "phone": 1, "▁12": 1, "a": 1}


def test_same_input_same_bytes() -> None:
    def texts(order: int) -> dict[str, list[str]]:
        pairs = [("en", ["The fox and the dog"] * 10), ("fr", ["Le renard et le chien"] * 10)]
        return dict(pairs[::order])

    models = [train_subwords(texts(order), merges=20).model_bytes for order in (1, 1, -1)]
    assert models[0] == models[1] == models[2]
    assert b"/" not in models[0]  # no path of the machine that trained it


def test_number_of_pieces_is_as_asked() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = train_subwords({"en": ["the fox jumps"] * 10}, merges=5)
        none = train_subwords({"en": ["the fox jumps"] * 10}, merges=0)
        with_bytes = train_subwords({"en": ["the fox jumps"] * 10}, merges=5, byte_fallback=True)
    assert len(model.pieces) == len(model.alphabet) + 5
    assert set(none.pieces) == none.alphabet
    assert len(with_bytes.pieces) == len(with_bytes.alphabet) + 5 + 256
    assert with_bytes.byte_fallback and not model.byte_fallback


@pytest.mark.parametrize("byte_fallback", [False, True])
def test_a_number_of_pieces_holds_whatever_the_alphabet_is(byte_fallback: bool) -> None:
    for extra in ("", "xyz", "食べる"):
        model = train_subwords({"en": [f"the fox jumps {extra}"] * 10}, merges=1, pieces=280, byte_fallback=True)
        assert len(model.pieces) == 280
    plain = {"en": ["the fox jumps"] * 10}
    with pytest.raises(ConfigError, match=r"5 pieces .*single characters"):
        train_subwords(plain, merges=1, pieces=5, byte_fallback=byte_fallback)


def test_too_little_text_for_the_merges_is_said() -> None:
    with pytest.warns(UserWarning, match=r"supports [\d,]+ merges only, 5,000 were asked"):
        model = train_subwords({"en": ["the fox"] * 10}, merges=5000)
    assert model.decode(model.encode("The fox")) == "The fox"


def test_characters_sentencepiece_cannot_learn_are_left_out() -> None:
    odd = "\0\u2585\ud800"
    model = train_subwords({"xx": [f"ab\x01{c}\ufffd\ufeffcd" for c in odd] * 20}, merges=2, byte_fallback=True)
    assert not set(odd) & model.alphabet
    assert {"\x01", "\ufffd", "\ufeff"} < model.alphabet
    assert model.decode(model.encode("a\0b\u2585")) == "a\0b\u2585"


def test_long_lines_without_spaces_are_learned_from() -> None:
    assert "食食" in train_subwords({"ja": ["食" * 5000]}, merges=1).pieces


@pytest.mark.parametrize("texts", [{}, {"en": []}, {"en": ["", " "]}, {"en": ["rare"]}])
def test_nothing_to_learn(texts: dict[str, list[str]]) -> None:
    with pytest.raises(DataError, match="no subwords to learn"):
        train_subwords(texts, merges=10)


@pytest.mark.parametrize("options", [{"merges": -1}, {"merges": 1, "temperature": 0.0}])
def test_impossible_settings(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="expected merges"):
        train_subwords({"en": ["the fox"] * 10}, **options)


def test_an_empty_language_beside_a_full_one() -> None:
    texts = {"en": ["the fox"] * 10, "fr": []}
    assert train_subwords(texts, merges=3).model_bytes == train_subwords({"en": texts["en"]}, merges=3).model_bytes
