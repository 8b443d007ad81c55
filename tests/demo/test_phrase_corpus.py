"""The demo corpus: reproducible, aligned, held out by combination, and saying what CLDR says."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from graftmt.demo.inventory import CANDIDATES, inventory_of, name_of, quantity_of
from graftmt.demo.phrase_corpus import (
    BASE_LANGUAGES,
    NEW_LANGUAGES,
    SPLITS,
    build_corpus,
    build_segments,
    combination_key,
    slot_values,
    without_numbers,
    write_corpus,
)
from graftmt.demo.phrases import TEMPLATES, Phrase, render
from graftmt.demo.slots import KINDS, Slot
from graftmt.errors import DataError, GraftError, LanguageError

LANGUAGES = BASE_LANGUAGES + NEW_LANGUAGES
SIZES = {"train": 3000, "valid": 60, "test": 120}
SIZE_ARGUMENTS = {f"{split}_lines": size for split, size in SIZES.items()}


@pytest.fixture(scope="module")
def segments():
    return build_segments(LANGUAGES, SIZES, seed=1)


@pytest.fixture(scope="module")
def corpus():
    return build_corpus(LANGUAGES, **SIZE_ARGUMENTS, seed=1)


def say(kind: str, names: tuple[str, ...], numbers: tuple[str, ...], language: str) -> str:
    return render(Phrase(kind, (Slot(kind, names, numbers),)), language)


def test_sizes_and_alignment(corpus, segments):
    assert set(corpus) == set(SPLITS)
    for split in SPLITS:
        assert set(corpus[split]) == set(LANGUAGES)
        for language in LANGUAGES:
            assert len(corpus[split][language]) == SIZES[split]
            expected = [render(segment.phrase, language) for segment in segments[split]]
            assert corpus[split][language] == expected


def test_every_line_is_one_non_empty_line_with_plain_spaces(corpus):
    for split in SPLITS:
        for language in LANGUAGES:
            for line in corpus[split][language]:
                assert line and line == " ".join(line.split())


@pytest.mark.slow
def test_same_seed_same_corpus_and_other_seed_another(corpus):
    assert build_corpus(LANGUAGES, **SIZE_ARGUMENTS, seed=1) == corpus
    other = build_corpus(LANGUAGES, **SIZE_ARGUMENTS, seed=2)
    assert all(other[split]["en"] != corpus[split]["en"] for split in SPLITS)


def test_corpus_does_not_depend_on_hashes_time_zone_or_machine_language():
    command = (
        "from graftmt.demo.phrase_corpus import build_corpus\n"
        "import json; print(json.dumps(build_corpus(['en', 'el'], train_lines=300, valid_lines=5, test_lines=5)))"
    )
    outputs = []
    for hash_seed, zone, language in (("1", "Pacific/Auckland", "C"), ("2", "America/Los_Angeles", "fr_FR.UTF-8")):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "TZ": zone, "LANG": language, "LC_ALL": language}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        finished = subprocess.run([sys.executable, "-c", command], env=environment, capture_output=True, check=True)
        outputs.append(finished.stdout)
    assert outputs[0] == outputs[1]
    assert json.loads(outputs[0]) == build_corpus(["en", "el"], train_lines=300, valid_lines=5, test_lines=5)


def test_fewer_languages_or_lines_keep_the_same_segments(corpus):
    fewer = build_corpus(["uk", "en"], **SIZE_ARGUMENTS, seed=1)
    assert all(fewer[split][language] == corpus[split][language] for split in SPLITS for language in ("uk", "en"))
    shorter = build_corpus(["en"], train_lines=500, valid_lines=0, test_lines=0, seed=1)
    assert shorter["train"]["en"] == corpus["train"]["en"][:500]


def test_held_out_combinations_are_not_in_train(segments):
    keys = {split: {combination_key(segment.phrase) for segment in segments[split]} for split in SPLITS}
    assert not keys["train"] & keys["valid"]
    assert not keys["train"] & keys["test"]
    assert not keys["valid"] & keys["test"]


def test_held_out_names_are_all_in_train(segments):
    known = set().union(*(slot_values(segment.phrase) for segment in segments["train"]))
    for split in ("valid", "test"):
        assert set().union(*(slot_values(segment.phrase) for segment in segments[split])) <= known


def test_no_split_repeats_another_but_for_numbers(corpus):
    masks = {split: {without_numbers(line) for line in corpus[split]["en"]} for split in SPLITS}
    assert not masks["train"] & (masks["valid"] | masks["test"])
    assert not masks["valid"] & masks["test"]
    assert len(masks["test"]) == SIZES["test"]


def test_numbers_are_masked_whole():
    assert without_numbers("1,500 liters") == without_numbers("1.5 liters") == without_numbers("5 liters")
    assert without_numbers("March 5, 2024") == without_numbers("March 31, 1999")
    assert without_numbers("1 liter") != without_numbers("2 liters")


def test_no_duplicates_in_any_language(corpus):
    for language in LANGUAGES:
        lines = [line for split in SPLITS for line in corpus[split][language]]
        assert len(lines) == len(set(lines))


def test_combination_key_ignores_numbers_and_order():
    def phrase(names: tuple[str, ...], number: str) -> Phrase:
        return Phrase("tour", (Slot("interval", ("month 1",), (number,)), Slot("territories", names)))

    assert combination_key(phrase(("FR", "DE"), "1")) == combination_key(phrase(("DE", "FR"), "7"))
    assert combination_key(phrase(("FR", "DE"), "1")) != combination_key(phrase(("FR", "IT"), "1"))
    one, more = (Phrase("quantity", (Slot("quantity", ("volume-liter",), (number,)),)) for number in ("1", "7"))
    assert combination_key(one) != combination_key(more)


def test_combined_phrases_are_at_least_two_fifths(segments):
    for split in SPLITS:
        combined = sum(TEMPLATES[segment.phrase.template].combined for segment in segments[split])
        assert combined >= 0.4 * SIZES[split]


def test_every_candidate_is_named_in_the_demo_languages():
    assert inventory_of(LANGUAGES).codes == CANDIDATES


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_falls_back_to_a_code(corpus, language):
    codes = {code for family in ("unit", "rate") for both in CANDIDATES[family] for code in both.split("/")}
    # Codes of territories and languages are words too (US dollars, 9 AM, la), so those are compared name by name.
    codes |= {*CANDIDATES["currency"], *CANDIDATES["city"]}
    for family in ("territory", "language", "city", "zone", "currency"):
        assert all(name_of(family, code, language) not in (None, code) for code in CANDIDATES[family])
    for split in SPLITS:
        for line in corpus[split][language]:
            assert codes.isdisjoint(re.split(r"[\s,;:()]+", line)), line
    if language in ("ru", "el", "uk"):
        assert not [line for line in corpus["train"][language] if re.search("[A-Za-z]", line)]


def test_no_slot_has_two_translations():
    """Whatever the source language, a text says which text is meant in each other language."""
    source, inventory = random.Random(7), inventory_of(LANGUAGES)
    slots = {kind.draw(source, inventory, name) for name, kind in KINDS.items() for _ in range(150)}
    texts = {slot: {language: KINDS[slot.kind].say(slot, language) for language in LANGUAGES} for slot in slots}
    for language in LANGUAGES:
        meanings = defaultdict(set)
        for translations in texts.values():
            meanings[translations[language]].add(tuple(translations.values()))
        assert not [meaning for meaning in meanings.values() if len(meaning) > 1]


@pytest.mark.parametrize(("language", "different"), [("ru", 3), ("uk", 3), ("en", 2), ("el", 2)])
def test_units_inflect_with_the_number(language, different):
    nouns = {quantity_of("length-kilometer", number, language).split()[-1] for number in ("1", "2", "5")}
    assert len(nouns) == different


@pytest.mark.parametrize("language", ["el", "ru", "uk"])
def test_months_take_the_genitive_in_dates(language):
    names = ("month 3",)
    nominative = name_of("month", "3", language)
    assert nominative is not None
    assert nominative.lower() in say("month_and_year", names, ("2024-03-05",), language).lower()
    assert nominative.lower() not in say("date_long", names, ("2024-03-05",), language).lower().split()


def test_relative_times_keep_their_unit_and_say_their_direction():
    assert say("relative", ("+day",), ("14",), "en") == "in 14 days"
    assert say("relative", ("-day",), ("14",), "en") == "14 days ago"
    assert len({say("relative", ("+day",), (number,), "ru").split()[-1] for number in ("1", "2", "5")}) == 3


def test_one_language_does_not_leak_into_another():
    """Babel writes resolved aliases into dictionaries that languages share; ours are kept apart."""
    hebrew, swahili = name_of("month", "10", "he"), name_of("weekday", "0", "sw")
    assert hebrew and swahili
    assert name_of("weekday", "0", "hi") not in (None, swahili)
    assert name_of("month", "10", "nb") == "oktober"


def test_works_for_languages_outside_the_demo():
    corpus = build_corpus(["pl", "pt-BR", "zh"], train_lines=200, valid_lines=3, test_lines=3)
    assert all(len(set(corpus["train"][language])) == 200 for language in ("pl", "pt-BR", "zh"))


def test_write_corpus(tmp_path: Path, corpus):
    description = write_corpus(tmp_path, LANGUAGES, **SIZE_ARGUMENTS, seed=1)
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"corpus.json"} | {f"{split}.{language}.txt" for split in SPLITS for language in LANGUAGES}
    for split in SPLITS:
        for language in LANGUAGES:
            text = (tmp_path / f"{split}.{language}.txt").read_text(encoding="utf-8")
            assert text.splitlines() == corpus[split][language] and text.endswith("\n")
    assert json.loads((tmp_path / "corpus.json").read_text(encoding="utf-8")) == description
    assert description["languages"] == list(LANGUAGES) and description["seed"] == 1 and description["lines"] == SIZES
    assert description["babel"] and description["cldr"]
    for split in SPLITS:
        shares = description["template_shares"][split]
        assert set(shares) == set(TEMPLATES) and sum(shares.values()) == pytest.approx(1, abs=0.01)


def test_missing_babel_says_what_to_install(monkeypatch, tmp_path: Path):
    monkeypatch.setitem(sys.modules, "babel", None)
    with pytest.raises(GraftError, match=r"pip install 'graftmt\[demo\]'"):
        build_corpus(["en"], train_lines=1, valid_lines=0, test_lines=0)
    with pytest.raises(GraftError, match=r"pip install 'graftmt\[demo\]'"):
        write_corpus(tmp_path / "demo", ["en"])
    assert not (tmp_path / "demo").exists()


def test_what_cannot_be_made_is_said():
    with pytest.raises(LanguageError, match="'qqq'"):
        build_corpus(["en", "qqq"], train_lines=1, valid_lines=0, test_lines=0)
    with pytest.raises(LanguageError, match="each once"):
        build_corpus(["en", "en"], train_lines=1, valid_lines=0, test_lines=0)
    with pytest.raises(LanguageError, match="one or more"):
        build_corpus([], train_lines=1, valid_lines=0, test_lines=0)
    with pytest.raises(DataError, match="-1"):
        build_corpus(["en"], train_lines=-1)
    # Nothing may be held out that train has not named.
    with pytest.raises(DataError, match="more train lines"):
        build_corpus(["en"], train_lines=0, valid_lines=0, test_lines=1)
