"""Splits: full lines or random pairs, nothing of them left in training by any language's letters, a function of the seed."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graftmt.data import Corpus
from graftmt.errors import ConfigError, DataError, LanguageError
from graftmt.prepare.output_folder import corpus_source
from graftmt.prepare.splits import Split, SplitOptions, held_out_splits, letters, split_corpus

LANGUAGES = ("de", "en", "fr")
Texts = Mapping[str, Sequence[str]]


def write(folder: Path, texts: Texts, split: str = "train") -> Corpus:
    folder.mkdir(exist_ok=True)
    for language, lines in texts.items():
        (folder / f"{split}.{language}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Corpus.open(folder, split)


def word(number: int) -> str:
    """Letters alone, for digits do not tell lines apart."""
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


def made_up(count: int, missing: float = 0.0, languages: Sequence[str] = LANGUAGES) -> dict[str, list[str]]:
    chance = random.Random(1)
    return {
        language: ["" if chance.random() < missing else f"{language} {word(number)}" for number in range(count)]
        for language in languages
    }


def rows(folder: Path, split: str) -> list[tuple[str, ...]]:
    return list(corpus_source(Corpus.open(folder, split)))


def split(texts: Texts, folder: Path, **options: object) -> Split:
    return split_corpus(write(folder / "in", texts), folder / "out", SplitOptions(**options))  # type: ignore[arg-type]


def test_letters_are_what_near_duplicates_share() -> None:
    assert letters("Hello, World 24!") == letters("  hello world—25") == "helloworld"
    assert letters("Straße") == letters("STRASSE")
    assert letters("ﬁn café") == letters("fin cafe\u0301")
    assert letters("कि") != letters("का")  # vowel signs are marks, and tell words apart
    assert letters("١٢٣ 12.5 € ½ 🙂 _") == ""


def test_valid_and_test_are_full_lines_and_train_is_the_rest(tmp_path: Path) -> None:
    texts = made_up(500, missing=0.3)
    made = split(texts, tmp_path, valid=20, test=30)
    everything = list(zip(*texts.values(), strict=True))
    valid, test, train = (rows(tmp_path / "out", name) for name in ("valid", "test", "train"))
    assert (len(valid), len(test)) == (20, 30)
    assert all(all(row) for row in valid + test)
    assert sorted(valid + test + train) == sorted(everything)
    assert train == [row for row in everything if row not in {*valid, *test}]  # in the order they had
    assert made.lines == {"train": 450, "valid": 20, "test": 30}
    assert made.left_out == {"held_out": 50, "near_duplicates": 0}
    facts = json.loads((tmp_path / "out" / "corpus.json").read_text(encoding="utf-8"))
    assert facts["lines"] == made.lines
    assert facts["split"]["left_out"] == made.left_out
    assert facts["split"]["seed"] == 1


def test_the_seed_decides(tmp_path: Path) -> None:
    corpus = write(tmp_path / "in", made_up(300))
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        split_corpus(corpus, tmp_path / name, SplitOptions(valid=20, test=20, seed=seed))
    one, again, other = (
        {path.name: path.read_bytes() for path in (tmp_path / name).glob("*.txt")} for name in ("one", "again", "other")
    )
    assert one == again
    assert len(set(rows(tmp_path / "one", "valid")) & set(rows(tmp_path / "other", "valid"))) < 10
    assert one.keys() == other.keys()


def test_near_duplicates_on_any_side_are_left_out(tmp_path: Path) -> None:
    texts = made_up(40)
    copies = {language: [line.upper() + " 7 !?" for line in lines] for language, lines in texts.items()}
    blank = [""] * 40
    repeated = {language: [*texts[language], *copies[language], *blank] for language in LANGUAGES}
    repeated["fr"][80:] = [f"{line}…" for line in texts["fr"]]  # a near-duplicate in French alone, with another English side
    repeated["en"][80:] = [f"another {line}" for line in texts["en"]]
    made = split(repeated, tmp_path, valid=5, test=5)
    assert made.left_out == {"held_out": 10, "near_duplicates": 20}
    held_out = rows(tmp_path / "out", "valid") + rows(tmp_path / "out", "test")
    for number in range(3):
        kept = {letters(row[number]) for row in rows(tmp_path / "out", "train")}
        assert kept.isdisjoint(letters(row[number]) for row in held_out)


def test_a_frequent_line_is_no_likelier_than_a_rare_one(tmp_path: Path) -> None:
    texts = {language: [*lines, *[f"{language} thanks!"] * 5000] for language, lines in made_up(500).items()}
    found = 0
    for seed in range(5):
        split_corpus(write(tmp_path / "in", texts), tmp_path / f"out{seed}", SplitOptions(valid=10, test=0, seed=seed))
        found += ("de thanks!", "en thanks!", "fr thanks!") in rows(tmp_path / f"out{seed}", "valid")
    assert found <= 2


# Words that are alike but for what near-duplicates may differ in.
WORDS = st.sampled_from(["", " ", "a", "A!", "b", "b 2", "c", "d", "dd", "ß", "ss", "7", "é", "e\u0301"])


@given(
    lines=st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=40),
    valid=st.integers(0, 3),
    test=st.integers(0, 3),
    seed=st.integers(),
    per_direction=st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_leaks(lines: list[tuple[str, ...]], valid: int, test: int, seed: int, per_direction: bool) -> None:
    options = SplitOptions(valid=valid, test=test, seed=seed, per_direction=per_direction)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = write(folder / "in", dict(zip(LANGUAGES, zip(*lines, strict=True), strict=True)))
        try:
            made = split_corpus(corpus, folder / "out", options)
        except DataError:  # too few lines, or none left
            assert not (folder / "out").exists()
            return
        splits = {name: rows(folder / "out", name) for name in made.lines}
        for (_, one), (_, other) in combinations(splits.items(), 2):
            for number in range(3):
                shared = {letters(row[number]) for row in one} & {letters(row[number]) for row in other}
                assert shared <= {""}
        groups = list(combinations(range(3), 2)) if per_direction else [(0, 1, 2)]
        for name, size in options.sizes.items():
            for group in groups:
                found = [row for row in splits.get(name, []) if all(row[number] for number in group)]
                assert len(found) == size
                for number in group:
                    assert len({letters(row[number]) for row in found}) == size
        assert made.lines["train"] + sum(made.left_out.values()) == len(lines)


def test_each_direction_can_have_random_pairs_of_its_own(tmp_path: Path) -> None:
    texts = made_up(2000, missing=0.5)
    everything = list(zip(*texts.values(), strict=True))
    split(texts, tmp_path, valid=30, test=0, per_direction=True)
    valid = rows(tmp_path / "out", "valid")
    assert len(valid) == 90
    for pair in combinations(range(3), 2):
        found = [row for row in valid if all(row[number] for number in pair)]
        assert len(found) == 30
        assert {tuple(row[number] for number in pair) for row in found} <= {tuple(row[n] for n in pair) for row in everything}
    assert all(sum(map(bool, row)) == 2 for row in valid)
    # Directions share lines of the corpus, so that little of it is lost.
    facts = json.loads((tmp_path / "out" / "corpus.json").read_text(encoding="utf-8"))
    assert facts["split"]["left_out"]["held_out"] < 90


def test_directions_can_be_chosen_and_training_text_left_out(tmp_path: Path) -> None:
    made = split(made_up(100), tmp_path, valid=10, test=5, per_direction=True, directions="english-centric", train=False)
    assert made.lines == {"valid": 20, "test": 10}
    assert {tuple(map(bool, row)) for row in rows(tmp_path / "out", "valid")} == {(True, True, False), (False, True, True)}
    assert not list((tmp_path / "out").glob("train.*"))


def test_training_text_is_kept_clear_of_other_test_sets(tmp_path: Path) -> None:
    corpus = write(tmp_path / "in", made_up(100))
    write(tmp_path / "flores", {"en": ["EN C.", "en d"], "el": ["γ", "δ"]}, "devtest")
    write(tmp_path / "flores", {"en": ["en e"]}, "train")
    options = SplitOptions(valid=20, test=0)
    made = split_corpus(corpus, tmp_path / "out", options, clear_of=held_out_splits(tmp_path / "flores"))
    assert made.left_out == {"held_out": 20, "near_duplicates": 2}
    assert not {"en c", "en d"} & {row[1] for name in ("train", "valid") for row in rows(tmp_path / "out", name)}
    with pytest.raises(DataError, match="nothing to keep clear of"):
        held_out_splits(tmp_path / "in")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"valid": 50, "test": 60}, r"has 100 lines with text in de and en and fr, too few .* for 50 valid and 60 test lines"),
        ({"valid": 200, "test": 0, "per_direction": True}, r"has 100 lines with text in de and en \(3 such pairs\)"),
        ({"valid": 100, "test": 0}, "what is left of .* has no lines for the split 'train'; nothing was written"),
    ],
)
def test_too_few_lines_are_an_error_and_nothing_is_written(tmp_path: Path, options: dict[str, object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        split(made_up(100), tmp_path, **options)
    assert not (tmp_path / "out").exists()


def test_lines_that_differ_in_digits_alone_are_one(tmp_path: Path) -> None:
    texts = {language: [f"{language} line {number}" for number in range(100)] for language in LANGUAGES}
    with pytest.raises(DataError, match="too few that differ in more than case"):
        split(texts, tmp_path, valid=2, test=0)


def test_bad_options_and_corpora_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="valid lines is -1"):
        SplitOptions(valid=-1)
    with pytest.raises(ConfigError, match="neither train"):
        SplitOptions(valid=0, test=0, train=False)
    with pytest.raises(LanguageError, match="'xx' is not a language here"):
        split(made_up(50), tmp_path, valid=1, test=0, per_direction=True, directions="en-xx")
    with pytest.raises(DataError, match="has en alone"):
        split_corpus(write(tmp_path / "one", {"en": ["a"]}), tmp_path / "out")
    with pytest.raises(DataError, match="different numbers of lines"):
        split_corpus(write(tmp_path / "uneven", {"en": ["a"], "fr": ["a", "b"]}), tmp_path / "out")
    corpus = write(tmp_path / "in", made_up(50))
    with pytest.raises(DataError, match="holds what is to be read"):
        split_corpus(corpus, tmp_path / "in", SplitOptions(valid=1, test=1))
