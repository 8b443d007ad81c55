"""The token cache: what is in it equals what the tokenizer gives, it is found by content, and damage is noticed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graftmt.data import Corpus, TokenizedCorpus, cache, tokenize_corpus, unknown_rates
from graftmt.errors import DataError, GraftError
from graftmt.text import Subwords, Tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def tokenize(corpus: Corpus, tokenizer: Tokenizer, folder: Path, processes: int = 1) -> TokenizedCorpus:
    return tokenize_corpus(corpus, tokenizer, folder, processes=processes)


def entries(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_lines_are_what_the_tokenizer_gives(corpus: Corpus, tokenizer: Tokenizer, folder: Path) -> None:
    tokenized = tokenize(corpus, tokenizer, folder)
    assert tokenized.languages == corpus.languages
    for language, text in tokenized.texts.items():
        expected = [tokenizer.encode(line) for line in corpus.lines(language)]
        assert [text.line(index) for index in range(len(text))] == expected
        assert text.lengths.tolist() == [len(tokens) for tokens in expected]


def test_what_was_tokenised_is_known_by_the_keys_of_its_files(corpus: Corpus, tokenizer: Tokenizer, folder: Path) -> None:
    keys = [cache.cache_key(path, tokenizer) for path in corpus.files.values()]
    assert tokenize(corpus, tokenizer, folder).content == " ".join(keys)
    assert set(keys) == entries(folder)


def test_ids_are_mapped_and_not_loaded(corpus: Corpus, tokenizer: Tokenizer, folder: Path) -> None:
    for text in tokenize(corpus, tokenizer, folder).texts.values():
        assert isinstance(text.ids, np.memmap)
        assert not text.ids.flags.writeable


def test_tables_over_all_languages_agree_with_the_texts(corpus: Corpus, tokenizer: Tokenizer, folder: Path) -> None:
    tokenized = tokenize(corpus, tokenizer, folder)
    for number, text in enumerate(tokenized.texts.values()):
        assert np.array_equal(tokenized.starts[number], text.starts)
        assert np.array_equal(tokenized.lengths[number], text.lengths)


def test_a_missing_line_has_no_tokens(write_corpus: Callable[..., Corpus], tokenizer: Tokenizer, folder: Path) -> None:
    corpus = write_corpus({"en": ["the dog", "", "  ", "the fox"], "fr": ["", "", "", ""]})
    tokenized = tokenize(corpus, tokenizer, folder)
    assert (tokenized.texts["en"].lengths > 0).tolist() == [True, False, False, True]
    assert tokenized.texts["fr"].lengths.tolist() == [0, 0, 0, 0]
    assert len(tokenized) == 4


def test_a_second_run_tokenises_nothing(
    corpus: Corpus, tokenizer: Tokenizer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tokenize(corpus, tokenizer, folder)
    forbid_tokenising(monkeypatch)
    second = tokenize(corpus, tokenizer, folder)
    for language in corpus.languages:
        assert np.array_equal(first.texts[language].ids, second.texts[language].ids)


def test_what_a_kill_left_next_to_finished_entries_goes(corpus: Corpus, tokenizer: Tokenizer, folder: Path) -> None:
    tokenize(corpus, tokenizer, folder)
    whole = entries(folder)
    for number, name in enumerate(sorted(whole)):
        (folder / f".{name}.abcdefg{number}.tmp").mkdir()
    tokenize(corpus, tokenizer, folder)
    assert entries(folder) == whole


def test_the_same_content_elsewhere_is_found(
    corpus: Corpus, tokenizer: Tokenizer, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenize(corpus, tokenizer, folder)
    shutil.copytree(corpus.folder, tmp_path / "moved")
    for path in list((tmp_path / "moved").iterdir()):
        path.rename(path.with_name(path.name.replace("train", "valid")))
    forbid_tokenising(monkeypatch)
    assert len(tokenize(Corpus.open(tmp_path / "moved", "valid"), tokenizer, folder)) == 3


def test_changed_content_gets_an_entry_of_its_own(corpus: Corpus, tokenizer: Tokenizer, folder: Path) -> None:
    tokenize(corpus, tokenizer, folder)
    before = entries(folder)
    # As many bytes and lines as before: only the content differs.
    path = corpus.files["en"]
    path.write_text(path.read_text(encoding="utf-8").replace("fox", "dog"), encoding="utf-8")
    tokenized = tokenize(corpus, tokenizer, folder)
    assert before < entries(folder)
    assert len(entries(folder)) == len(before) + 1
    assert tokenized.texts["en"].line(0) == tokenizer.encode(next(corpus.lines("en")))


def test_another_tokenizer_gets_entries_of_its_own(
    corpus: Corpus, tokenizer: Tokenizer, subwords: Subwords, folder: Path
) -> None:
    tokenize(corpus, tokenizer, folder)
    before = entries(folder)
    more = Tokenizer(subwords, [*tokenizer.languages, "el"])
    tokenize(corpus, more, folder)
    assert len(entries(folder) - before) == len(corpus.languages)


def test_files_of_equal_content_share_an_entry_that_is_made_once(
    write_corpus: Callable[..., Corpus], tokenizer: Tokenizer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    original = cache._tokenize_file
    monkeypatch.setattr(cache, "_tokenize_file", lambda *job: (made.append(job[1]), original(*job)))
    corpus = write_corpus({"de": ["so", "so"], "en": ["so", "so"], "fr": ["", "so"]})
    tokenized = tokenize(corpus, tokenizer, folder)
    assert len(made) == len(set(made)) == len(entries(folder)) == 2
    assert np.array_equal(tokenized.texts["de"].ids, tokenized.texts["en"].ids)


@pytest.mark.slow
def test_in_parallel_is_as_one_by_one(corpus: Corpus, tokenizer: Tokenizer, folder: Path, tmp_path: Path) -> None:
    tokenize(corpus, tokenizer, folder)
    tokenize(corpus, tokenizer, tmp_path / "parallel", processes=2)
    assert content(tmp_path / "parallel") == content(folder)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_in_a_file_reaches_the_user_and_leaves_no_entry(
    corpus: Corpus, tokenizer: Tokenizer, folder: Path, processes: int
) -> None:
    corpus.files["fr"].write_bytes(b"ok\n\xff\nok\n")
    with pytest.raises(DataError, match=r"train\.fr\.txt, line 2: not valid UTF-8"):
        tokenize(corpus, tokenizer, folder, processes)
    assert cache.cache_key(corpus.files["fr"], tokenizer) not in entries(folder)
    assert not [name for name in entries(folder) if name.startswith(".")]


def test_unequal_lengths_are_an_error(write_corpus: Callable[..., Corpus], tokenizer: Tokenizer, folder: Path) -> None:
    with pytest.raises(DataError, match="different numbers of lines"):
        tokenize(write_corpus({"en": ["one", "two"], "fr": ["un"]}), tokenizer, folder)


def test_an_empty_corpus_is_an_error(write_corpus: Callable[..., Corpus], tokenizer: Tokenizer, folder: Path) -> None:
    with pytest.raises(DataError, match="is empty"):
        tokenize(write_corpus({"en": [], "fr": []}), tokenizer, folder)


def test_a_file_that_went_away_is_an_error(corpus: Corpus, tokenizer: Tokenizer, folder: Path) -> None:
    corpus.files["en"].unlink()
    with pytest.raises(DataError, match=r"cannot read .*train\.en\.txt"):
        tokenize(corpus, tokenizer, folder)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def shorten(path: Path) -> None:
    np.save(path, np.load(path)[:-1])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def shift(path: Path) -> None:
    np.save(path, np.load(path) + 1)


DAMAGES: list[tuple[str, Callable[[Path], object]]] = [
    ("ids.npy", Path.unlink),
    ("ids.npy", empty),
    ("ids.npy", cut),
    ("ids.npy", shorten),
    ("starts.npy", Path.unlink),
    ("starts.npy", empty),
    ("starts.npy", cut),
    ("starts.npy", shorten),
    ("starts.npy", shift),
    ("ids.npy", lambda path: path.write_bytes(path.read_bytes().replace(b"shape", b"sha(e"))),
    ("starts.npy", lambda path: path.write_bytes(path.read_bytes().replace(b"<i8", b"<f8"))),
    ("text.json", lambda path: path.write_text('{"format": 1, "lines": -1, "tokens": [], "unknown": "x"}')),
    ("text.json", empty),
    ("text.json", cut),
    ("text.json", lambda path: path.write_text("[]", encoding="utf-8")),
    ("text.json", lambda path: path.write_text("{}", encoding="utf-8")),
]
OF_THE_SAME_LENGTH: list[tuple[str, Callable[[Path], object]]] = [("ids.npy", flip), ("starts.npy", flip)]
"""Only checksums tell these."""


@pytest.mark.parametrize(
    ("name", "damage", "signed"),
    [
        *((name, damage, True) for name, damage in [*DAMAGES, *OF_THE_SAME_LENGTH]),
        *((name, damage, False) for name, damage in DAMAGES),
    ],
)
def test_a_damaged_entry_is_named_and_made_again(
    corpus: Corpus,
    tokenizer: Tokenizer,
    folder: Path,
    name: str,
    damage: Callable[[Path], object],
    signed: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tokenize(corpus, tokenizer, folder)
    before = content(folder)
    entry = folder / cache.cache_key(corpus.files["de"], tokenizer)
    if not signed:  # as an earlier version wrote it
        document = json.loads((entry / "text.json").read_text(encoding="utf-8"))
        del document["files"], document["checksum"]
        (entry / "text.json").write_text(json.dumps(document), encoding="utf-8")
    damage(entry / name)
    assert tokenize_corpus(corpus, tokenizer, folder, processes=1).texts["de"].line(0)
    assert f"{entry.name} is damaged" in capsys.readouterr().err
    assert content(folder) == before


def test_an_entry_of_an_earlier_version_without_checksums_is_read(
    corpus: Corpus, tokenizer: Tokenizer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenize(corpus, tokenizer, folder)
    for path in folder.glob("*/text.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({key: document[key] for key in ("format", "lines", "tokens", "unknown")}), encoding="utf-8")
    forbid_tokenising(monkeypatch)
    tokenize(corpus, tokenizer, folder)


@pytest.mark.parametrize("place", ["/proc/graftmt-cache", "file"])
def test_a_cache_that_cannot_be_written_is_named_with_its_variable(
    corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GraftError, match=rf"{place}.*GRAFTMT_CACHE"):
        tokenize(corpus, tokenizer, tmp_path / place)


def test_what_a_kill_left_of_any_text_goes_when_the_cache_is_written_to(
    corpus: Corpus, tokenizer: Tokenizer, folder: Path
) -> None:
    left = folder / f".{'0' * 32}.abcdefgh.tmp"
    (left / "new").mkdir(parents=True)
    (left / "lock").touch()
    tokenize(corpus, tokenizer, folder)
    assert not left.exists()


def test_a_deleted_entry_is_made_again(corpus: Corpus, tokenizer: Tokenizer, folder: Path) -> None:
    tokenize(corpus, tokenizer, folder)
    before = content(folder)
    shutil.rmtree(folder / cache.cache_key(corpus.files["de"], tokenizer))
    tokenize(corpus, tokenizer, folder)
    assert content(folder) == before


def test_unknown_rates_are_those_of_the_tokenizer(
    write_corpus: Callable[..., Corpus], tokenizer: Tokenizer, folder: Path
) -> None:
    corpus = write_corpus({"en": ["the dog", "語 the fox"], "fr": ["語 語", "語"], "de": ["", ""]})
    rates = unknown_rates(tokenize(corpus, tokenizer, folder))
    assert rates == {language: tokenizer.unknown_rate(corpus.lines(language)) for language in corpus.languages}
    assert rates["de"] == 0 < rates["en"] < rates["fr"]
    assert unknown_rates(tokenize(corpus, tokenizer, folder), ["fr"]) == {"fr": rates["fr"]}


def test_large_vocabularies_get_wider_ids(corpus: Corpus, subwords: Subwords, folder: Path) -> None:
    many = Tokenizer(subwords, [*corpus.languages, *(f"x{number}" for number in range(1 << 16))])
    small = Tokenizer(subwords, corpus.languages)
    wide, narrow = tokenize(corpus, many, folder).texts["en"], tokenize(corpus, small, folder).texts["en"]
    assert (wide.ids.dtype, narrow.ids.dtype) == (np.uint32, np.uint16)
    assert np.array_equal(wide.ids, narrow.ids)


def test_the_folder_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAFTMT_CACHE", str(tmp_path / "mine"))
    assert cache.default_cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("GRAFTMT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.default_cache_folder() == tmp_path / "graftmt"


def test_entries_are_described_in_json(corpus: Corpus, tokenizer: Tokenizer, folder: Path) -> None:
    tokenized = tokenize(corpus, tokenizer, folder)
    for language, path in corpus.files.items():
        facts = json.loads((folder / cache.cache_key(path, tokenizer) / "text.json").read_text(encoding="utf-8"))
        text = tokenized.texts[language]
        assert (facts["lines"], facts["tokens"]) == (len(text), len(text.ids))


def forbid_tokenising(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("tokenised again")

    monkeypatch.setattr(cache, "_tokenize_file", refuse)
