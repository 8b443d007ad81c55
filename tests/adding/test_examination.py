"""The figures are those of the text, and each thing amiss has its sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from graftmt.adding import examination
from graftmt.adding.examination import Examination, examine
from graftmt.adding.pack_text import AddCorpus
from graftmt.data import Corpus
from graftmt.text import Tokenizer, train_subwords

GREEK = [
    "η γρήγορη καφέ αλεπού πηδά πάνω από το σκυλί",
    "πού είναι η βιβλιοθήκη της πόλης ;",
    "ένα μικρό σπίτι κοντά στη θάλασσα",
]
ENGLISH = [
    "the quick brown fox jumps over the lazy dog",
    "where is the library of the town ?",
    "a small house close to the sea",
]
FRENCH = ["le renard brun saute par-dessus le chien paresseux", "où est la bibliothèque de la ville ?", "une petite maison"]

MakeCorpus = Callable[..., AddCorpus]


@pytest.fixture(scope="session")
def base() -> Tokenizer:
    return Tokenizer(train_subwords({"en": ENGLISH * 10, "fr": FRENCH * 10}, merges=60), ["en", "fr"])


@pytest.fixture(scope="session")
def pack() -> Tokenizer:
    return Tokenizer(train_subwords({"el": GREEK * 10}, merges=60), ["el"])


@pytest.fixture
def make_corpus(tmp_path: Path) -> MakeCorpus:
    def make(texts: Mapping[str, Sequence[str]], new: Sequence[str] = ("el",)) -> AddCorpus:
        for language, lines in texts.items():
            (tmp_path / f"train.{language}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        train = Corpus.open(tmp_path, "train", list(texts))
        partners = tuple(language for language in texts if language not in new)
        return AddCorpus(train, train, None, partners, tuple(new), held_out=False)

    return make


def warning_with(text: str, found: Examination) -> str:
    return next((warning for warning in found.warnings if text in warning), "")


def test_the_figures_of_a_small_text(make_corpus: MakeCorpus, base: Tokenizer, pack: Tokenizer) -> None:
    greek = ["ένα δύο", "ένα δύο", "copied", "τρία", "", "χωρίς μετάφραση"]
    english = ["one two", "one and two", "copied", "a translation much too long", "no translation", ""]
    found = examine(make_corpus({"el": greek, "en": english}), base, pack)
    greek_found = found.languages["el"]
    assert found.pairs == {"el-en": 4}
    assert (greek_found.lines, greek_found.sampled) == (4, 4)
    assert greek_found.words_per_line == 6 / 4
    assert greek_found.duplicates == 1 / 4
    assert greek_found.copies == 1 / 4
    assert greek_found.unequal == 1 / 4


def test_vocabularies_are_compared_on_the_same_lines(make_corpus: MakeCorpus, base: Tokenizer, pack: Tokenizer) -> None:
    found = examine(make_corpus({"el": GREEK * 20, "en": ENGLISH * 20}), base, pack)
    greek = found.languages["el"]
    assert greek.under_pack is not None
    assert greek.under_base.unknown_rate == base.unknown_rate(GREEK) > 0.5
    assert greek.under_base.tokens_per_line == pytest.approx(base.count(GREEK).pieces / 3)
    assert greek.under_pack.unknown_rate == 0
    assert greek.under_pack.tokens_per_line == pytest.approx(pack.count(GREEK).pieces / 3)


def test_new_characters_are_those_outside_the_bases_alphabet(make_corpus: MakeCorpus, base: Tokenizer, pack: Tokenizer) -> None:
    text = ["the ΑΑα β", "house α"] * 3
    found = examine(make_corpus({"el": text, "en": ENGLISH * 2}), base, pack).languages["el"]
    assert list(found.new_characters.items()) == [("α", 12), ("β", 3)]
    many = examine(make_corpus({"el": GREEK, "en": ENGLISH}), base, pack).languages["el"]
    assert len(many.new_characters) == 10
    assert list(many.new_characters.values()) == sorted(many.new_characters.values(), reverse=True)


def test_overlap_counts_the_packs_subwords_that_the_base_has(make_corpus: MakeCorpus, base: Tokenizer, pack: Tokenizer) -> None:
    corpus = make_corpus({"el": GREEK, "en": ENGLISH})
    overlap = examine(corpus, base, pack).overlap
    assert overlap is not None
    assert overlap.shared == len(set(base.subwords.pieces) & set(pack.subwords.pieces)) < overlap.total
    own = examine(corpus, base, base).overlap
    assert own is not None and own.share == 1
    assert examine(corpus, base, None).overlap is None


def test_a_sample_is_spread_evenly_while_lines_and_repetitions_are_all_counted(
    make_corpus: MakeCorpus, base: Tokenizer, pack: Tokenizer
) -> None:
    greek = [" ".join(["λέξη"] * (n // 100 + 1)) for n in range(1000)]  # from 1 word at the beginning to 10 at the end
    found = examine(make_corpus({"el": greek, "en": ENGLISH * 333 + ["end"]}), base, pack, limit=100).languages["el"]
    assert (found.lines, found.sampled) == (1000, 100)
    assert found.words_per_line == 5.5
    assert found.words_in_long_lines == 10
    assert found.duplicates == pytest.approx(0.99)


def test_the_wrong_language_is_looked_for_on_both_sides(make_corpus: MakeCorpus, base: Tokenizer, pack: Tokenizer) -> None:
    found = examine(make_corpus({"el": GREEK * 20, "en": [*ENGLISH * 10, *FRENCH * 10]}), base, pack)
    assert found.wrong_language["el"].share == 0
    share = found.wrong_language["en"].share
    assert share is not None and share > 0.3
    warning = warning_with("in another language", found)
    assert "lines in en" in warning and "Clean the text first" in warning
    assert "fr: le renard" in warning


def test_files_that_are_exchanged_are_said_to_be(make_corpus: MakeCorpus, base: Tokenizer, pack: Tokenizer) -> None:
    found = examine(make_corpus({"el": ENGLISH * 20, "en": GREEK * 20}), base, pack)
    assert found.wrong_language["el"].share == found.wrong_language["en"].share == 1
    warning = warning_with("exchanged", found)
    assert "The text in el and that in en seem to be exchanged" in warning and "en: the quick brown fox" in warning
    assert not warning_with("Clean the text", found) and not warning_with("at all?", found)


def test_text_that_is_nearly_all_in_another_language_is_asked_about(
    make_corpus: MakeCorpus, base: Tokenizer, pack: Tokenizer
) -> None:
    found = examine(make_corpus({"el": FRENCH * 20, "en": ENGLISH * 20}), base, pack)
    warning = warning_with("in another language", found)
    assert "Is this text in el at all? See whether el was given the right file" in warning
    assert not warning_with("Clean the text", found) and not warning_with("exchanged", found)


def test_where_the_language_cannot_be_told_the_table_says_why(
    make_corpus: MakeCorpus, base: Tokenizer, pack: Tokenizer
) -> None:
    found = examine(make_corpus({"el": GREEK, "en": ENGLISH}), base, pack)
    assert found.wrong_language["el"].share is None
    assert "too few lines" in dict(found.rows())["el: in another language"]
    assert not warning_with("in another language", found)


def test_text_that_the_base_covers_is_warned_of(make_corpus: MakeCorpus, base: Tokenizer, pack: Tokenizer) -> None:
    corpus = make_corpus({"el": ENGLISH * 5, "en": FRENCH * 5})
    warning = warning_with("already covers", examine(corpus, base, base))
    assert "0.0 % <unk>" in warning and "a pack may gain little" in warning and "close to a language the base has" in warning
    assert not warning_with("already covers", examine(corpus, base, None))
    assert not warning_with("already covers", examine(make_corpus({"el": GREEK, "en": ENGLISH}), base, pack))


def test_text_that_the_base_spells_in_many_more_tokens_is_not_covered(make_corpus: MakeCorpus) -> None:
    """A base with byte fallback has no <unk> at all, and is of no use for Greek nonetheless."""
    with_bytes = Tokenizer(train_subwords({"en": ENGLISH * 10}, merges=60, byte_fallback=True), ["en"])
    greek = Tokenizer(train_subwords({"el": GREEK * 10}, merges=60), ["el"])
    found = examine(make_corpus({"el": GREEK, "en": ENGLISH}), with_bytes, greek)
    assert found.languages["el"].under_base.unknown_rate == 0
    assert found.languages["el"].under_base.byte_rate > 0.5
    assert not warning_with("already covers", found)
    assert "single bytes" in dict(found.rows())["el: under the base's vocabulary"]


def test_little_text_copies_and_unknown_characters_are_warned_of(
    make_corpus: MakeCorpus, base: Tokenizer, pack: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = examine(make_corpus({"el": [*GREEK, "日本", "copy"], "en": [*ENGLISH, "Japan", "copy"]}), base, pack)
    assert "little text in el: 5 lines" in warning_with("little text", bad)
    assert "20.0 % of the pairs" in warning_with("same text on both sides", bad)
    assert "does not know" in warning_with("own vocabulary", bad)
    monkeypatch.setattr(examination, "SMALL", 3)
    good = examine(make_corpus({"el": GREEK, "en": ENGLISH}), base, pack)
    assert good.warnings == ()


def test_several_languages_and_partners_each_have_their_figures(
    make_corpus: MakeCorpus, base: Tokenizer, pack: Tokenizer
) -> None:
    texts = {"el": [*GREEK, ""], "uk": ["", "", "дім біля моря", "дім"], "en": [*ENGLISH, ""], "fr": [*FRENCH, "maison"]}
    found = examine(make_corpus(texts, new=("el", "uk")), base, pack)
    assert found.pairs == {"el-en": 3, "el-fr": 3, "uk-en": 1, "uk-fr": 2}
    assert {language: one.lines for language, one in found.languages.items()} == {"el": 3, "uk": 2}
    assert set(found.wrong_language) == {"el", "uk", "en", "fr"}


def test_it_can_be_stored_and_shown(make_corpus: MakeCorpus, base: Tokenizer, pack: Tokenizer) -> None:
    found = examine(make_corpus({"el": GREEK * 20, "en": ENGLISH * 20}), base, pack)
    stored = json.loads(json.dumps(found.to_dict()))
    assert stored["languages"]["el"]["lines"] == 60
    assert stored["warnings"] == list(found.warnings)
    table = dict(found.rows())
    assert len(table) == len(found.rows())
    assert table["el-en: line pairs"] == "60"
    assert table["el: in another language"] == "0.0 %"
    assert table["el: repeated lines"] == "95.0 %"
    assert "tokens per line" in table["el: under the pack's vocabulary"]
