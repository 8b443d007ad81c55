"""Each rule finds what it is for and nothing else, every text is accounted for, placeholders and numbers come out intact."""

from __future__ import annotations

import gzip
import unicodedata
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graftmt.data.corpus import Corpus
from graftmt.errors import ConfigError, DataError, LanguageError
from graftmt.prepare import cleaning
from graftmt.prepare.cleaned_folder import raw_source
from graftmt.prepare.cleaning import CleaningConfig, clean, clean_chunk, examine, in_processes
from graftmt.prepare.cleaning_rules import EXAMPLE_LENGTH, RULES
from graftmt.prepare.hashes import SeenLines, hash_of
from graftmt.prepare.repairs import PLACEHOLDER, normalised, with_plain_spaces, with_right_encoding, without_control_characters
from graftmt.prepare.scripts import expected_scripts, foreign_share, length_of, letters_worth
from graftmt.prepare.source import Line, Source, spread_lines

ENGLISH = "The quick brown fox jumps over the lazy dog."
FRENCH = "Le rapide renard brun saute par-dessus le chien paresseux."
GREEK = "Η γρήγορη καφέ αλεπού πηδά πάνω από το τεμπέλικο σκυλί."
OTHER_ENGLISH = "Keep the windows closed while the engine is running."
RUSSIAN = "Быстрая коричневая лиса прыгает через ленивую собаку."


def source(*lines: Line, languages: tuple[str, ...] = ("en", "fr")) -> Source:
    return Source("a test", languages, lambda: iter(lines))


def only(*rules: str) -> CleaningConfig:
    return CleaningConfig().with_rules(rules)


def dropped(lines: list[Line], config: CleaningConfig, languages: tuple[str, ...] = ("en", "fr")) -> dict[str, dict[str, int]]:
    cleaned, report = clean(source(*lines, languages=languages), config)
    list(cleaned)
    found = report.document()["dropped"]
    assert isinstance(found, dict)
    return found


def test_good_lines_pass_all_rules_as_they_are() -> None:
    lines = [(ENGLISH, FRENCH, GREEK), ("Open the file {name} (100 %)", "Ouvrez le fichier {name} (100 %)", "")]
    cleaned, report = clean(source(*lines, languages=("en", "fr", "el")))
    assert list(cleaned) == lines
    document = report.document()
    assert document["dropped"] == document["repaired"] == {}
    assert document["lines"] == {"read": 2, "kept": 2, "dropped": {}}
    assert document["texts"]["el"] == {"read": 1, "kept": 1}


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("invalid", ("A caf\ufffd in the street", "Un café dans la rue")),
        ("empty", (ENGLISH, " \u200a ")),
        ("too_long", (ENGLISH, "mot " * 201)),
        ("too_long", (ENGLISH, "m" * 1001)),
        ("length_ratio", (ENGLISH, "Un renard et un chien. " * 12)),
        ("copies", (ENGLISH, ENGLISH.upper())),
        ("scripts", (ENGLISH, RUSSIAN)),
        ("language_id", (ENGLISH, OTHER_ENGLISH)),
    ],
)
def test_each_rule_drops_its_own_and_only_when_it_is_on(rule: str, line: Line) -> None:
    lines = [(ENGLISH, FRENCH), line]
    repairs = ("control_characters", "normalisation", "whitespace")
    found = dropped(lines, only(*repairs, "empty", rule))
    assert found[rule]["fr" if rule != "invalid" else "en"] == 1
    assert found.keys() == {rule, "alone"}
    if rule != "empty":
        assert dropped(lines, only(*(set(RULES) - {rule, "language_id", "length_ratio"}))).get(rule) is None


def test_a_bad_text_is_emptied_and_the_rest_of_the_line_stays() -> None:
    cleaned, report = clean(source((ENGLISH, RUSSIAN, GREEK), (ENGLISH, RUSSIAN, ""), languages=("en", "fr", "el")))
    assert list(cleaned) == [(ENGLISH, "", GREEK)]
    assert report.document()["dropped"] == {"scripts": {"fr": 2}, "alone": {"en": 1}}
    assert report.document()["lines"] == {"read": 2, "kept": 1, "dropped": {"alone": 1}}


def test_lines_keep_their_places_where_empty_and_duplicates_are_off() -> None:
    lines = [(ENGLISH, ""), ("", ""), (ENGLISH, FRENCH), (ENGLISH, FRENCH)]
    cleaned, _ = clean(source(*lines), only("whitespace"))
    assert list(cleaned) == lines


def test_text_in_one_language_needs_no_second() -> None:
    cleaned, _ = clean(source((ENGLISH,), ("",), languages=("en",)))
    assert list(cleaned) == [(ENGLISH,)]


def test_duplicates_are_equal_in_all_languages_after_the_repairs_and_the_first_stays() -> None:
    lines = [
        (ENGLISH, FRENCH),
        (ENGLISH + "\xa0", f" {FRENCH}"),
        (ENGLISH, "Le renard saute par-dessus le chien brun."),
        ("", ""),
    ]
    cleaned, report = clean(source(*lines))
    assert list(cleaned) == [lines[0], lines[2]]
    assert report.document()["dropped"]["duplicates"] == {"en": 1, "fr": 1}
    assert report.document()["lines"]["dropped"] == {"alone": 1, "duplicates": 1}


def test_numbers_and_placeholders_by_themselves_are_no_copies() -> None:
    lines = [("12:30", "12:30"), ("…", "…")]
    assert dropped(lines, only("copies", "empty")) == {}


def test_copies_are_copies_of_the_reference() -> None:
    lines = [(FRENCH, FRENCH, ENGLISH)]
    assert dropped(lines, only("copies"), ("fr", "it", "en")) == {}
    config = CleaningConfig(reference="it").with_rules(["copies"])
    assert dropped(lines, config, ("fr", "it", "en")) == {"copies": {"fr": 1}}
    with pytest.raises(LanguageError, match=r"'ti' is not in a test\b.*fr, it, en"):
        clean(source(*lines, languages=("fr", "it", "en")), CleaningConfig(reference="ti"))


def test_of_many_texts_the_odd_one_is_out_of_proportion_even_if_it_is_the_reference() -> None:
    assert dropped([("Yes", FRENCH, GREEK, RUSSIAN)], only("length_ratio"), ("en", "fr", "el", "ru")) == {
        "length_ratio": {"en": 1}
    }


def test_a_chinese_character_is_worth_several_latin_letters() -> None:
    assert length_of("文件") == 6
    assert letters_worth("文件 12!") == 6
    lines = [("Files could not be opened because they are missing.", "文件丢失，无法打开。")]
    assert dropped(lines, only("length_ratio"), ("en", "zh_cn")) == {}


def test_expected_scripts_come_from_the_tag_the_table_or_the_text() -> None:
    assert expected_scripts("srp_Cyrl", "sr", []) == {"CYRILLIC"}
    assert expected_scripts("ja", "ja", []) == {"CJK", "HIRAGANA", "KATAKANA"}
    assert expected_scripts("zgh", "zgh", ["ⴰⵣⵓⵍ ⴼⵍⵍⴰⵡⵏ", "OK ⴰⵣⵓⵍ ⴼⵍⵍⴰⵡⵏ"]) == {"TIFINAGH"}
    assert expected_scripts("kab", "kab", []) == frozenset()
    assert foreign_share("12 + 30", frozenset({"GREEK"})) == 0
    assert foreign_share("αβ LAN", frozenset({"GREEK"})) == pytest.approx(0.6)
    assert foreign_share("5 µm", frozenset({"GREEK", "LATIN"})) == 0


def test_languages_that_cannot_be_checked_are_named() -> None:
    _, report = clean(source((ENGLISH, "nuqneH jupwI"), languages=("en", "tlh")))
    notes = report.document()["language_id"]
    assert "py3langid does not know it" in notes["tlh"]
    assert "--trusted tlh=FILE" in notes["tlh"]
    assert "among en and" in notes["en"]


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        ("a\x00b\x07c", "abc"),
        ("one\x1ftwo\x85three", "one two three"),
        ("it\x92s \x93so\x94", "it’s “so”"),
        ("soft\xadhyphen \ufefftext\ufffe \ud800", "softhyphen text "),
        ("می‌خواهم", "می‌خواهم"),
        ("tab\tnew\nline", "tab\tnew\nline"),
    ],
)
def test_control_characters(broken: str, whole: str) -> None:
    assert without_control_characters(broken) == whole


def test_utf_8_read_as_something_else_is_read_again() -> None:
    for text in ("tamamı için, şu komutu çalıştırın", "it’s “so” – café", "Ελληνικά", "日本語 😀"):
        misread = bytes(text, "utf-8").decode("latin-1")
        assert with_right_encoding(misread) == text
        assert with_right_encoding(text) == text
    assert with_right_encoding("it’s") == with_right_encoding("itâ€™s") == "it’s"
    mixed = "Ã© and Ω"  # not all of it is misread
    assert with_right_encoding(mixed) == mixed


def test_normalisation_composes_and_leaves_numbers_and_placeholders() -> None:
    assert normalised("cafe\u0301 {cafe\u0301}", "NFC") == "café {cafe\u0301}"
    assert normalised("ﬁle x² ½ １２ ⅷ ｋｍ", "NFKC") == "file x² ½ １２ ⅷ km"
    assert normalised("<b>\u0338", "NFC") == "<b>\u0338"
    assert normalised("cafe\u0301", "none") == "cafe\u0301"


PLACEHOLDERS = [
    "{name}",
    "{0}",
    "{{user}}",
    "${HOME}",
    "{}",
    "%s",
    "%d",
    "%(count)d",
    "%1$s",
    "%.2f",
    "%1",
    "%%",
    "<b>",
    "</a>",
]
PLACEHOLDERS += ['<img src="x.png"/>', "&nbsp;", "&#160;", "&#xA0;", "https://example.org/?q=1&r=%20", "{ﬁle}"]
HARD = st.text(st.sampled_from("aé e\u0301\u0338ﬁ\xa0\u3000\x00\x1f\x85\x92\xad\ufeff\ufffe{}<>&;%$/²½１７"), max_size=8)


@pytest.mark.parametrize("placeholder", PLACEHOLDERS)
def test_placeholders_are_known_as_such(placeholder: str) -> None:
    found = PLACEHOLDER.search(placeholder)
    assert found is not None and found[0] == placeholder


@given(
    st.lists(st.tuples(st.one_of(HARD, st.text(max_size=8)), st.sampled_from(PLACEHOLDERS)), max_size=6),
    st.sampled_from(["NFC", "NFKC"]),
)
@example([("<", "<b>"), ("\u0338", "%s")], "NFC")
def test_placeholders_and_numbers_stay_whatever_is_around_them(pieces: list[tuple[str, str]], form: str) -> None:
    text = "".join(f"{around} {placeholder} " for around, placeholder in pieces)
    config = CleaningConfig(normalisation=form, encoding=False, markup=False)  # type: ignore[arg-type]
    after = cleaning.repair(text, "en", config, cleaning.Counts())
    place = 0
    for _, placeholder in pieces:  # all there, in their order
        place = after.index(placeholder, place) + len(placeholder)

    def numbers(of: str) -> list[str]:
        return [character for character in of if unicodedata.category(character)[0] == "N"]

    assert numbers(after) == numbers(text)
    assert cleaning.repair(after, "en", config, cleaning.Counts()) == after  # nothing is left to repair
    assert with_plain_spaces(after) == after


@example([("0", "\x8dÂ\x80")])  # taking the control character out makes a misread sign of what is left
@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), max_size=12))
def test_every_text_is_kept_or_dropped_for_one_reason(lines: list[Line]) -> None:
    cleaned, report = clean(source(*lines), CleaningConfig(language_id=False))
    kept = list(cleaned)
    document = report.document()
    for place, language in enumerate(("en", "fr")):
        counts = document["texts"][language]
        assert counts["read"] == sum(bool(line[place]) for line in lines)
        assert counts["kept"] == sum(bool(line[place]) for line in kept)
        assert counts["read"] == counts["kept"] + sum(rule.get(language, 0) for rule in document["dropped"].values())
    assert document["lines"]["read"] == document["lines"]["kept"] + sum(document["lines"]["dropped"].values()) == len(lines)
    again, _ = clean(source(*kept), CleaningConfig(language_id=False))
    assert list(again) == kept  # clean text stays


def many_lines() -> Iterator[Line]:
    for number in range(700):
        yield (
            f"{ENGLISH} {number % 500}",
            [FRENCH, FRENCH, FRENCH, OTHER_ENGLISH, RUSSIAN, "\x00Oui"][number % 6] + f" {number % 500}",
        )


@pytest.mark.slow
def test_the_result_depends_neither_on_processes_nor_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    origin = Source("many", ("en", "fr"), many_lines)
    alone, report = clean(origin)
    lines, document = list(alone), report.document()
    assert {"duplicates", "scripts", "language_id", "length_ratio", "alone"} == document["dropped"].keys()
    monkeypatch.setattr(cleaning, "CHUNK", 64)
    shared, other = clean(origin, mapper=in_processes(2))
    assert list(shared) == lines == list(shared)  # it can be read again
    assert other.document() == document


def test_another_engine_can_run_the_chunks() -> None:
    origin = Source("many", ("en", "fr"), many_lines)
    cleaned, _ = clean(origin)
    engine, _ = clean(origin, mapper=lambda chunks, config, state: iter([clean_chunk(c, config, state) for c in chunks]))
    assert list(engine) == list(cleaned)


def test_a_reader_may_stop_early() -> None:
    cleaned, _ = clean(Source("many", ("en", "fr"), many_lines), mapper=in_processes(2))
    assert len(list(islice(cleaned, 3))) == 3


def test_trusted_text_makes_a_filter_for_a_language_nobody_knows() -> None:
    zan = ["zanu kelimo vata pori sunat" + " vata kelimo" * 4, "vata zanu merik polu kelimo sun" + " zanu pori" * 4] * 40
    good = [(f"{ENGLISH} {number}", f"{zan[number % 2]} {number}") for number in range(60)]
    wrong = [("The house is near the river and the old mill.", "A dog was seen near the mill this morning by the river.")]
    cleaned, report = clean(source(*good, *wrong, languages=("en", "zan")), trusted={"zan": zan})
    assert list(cleaned) == good
    assert report.document()["dropped"]["language_id"] == {"zan": 1}
    assert "n-gram classifier, among zan, en" in report.document()["language_id"]["zan"]


def test_examples_are_short_and_printable() -> None:
    _, report = pair = clean(source(("a\x00b" * 300, FRENCH)), only("control_characters"))
    list(pair[0])
    example = report.document()["examples"]["control_characters"][0]
    assert example["text"].startswith("a\\x00b")
    assert len(example["becomes"]) <= EXAMPLE_LENGTH + 1


def test_rules_are_chosen_by_name_and_limits_are_checked() -> None:
    assert only("whitespace") == only("whitespace").with_rules(["whitespace"])
    everything_but = CleaningConfig().with_rules(["-copies", "-normalisation"])
    assert not everything_but.copies and everything_but.normalisation == "none" and everything_but.duplicates
    with pytest.raises(ConfigError, match=r"'copy'.*'copies'"):
        only("copy")
    with pytest.raises(ConfigError, match="not both"):
        only("copies", "-empty")
    for wrong in ({"longest_words": 0}, {"largest_ratio": 0.5}, {"largest_foreign_share": 2.0}, {"normalisation": "NFD"}):
        with pytest.raises(ConfigError):
            CleaningConfig(**wrong)  # type: ignore[arg-type]


@given(st.lists(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["", "x", "y"])), max_size=20), max_size=8))
def test_seen_lines_agree_with_a_set(batches: list[list[Line]]) -> None:
    seen, reference = SeenLines(), set()
    for batch in batches:
        expected = []
        for line in batch:
            expected.append(line not in reference)
            reference.add(line)
        assert seen.add(batch) == expected
    assert len(seen) == len(reference)
    assert all(bool(np.all(run[1:] > run[:-1])) for run in seen.runs)


def test_hashes_keep_languages_apart() -> None:
    assert len({hash_of(line) for line in [("ab", ""), ("a", "b"), ("", "ab"), ("ab",)]}) == 4


def test_raw_text_is_read_whatever_bytes_it_has(tmp_path: Path) -> None:
    (tmp_path / "train.en.txt").write_bytes(b"caf\xe9\nnul \x00\n" + b"x" * 60_000 + b"\n")
    (tmp_path / "train.fr.txt").write_bytes(b"un\r\ndeux\ntrois\n")
    lines = list(raw_source(Corpus.open(tmp_path, "train")))
    assert lines == [("caf\ufffd", "un"), ("nul \x00", "deux"), ("x" * 60_000, "trois")]


def test_raw_text_that_is_not_aligned_cut_or_utf_16_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "train.en.txt").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "train.fr.txt").write_text("un\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"train\.en\.txt: 2, train\.fr\.txt: 1\b"):
        list(raw_source(Corpus.open(tmp_path, "train")))
    (tmp_path / "train.fr.txt").write_text("un\ndeux\n", encoding="utf-16")
    with pytest.raises(DataError, match="UTF-16"):
        list(raw_source(Corpus.open(tmp_path, "train")))
    (tmp_path / "train.fr.txt").unlink()
    (tmp_path / "train.fr.txt.gz").write_bytes(gzip.compress(b"un\ndeux\n" * 1000)[:-20])
    with pytest.raises(DataError, match="may be truncated"):
        list(raw_source(Corpus.open(tmp_path, "train")))


def test_what_is_learnt_comes_from_lines_spread_over_the_whole_corpus() -> None:
    numbers = Source("long", ("en",), lambda: iter([(str(number),) for number in range(1003)]))
    sample = [int(line[0]) for line in spread_lines(numbers, 100)]
    assert 50 <= len(sample) <= 100 and sample[0] == 0 and sample[-1] >= 980
    steps = {later - earlier for earlier, later in pairwise(sample)}
    assert len(steps) == 1
    assert spread_lines(numbers, 2000) == list(numbers)


class Counted(tuple[str, ...]):
    """A line that counts how many of its kind there are."""

    living = most = 0

    def __init__(self, *_: object) -> None:
        Counted.living += 1
        Counted.most = max(Counted.most, Counted.living)

    def __del__(self) -> None:
        Counted.living -= 1


def test_examining_reads_once_and_holds_no_more_than_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaning, "SAMPLE", 50)
    reads = []

    def read() -> Iterator[Line]:
        reads.append(1)
        for number in range(5_000):
            yield Counted((f"{ENGLISH} {number}", f"{FRENCH} {number}"))

    examine(Source("long", ("en", "fr"), read), CleaningConfig())
    assert len(reads) == 1
    assert Counted.most <= 50 + 3  # and one that is read, one that is too many
