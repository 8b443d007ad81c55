"""Alignment through English: equal to a plain reference, whatever the order, threads and ranges; killed and started again."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from graftmt.data import Corpus
from graftmt.errors import ConfigError, DataError, GraftError, LanguageError
from graftmt.prepare import through_english
from graftmt.prepare.bilingual import BilingualCorpus, find_corpora
from graftmt.prepare.duckdb_work import AlignOptions
from graftmt.prepare.through_english import align

Pairs = Mapping[str, Sequence[tuple[str, str]]]

ROOT = Path(__file__).parents[2]
PAIRS: Pairs = {
    "fr": [("Hello.", "Bonjour."), ("Yes", "Oui"), ("Hello.", "Salut."), ("", "vide"), ("Only French", "Français")],
    "de": [("Yes", "Ja"), ("Hello.", "Hallo."), ("Only German", "Deutsch"), ("No", "  ")],
    "el": [(" Hello. ", "Γεια  σας.")],
}


def write_pairs(folder: Path, pairs: Pairs) -> list[BilingualCorpus]:
    for language, lines in pairs.items():
        for side, code in enumerate(("en", language)):
            (folder / f"{language}.{code}").write_text("".join(f"{pair[side]}\n" for pair in lines), encoding="utf-8")
    return find_corpora([f"{language}={folder / language}" for language in pairs])


def read_lines(folder: Path) -> dict[str, list[str]]:
    corpus = Corpus.open(folder, "train")
    return corpus.texts(corpus.languages)


def reference(pairs: Pairs, min_languages: int = 2) -> dict[str, list[str]]:
    """The same by a dictionary in memory."""
    lines: dict[str, dict[str, str]] = {}
    for language, found in pairs.items():
        for pair in found:
            english, text = (" ".join(side.split()) for side in pair)
            if english and text:
                lines.setdefault(english, {"en": english}).setdefault(language, text)
    kept = [line for line in lines.values() if len(line) >= min_languages]

    def order(line: Mapping[str, str]) -> tuple[int, bytes]:
        english = line["en"].encode()
        return int.from_bytes(hashlib.md5(english).digest()[:8], "little"), english

    return {code: [line.get(code, "") for line in sorted(kept, key=order)] for code in sorted(("en", *pairs))}


@pytest.fixture
def many_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the text is many times the memory: a few bytes of text in a range, a few lines in a sorted file."""
    monkeypatch.setattr(through_english, "RANGE_SHARE", 3_000_000)
    monkeypatch.setattr(through_english, "BATCH_LINES", 7)
    monkeypatch.setattr(through_english, "SORTED_SHARE", 1e-7)


def test_lines_are_joined_through_english_and_each_is_there_once(tmp_path: Path) -> None:
    made = align(write_pairs(tmp_path, PAIRS), tmp_path / "out")
    lines = read_lines(tmp_path / "out")
    assert lines == reference(PAIRS)
    rows = dict(zip(lines["en"], zip(lines["de"], lines["el"], lines["fr"], strict=True), strict=True))
    assert rows == {
        "Hello.": ("Hallo.", "Γεια σας.", "Bonjour."),  # the first of two translations
        "Yes": ("Ja", "", "Oui"),
        "Only French": ("", "", "Français"),
        "Only German": ("Deutsch", "", ""),
    }
    french = made.corpora["fr"]
    assert (french.pairs, french.incomplete, french.repeated, french.lines) == (5, 1, 1, 3)
    assert (made.lines, made.left_out, made.resumed) == (4, 0, ())
    facts = json.loads((tmp_path / "out" / "corpus.json").read_text(encoding="utf-8"))
    assert facts["lines"] == {"train": 4}
    assert facts["aligned"]["corpora"]["de"] == {"pairs": 4, "incomplete": 1, "different": 3, "lines": 3, "repeated": 0}


def test_lines_in_few_languages_can_be_left_out(tmp_path: Path) -> None:
    corpora = write_pairs(tmp_path, PAIRS)
    made = align(corpora, tmp_path / "out", AlignOptions(min_languages=3))
    assert read_lines(tmp_path / "out") == reference(PAIRS, 3)
    assert (made.lines, made.left_out) == (2, 2)
    assert (made.corpora["fr"].different, made.corpora["fr"].lines) == (3, 2)
    with pytest.raises(DataError, match="no line has text in 5 languages"):
        align(corpora, tmp_path / "none", AlignOptions(min_languages=5))
    assert not (tmp_path / "none").exists()


# Few words, so that English lines repeat within and across languages; whitespace and empty sides as files have them.
TEXTS = st.lists(st.sampled_from(["a", "b", "ß", "'", "语", " ", "\u2028", '"', ",", "\\N", "NULL"]), max_size=3).map("".join)
MANY_PAIRS = st.dictionaries(
    st.sampled_from(["de", "fr", "zh-hant", "pt_br"]), st.lists(st.tuples(TEXTS, TEXTS), max_size=30), min_size=1
).filter(lambda pairs: all(any(a.split() and b.split() for a, b in lines) for lines in pairs.values()))


@given(pairs=MANY_PAIRS, min_languages=st.integers(2, 3), chance=st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_the_result_is_that_of_a_program_in_memory(
    many_ranges: None, pairs: Pairs, min_languages: int, chance: random.Random
) -> None:
    expected = reference(pairs, min_languages)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpora = write_pairs(folder, pairs)
        chance.shuffle(corpora)
        options = AlignOptions(min_languages=min_languages, threads=chance.choice([1, 2]))
        if not expected["en"]:
            with pytest.raises(DataError, match="no line has text in 3 languages"):
                align(corpora, folder / "out", options)
        else:
            align(corpora, folder / "out", options)
            assert read_lines(folder / "out") == expected


def made_up_pairs(count: int) -> Pairs:
    chance = random.Random(1)
    return {
        language: [(f"line {chance.randrange(count)} of many", f"{language} {number}") for number in range(count)]
        for language in ("de", "fr", "it")
    }


def test_neither_order_nor_threads_nor_memory_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(through_english, "RANGE_SHARE", 2000)
    monkeypatch.setattr(through_english, "SORTED_SHARE", 0.0005)
    corpora = write_pairs(tmp_path, made_up_pairs(30_000))
    align(corpora, tmp_path / "one", AlignOptions(threads=1))
    monkeypatch.setattr(through_english, "RANGE_SHARE", 1)
    monkeypatch.setattr(through_english, "SORTED_SHARE", 1)
    align(corpora[::-1], tmp_path / "two", AlignOptions(threads=4, memory="2GB"))
    for path in sorted((tmp_path / "one").iterdir()):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_lines_come_shuffled(tmp_path: Path) -> None:
    align(write_pairs(tmp_path, {"fr": [(f"{n:05}", "x") for n in range(2000)]}), tmp_path / "out")
    numbers = [int(line) for line in read_lines(tmp_path / "out")["en"]]
    steps = [abs(one - other) for one, other in pairwise(numbers)]
    assert abs(sum(steps) / len(steps) / 2000 - 1 / 3) < 0.03


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    corpora = write_pairs(tmp_path, PAIRS)
    align(corpora, tmp_path / "made" / "out")
    align(corpora, tmp_path / "made" / "other", AlignOptions(temporary=tmp_path / "temporary"))
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == ["other", "out"]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_what_was_read_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpora = write_pairs(tmp_path, PAIRS)
    with monkeypatch.context() as patch, pytest.raises(DataError, match="stopped"):

        def stop(*arguments: object) -> None:
            raise DataError("stopped")

        patch.setattr(through_english, "_join", stop)
        align(corpora, tmp_path / "out")
    (tmp_path / "fr.fr").write_text("A\nB\nC\nD\nE\n", encoding="utf-8")
    made = align(corpora, tmp_path / "out")
    assert made.resumed == ("de", "el")
    changed = {**PAIRS, "fr": [(english, "ABCDE"[n]) for n, (english, _) in enumerate(PAIRS["fr"])]}
    assert read_lines(tmp_path / "out") == reference(changed)
    assert align(corpora, tmp_path / "out").resumed == ()


PROGRAM = """
import sys
from pathlib import Path
from graftmt.prepare.bilingual import find_corpora
from graftmt.prepare.through_english import AlignOptions, align
folder = Path(sys.argv[1])
corpora = find_corpora([f"{code}={folder / code}" for code in ("de", "fr", "it")])
align(corpora, Path(sys.argv[2]), AlignOptions(threads=2, temporary=Path(sys.argv[3])))
"""


def start(*arguments: Path, before: str = "") -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", before + PROGRAM, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)


@pytest.mark.slow
@pytest.mark.parametrize("awaited", [".de.0.parquet.*.tmp", "de.1.parquet", "de.json", "it.json", "joining"])
def test_a_killed_run_goes_on_to_the_same_result(tmp_path: Path, awaited: str) -> None:
    corpora = write_pairs(tmp_path, made_up_pairs(100_000))
    work, made = tmp_path / "work", tmp_path / "made"
    # A moment at each of the points of interest, so that the signal finds the process there.
    slowly = (
        "import time, graftmt.prepare.through_english as t\n"
        "t.BATCH_LINES, t.RANGE_SHARE, t.SORTED_SHARE = 5000, 3000, 0.001\n"
        "one = t._write_lines\n"
        "t._write_lines = lambda *a: (time.sleep(0.02), one(*a))\n"
    )
    process = start(tmp_path, made / "out", work, before=slowly)
    pattern = "made/.out.*.tmp/new/train.*" if awaited == "joining" else f"work/*/{awaited}"
    while process.poll() is None and not list(tmp_path.glob(pattern)):
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (made / "out").exists()
    again = align(corpora, made / "out", AlignOptions(temporary=work))
    assert ("de" in again.resumed) == (awaited in ("de.json", "it.json", "joining"))
    align(corpora, tmp_path / "expected")
    for path in sorted((tmp_path / "expected").iterdir()):
        assert path.read_bytes() == (made / "out" / path.name).read_bytes()
    assert [path.name for path in made.iterdir()] == ["out"]
    assert list(work.iterdir()) == []


def test_a_second_run_on_the_same_output_is_told_so(tmp_path: Path) -> None:
    corpora = write_pairs(tmp_path, PAIRS)
    with (
        through_english.exclusive(through_english._work_folder(tmp_path / "out", AlignOptions()), ""),
        pytest.raises(GraftError, match=r"the alignment in .* is in use by another process"),
    ):
        align(corpora, tmp_path / "out")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[list[str]]:
    """The beginning of a command that runs with a disk of 3 MB at tmp_path/disk."""
    (tmp_path / "disk").mkdir()
    mounting = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=3m none "$0" && exec "$@"', str(tmp_path / "disk")]
    if shutil.which("unshare") is None or subprocess.run([*mounting, "true"], capture_output=True).returncode:
        pytest.skip("no small disk can be made here")
    yield mounting


@pytest.mark.slow
@pytest.mark.parametrize("full", ["output", "temporary"])
def test_a_full_disk_is_an_error_that_says_so_and_leaves_no_output(tmp_path: Path, small_disk: list[str], full: str) -> None:
    pairs = {
        code: [(f"{n} {hashlib.sha256(str(n).encode()).hexdigest()}", f"{code} {n}") for n in range(60_000)]
        for code in ("de", "fr", "it")
    }
    write_pairs(tmp_path, pairs)
    places = [tmp_path / "disk" / "x", tmp_path / "work"] if full == "output" else [tmp_path / "out", tmp_path / "disk"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = [*small_disk, sys.executable, "-c", PROGRAM, str(tmp_path), *map(str, places)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    message = done.stderr.strip().splitlines()[-1]
    assert "GraftError: " in done.stderr
    assert "free some space or choose another folder" in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("english", "french", "words"),
    [
        (b"a\nb\nc\n", b"x\ny\n", r"different numbers of lines \(fr.en: 3, fr.fr: 2\)"),
        (b"a\n", b"x\ny\n" * 30_000, r"different numbers of lines \(fr.en: 1, fr.fr: 60,000\)"),
        (b"a\nb\n", b"x\n\xff\n", r"fr\.fr, line 2: not valid UTF-8"),
        (b"a\n\0\n", b"x\ny\n", r"fr\.en, line 2: a NUL byte"),
        (b"a\n\n", b"\ny\n", "no line with text on both sides"),
        (b"", b"", "no line with text on both sides"),
    ],
)
def test_bad_text_is_an_error_that_names_the_file(tmp_path: Path, english: bytes, french: bytes, words: str) -> None:
    corpora = write_pairs(tmp_path, PAIRS)
    (tmp_path / "fr.en").write_bytes(english)
    (tmp_path / "fr.fr").write_bytes(french)
    with pytest.raises(DataError, match=words):
        align(corpora, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_corpora_are_found_in_folders_by_prefix_and_by_file(tmp_path: Path) -> None:
    for folder in ("both", "bilingual"):
        (tmp_path / folder).mkdir()
    for name in ("both/train.en.txt", "both/train.fr.txt", "both/train.de.txt", "bilingual/train.en", "bilingual/train.it"):
        (tmp_path / name).touch()
    (tmp_path / "moses.en-pt.en").touch()
    with gzip.open(tmp_path / "moses.en-pt.pt.gz", "wb"):
        pass
    (tmp_path / "other").touch()
    found = find_corpora(
        [
            f"it={tmp_path / 'bilingual'}",
            str(tmp_path / "both"),
            f"pt={tmp_path / 'moses.en-pt'}",
            f"zh={tmp_path / 'moses.en-pt.en'},{tmp_path / 'other'}",
        ]
    )
    assert [(corpus.language, corpus.pivot_file.name, corpus.file.name) for corpus in found] == [
        ("de", "train.en.txt", "train.de.txt"),
        ("fr", "train.en.txt", "train.fr.txt"),
        ("it", "train.en", "train.it"),
        ("pt", "moses.en-pt.en", "moses.en-pt.pt.gz"),
        ("zh", "moses.en-pt.en", "other"),
    ]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ([], DataError, "no corpora to align were given"),
        (["{}/nowhere"], DataError, "there is no corpus folder"),
        (["fr={}/nowhere"], DataError, "expected fr=FOLDER, fr=PREFIX, or fr=EN_FILE,FR_FILE"),
        (["fr={}/fr.en,{}/nowhere"], DataError, "there is no file"),
        (["en={}/fr"], LanguageError, "en is the language that all corpora share"),
        (["fr={}/fr", "fr={}/fr"], LanguageError, "fr has two corpora"),
        (["{}/french"], LanguageError, "has fr; expected en"),
        (["de={}/french"], LanguageError, "no train text for language 'en'"),
    ],
)
def test_arguments_that_name_no_corpus(tmp_path: Path, arguments: list[str], error: type[Exception], words: str) -> None:
    write_pairs(tmp_path, PAIRS)
    (tmp_path / "french").mkdir()
    (tmp_path / "french" / "train.fr.txt").touch()
    with pytest.raises(error, match=words):
        find_corpora([argument.replace("{}", str(tmp_path)) for argument in arguments])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"memory": "lots"}, "expected a size such as"),
        ({"memory": "1MB"}, "expected 200MB or more"),
        ({"memory": "1GB", "threads": 16}, "expected 1600MB or more, 100MB for each thread"),
        ({"threads": -1}, "threads is -1"),
        ({"min_languages": 1}, "min_languages is 1"),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        AlignOptions(**options)  # type: ignore[arg-type]


def test_memory_is_a_size() -> None:
    assert AlignOptions(memory="1.5 gb").memory_bytes == 1_500_000_000


def test_the_output_never_replaces_the_input_or_something_else(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    corpora = write_pairs(tmp_path / "in", PAIRS)
    with pytest.raises(DataError, match="holds what is to be read"):
        align(corpora, tmp_path / "in")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").touch()
    with pytest.raises(DataError, match=r"not a corpus \(chapter\.txt\)"):
        align(corpora, tmp_path / "thesis")
    with pytest.raises(DataError, match="is a file"):
        align(corpora, tmp_path / "in" / "fr.en")
