"""The text of a pack: found in folders and files, paired with the base's languages, held out without leaks."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graftmt.adding.pack_text import AddCorpus, choose_lines, form, open_add_corpus
from graftmt.data import Corpus
from graftmt.data.corpus import segmented
from graftmt.errors import ConfigError, DataError, LanguageError

BASE = ("de", "en", "fr", "ru")
Texts = Mapping[str, Sequence[str]]
Open = Callable[..., AddCorpus]


def sentences(language: str, count: int = 200) -> list[str]:
    """Different from each other in more than their digits."""
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
    return [f"{language} {words[n // 100 % 10]} {words[n // 10 % 10]} {words[n % 10]}" for n in range(count)]


def write(folder: Path, texts: Texts, split: str = "train") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for language, lines in texts.items():
        (folder / f"{split}.{language}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(folder)


@pytest.fixture
def open_corpus(tmp_path: Path) -> Open:
    def open_it(*train: str, **options: Any) -> AddCorpus:
        defaults = {"new": ["el"], "base_languages": BASE, "partners": None, "work": tmp_path / "run", "seed": 1}
        return open_add_corpus(train, **(defaults | options))

    return open_it


def read(corpus: AddCorpus, split: str) -> dict[str, list[str]]:
    part: Corpus = getattr(corpus, split)
    return part.texts(part.languages)


def rows(texts: Texts) -> list[tuple[str, ...]]:
    return list(zip(*texts.values(), strict=True))


def pair(count: int = 200) -> dict[str, list[str]]:
    return {"el": sentences("el", count), "en": sentences("en", count)}


# Finding the text


def test_a_folder_gives_the_new_languages_and_those_of_the_base(tmp_path: Path, open_corpus: Open) -> None:
    folder = write(tmp_path / "data", {code: sentences(code) for code in ("el", "en", "fr", "ja", "uk")})
    corpus = open_corpus(folder)
    assert corpus.train.languages == corpus.valid.languages == ("el", "en", "fr")
    assert (corpus.new, corpus.partners, corpus.test, corpus.held_out) == (("el",), ("en",), None, True)


def test_that_text_was_segmented_is_known_of_its_held_out_part_too(tmp_path: Path, open_corpus: Open) -> None:
    folder = write(tmp_path / "data", {code: sentences(code) for code in ("el", "en")})
    (Path(folder) / "corpus.json").write_text('{"segmented": ["el", "zh"]}', encoding="utf-8")
    corpus = open_corpus(folder)
    assert corpus.held_out and segmented(corpus.valid.files.items()) == {"segmented": ["el"]}


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("greek.data", "el={}"),
        ("el.txt", "{}"),
        ("corpus.el", "{}"),
        ("OPUS.en-el.el.txt", "{}"),
        ("a.el.txt.gz", "{}"),
        ("a.el.xz", "{}"),
        ("weird=name.el", "{}"),
        ("x.de.xz", "el={}"),
    ],
)
def test_files_say_their_language_by_argument_or_name(tmp_path: Path, open_corpus: Open, name: str, argument: str) -> None:
    compress: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress}
    path, english = tmp_path / name, tmp_path / "english"
    path.write_bytes(compress.get(path.suffix, bytes)("\n".join(sentences("el")).encode()))
    english.write_text("\n".join(sentences("en")))
    corpus = open_corpus(argument.format(path), f"en={english}")
    assert corpus.partners == ("en",)
    texts = [read(corpus, split) for split in ("train", "valid")]
    assert sorted(texts[0]["el"] + texts[1]["el"]) == sorted(sentences("el"))


def test_relative_paths_and_files_of_different_folders_do(
    tmp_path: Path, open_corpus: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a", {"el": sentences("el")})
    write(tmp_path / "b", {"en": sentences("en")})
    assert open_corpus("el=a/train.el.txt", str(tmp_path / "b" / "train.en.txt")).partners == ("en",)


def test_a_file_whose_language_cannot_be_told_asks_for_it(tmp_path: Path, open_corpus: Open) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("text\n")
    with pytest.raises(DataError, match=r"LANG=.*corpus\.txt.*de, el, en"):
        open_corpus(str(path))
    with pytest.raises(LanguageError, match=r"'frx'.*'fr'\?"):
        open_corpus(f"frx={path}")


def test_what_is_not_there_or_there_twice_is_an_error(tmp_path: Path, open_corpus: Open) -> None:
    folder = write(tmp_path / "data", pair())
    with pytest.raises(DataError, match=r"there is no file .*missing\.el"):
        open_corpus(f"el={tmp_path}/missing.el", f"en={folder}/train.en.txt")
    with pytest.raises(DataError, match=r"no file .*LANG=FILE"):
        open_corpus(str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="el has two files"):
        open_corpus(f"{folder}/train.el.txt", f"el={folder}/train.en.txt")
    with pytest.raises(DataError, match=r"in el, .*partner"):
        open_corpus(folder, f"el={folder}/train.el.txt")
    with pytest.raises(DataError, match="no train text was given"):
        open_corpus()
    with pytest.raises(LanguageError, match="no train file is in el"):
        open_corpus(f"{folder}/train.en.txt")
    with pytest.raises(LanguageError, match=r"train.*'kab'.*: el, en"):
        open_corpus(folder, new=["kab"])


def test_unequal_lengths_are_an_error_in_any_language_that_is_written(tmp_path: Path, open_corpus: Open) -> None:
    folder = write(tmp_path / "data", {**pair(), "fr": sentences("fr", 199)})
    with pytest.raises(DataError, match=r"train\.el\.txt: 200, .*train\.fr\.txt: 199"):
        open_corpus(folder)
    assert not (tmp_path / "run").exists()


def test_lines_without_text_on_both_sides_are_no_pairs(tmp_path: Path, open_corpus: Open) -> None:
    gaps = {"el": ["", "one"] * 50, "en": ["one", " "] * 50}
    with pytest.raises(DataError, match=r"train .* el and in en"):
        open_corpus(write(tmp_path / "data", gaps))


# The languages


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (["fr"], r"fr is already one of the base's languages \(de, en, fr, ru\); nothing to add"),
        (["el", "en"], "en is already"),
        (["el", "el"], "each once"),
        ([], "got none"),
    ],
)
def test_only_new_languages_can_be_added(tmp_path: Path, open_corpus: Open, new: list[str], message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        open_corpus(write(tmp_path / "data", pair()), new=new)


@pytest.mark.parametrize(
    ("present", "asked", "partners"),
    [
        (["de", "en", "fr"], None, ("en",)),
        (["fr", "ja"], None, ("fr",)),
        (["de", "en", "fr"], ["all"], ("de", "en", "fr")),
        (["de", "en", "fr"], ["fr", "de", "fr"], ("fr", "de")),
    ],
)
def test_partners(tmp_path: Path, open_corpus: Open, present: list[str], asked: list[str] | None, partners: Any) -> None:
    folder = write(tmp_path / "data", {code: sentences(code) for code in ["el", *present]})
    assert open_corpus(folder, partners=asked).partners == partners


@pytest.mark.parametrize(
    ("present", "asked", "message"),
    [
        (["de", "fr"], None, r"several languages of the base: de, fr; .* --with de, --with de,fr or --with all"),
        (["ja"], None, r"no language of the base besides el.*de, en, fr, ru"),
        (["de"], ["fr"], r"nothing in 'fr'; .*it has: de"),
        (["de"], ["dee"], r"'dee' is not one of the base's languages; did you mean 'de'\?"),
        (["de"], ["el"], "'el' is not one of the base's languages"),
        (["de"], [], "no language to train with was given"),
    ],
)
def test_partners_that_cannot_be_chosen(
    tmp_path: Path, open_corpus: Open, present: list[str], asked: list[str] | None, message: str
) -> None:
    folder = write(tmp_path / "data", {code: sentences(code) for code in ["el", *present]})
    with pytest.raises(LanguageError, match=message):
        open_corpus(folder, partners=asked)


def test_a_partner_without_any_pair_is_an_error_where_it_was_asked_for(tmp_path: Path, open_corpus: Open) -> None:
    folder = write(tmp_path / "data", {**pair(), "fr": [""] * 200})
    assert open_corpus(folder, partners=["all"]).partners == ("en",)
    with pytest.raises(DataError, match=r" fr and in el .* fr .*--with"):
        open_corpus(folder, partners=["en", "fr"])


def test_text_of_digits_alone_is_called_that(tmp_path: Path, open_corpus: Open) -> None:
    digits = [f"{number} {number * 7}" for number in range(200)]
    folder = write(tmp_path / "data", {"el": digits, "en": sentences("en")})
    with pytest.raises(DataError, match=r" el and in en .*digits .*data"):
        open_corpus(folder)
    words = [*sentences("el")[:100], *digits[:100]]  # with French only where there are digits
    folder = write(tmp_path / "data", {"el": words, "en": sentences("en"), "fr": [""] * 100 + sentences("fr")[:100]})
    assert open_corpus(folder).partners == ("en",)
    with pytest.raises(DataError, match=r" fr and in el .*digits"):
        open_corpus(folder, partners=["en", "fr"])


@pytest.mark.parametrize("name", ["../../evil", "/evil", "el/..", "\x1b[31m", "el\n", "", "x" * 41])
def test_new_languages_need_names(tmp_path: Path, open_corpus: Open, name: str) -> None:
    with pytest.raises(LanguageError):
        open_corpus(write(tmp_path / "data", pair()), new=[name])
    with pytest.raises((LanguageError, DataError)):
        open_corpus(f"{name}={tmp_path}/data/train.el.txt", f"en={tmp_path}/data/train.en.txt")
    assert not (tmp_path / "run").exists()


# Splits that are there


def test_a_folders_own_splits_are_used_and_nothing_is_written(tmp_path: Path, open_corpus: Open) -> None:
    folder = write(tmp_path / "data", pair())
    write(tmp_path / "data", {**pair(7), "fr": sentences("fr", 7)}, "valid")
    write(tmp_path / "data", pair(5), "test")
    corpus = open_corpus(folder)
    assert not corpus.held_out
    assert read(corpus, "train") == pair()
    assert len(read(corpus, "valid")["fr"]) == 7
    assert len(read(corpus, "test")["el"]) == 5
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("own", [{"en": ["one"]}, {"el": ["ένα"], "de": ["eins"]}, {"el": ["", "δύο"], "en": ["one", ""]}])
def test_a_folders_own_split_without_both_sides_is_not_used(tmp_path: Path, open_corpus: Open, own: Texts) -> None:
    folder = write(tmp_path / "data", {**pair(), "de": sentences("de")})
    write(tmp_path / "data", own, "valid")
    write(tmp_path / "data", own, "test")
    corpus = open_corpus(folder)
    assert corpus.held_out
    assert corpus.test is None


def test_a_valid_split_that_is_given_goes_first(tmp_path: Path, open_corpus: Open) -> None:
    folder = write(tmp_path / "data", pair())
    write(tmp_path / "data", pair(7), "valid")
    other = write(tmp_path / "other", pair(3), "valid")
    for given in ([other], [f"el={other}/valid.el.txt", f"{other}/valid.en.txt"]):
        corpus = open_corpus(folder, valid=given, test=given if len(given) == 2 else ())
        assert read(corpus, "valid") == pair(3)
        assert not corpus.held_out
    assert read(corpus, "test") == pair(3)


def test_a_valid_split_that_is_given_has_to_be_usable(tmp_path: Path, open_corpus: Open) -> None:
    folder = write(tmp_path / "data", pair())
    with pytest.raises(DataError, match=r"valid .* el and in en"):
        open_corpus(folder, valid=[write(tmp_path / "other", {"el": ["ένα"], "de": ["eins"]}, "valid")])
    with pytest.raises(LanguageError, match="no valid text for language 'el'"):
        open_corpus(folder, valid=[write(tmp_path / "third", {"en": ["one"]}, "valid")])


# Holding out


def test_every_line_is_trained_on_held_out_or_left_out_as_a_repetition(tmp_path: Path, open_corpus: Open) -> None:
    greek = [*sentences("el"), *(f"  {line.upper()} {n} " for n, line in enumerate(sentences("el", 100))), "", "1984"]
    texts = {"el": greek, "en": [f"en {n}" for n in range(len(greek))]}
    corpus = open_corpus(write(tmp_path / "data", texts))
    train, valid = rows(read(corpus, "train")), rows(read(corpus, "valid"))
    held_out = {form(greek) for greek, _ in valid}
    assert len(valid) == len(held_out) == 10  # 5 % of 200 different lines
    assert not held_out & {form(greek) for greek, _ in train}
    assert train == [row for row in rows(texts) if form(row[0]) not in held_out]
    assert valid == [row for row in rows(texts) if row in set(valid)]
    facts = json.loads((corpus.train.folder / "corpus.json").read_text())
    assert facts["lines"] == {"train": len(train), "valid": 10, "left_out": len(greek) - len(train) - 10}


def test_missing_translations_stay_empty_and_only_pairs_are_held_out(tmp_path: Path, open_corpus: Open) -> None:
    texts = {
        "el": [line if n % 2 else "" for n, line in enumerate(sentences("el", 400))],
        "en": [line if n % 3 else "" for n, line in enumerate(sentences("en", 400))],
        "fr": [line if n % 5 else "" for n, line in enumerate(sentences("fr", 400))],
    }
    corpus = open_corpus(write(tmp_path / "data", texts))
    train, valid = read(corpus, "train"), read(corpus, "valid")
    assert all(valid["el"]) and all(valid["en"]) and not all(train["fr"])
    assert sorted([*rows(train), *rows(valid)]) == sorted(rows(texts))


@pytest.mark.parametrize(("lines", "limit", "expected"), [(20, 1000, 1), (39, 1000, 1), (1000, 1000, 50), (1000, 7, 7)])
def test_how_many_lines_are_held_out(tmp_path: Path, open_corpus: Open, lines: int, limit: int, expected: int) -> None:
    corpus = open_corpus(write(tmp_path / "data", pair(lines)), held_out_lines=limit)
    assert len(read(corpus, "valid")["el"]) == expected


@pytest.mark.parametrize("texts", [pair(19), {"el": ["το ίδιο"] * 500, "en": ["the same"] * 500}])
def test_too_little_text_is_an_error(tmp_path: Path, open_corpus: Open, texts: Texts) -> None:
    with pytest.raises(DataError, match=r" el .*\b20\b.*--valid"):
        open_corpus(write(tmp_path / "data", texts))
    with pytest.raises(ConfigError, match="at least 1 line"):
        open_corpus(write(tmp_path / "data", pair()), held_out_lines=0)


def test_the_same_seed_gives_the_same_split_and_another_one_another(tmp_path: Path, open_corpus: Open) -> None:
    folder = write(tmp_path / "data", pair(1000))
    first, again, other = (
        read(open_corpus(folder, seed=seed, work=tmp_path / f"run{n}"), "valid") for n, seed in enumerate([1, 1, 2])
    )
    assert first == again != other


def test_a_split_is_made_again_only_when_the_text_or_the_options_change(tmp_path: Path, open_corpus: Open) -> None:
    folder = write(tmp_path / "data", pair())
    made = open_corpus(folder).train.files["el"]

    def is_made_again(**options: Any) -> bool:
        before = made.stat().st_ino
        corpus = open_corpus(folder, **options)
        assert rows(read(corpus, "train")) and rows(read(corpus, "valid"))
        return made.stat().st_ino != before

    assert not is_made_again()
    assert is_made_again(seed=2)
    assert is_made_again(seed=2, held_out_lines=3)
    write(tmp_path / "data", {"en": [*sentences("en", 199), "another"]})
    assert is_made_again(seed=2, held_out_lines=3)
    (made.parent / "corpus.json").write_text("{")
    assert is_made_again(seed=2, held_out_lines=3)
    (made.parent / "valid.en.txt").unlink()
    assert is_made_again(seed=2, held_out_lines=3)
    for name in ("train.el.txt", "valid.en.txt"):  # damage of the same length
        content = (made.parent / name).read_bytes()
        (made.parent / name).write_bytes(content[:1].swapcase() + content[1:-2] + b"#\n")
        assert is_made_again(seed=2, held_out_lines=3)
        assert (made.parent / name).read_bytes() == content
    assert not is_made_again(seed=2, held_out_lines=3)
    assert [path.name for path in made.parent.parent.iterdir()] == ["data"]


# Several new languages


def test_several_new_languages_all_have_held_out_lines_and_none_leaks(tmp_path: Path, open_corpus: Open) -> None:
    greek, ukrainian = sentences("el", 1000), sentences("uk", 1000)
    texts = {
        "el": [line if n >= 100 else "" for n, line in enumerate(greek)],
        "uk": [line if n < 130 else "" for n, line in enumerate(ukrainian)],
        "en": sentences("en", 1000),
    }
    corpus = open_corpus(write(tmp_path / "data", texts), new=["el", "uk"])
    train, valid = read(corpus, "train"), read(corpus, "valid")
    assert corpus.new == ("el", "uk")
    assert len(valid["en"]) <= 50
    for language in corpus.new:
        held_out = {form(line) for line in valid[language] if line}
        assert held_out and not held_out & {form(line) for line in train[language]}
    assert sum(map(bool, valid["uk"])) >= 6


def test_lines_that_several_languages_share_count_for_each() -> None:
    everything = np.arange(1000)
    assert len(choose_lines({"el": everything, "uk": everything}, 1, 1000)) == 50
    assert len(choose_lines({"el": everything, "uk": everything}, 1, 20)) == 20
    apart = choose_lines({"el": everything, "uk": everything + 1000, "sv": np.arange(20) + 2000}, 1, 61)
    assert [int(((apart >= first) & (apart < first + 1000)).sum()) for first in (0, 1000, 2000)] == [30, 30, 1]
    # At least one line of each, even where the limit has none left.
    assert len(choose_lines({"el": np.arange(20), "uk": np.arange(19, 39)}, 1, 1000)) in (1, 2)


def test_text_that_holding_out_would_use_up_is_an_error(tmp_path: Path, open_corpus: Open) -> None:
    """All Greek lines have one and the same translation into Ukrainian: whichever is held out, none can stay."""
    texts = {
        "el": [*sentences("el", 20), *[""] * 19],
        "uk": [*["одне"] * 20, *sentences("uk", 19)],
        "en": sentences("en", 39),
    }
    with pytest.raises(DataError, match=r"too little text: .* el "):
        open_corpus(write(tmp_path / "data", texts), new=["el", "uk"])
    assert not (tmp_path / "run" / "data").exists()
