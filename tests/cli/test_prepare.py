"""`graftmt prepare`: from releases as people download them to corpus folders that training takes, one command each."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from graftmt.adding.pack_text import open_add_corpus
from graftmt.cli.prepare import app
from graftmt.data import Corpus

COMMANDS = [str(command.name) for command in app.registered_commands]
WORDS = {"en": "bad", "fr": "pise", "de": "gut", "ar": "كتاب", "ru": "дом", "zh": "书", "el": "λέξη", "pt_br": "casa"}


def sentence(language: str, number: int) -> str:
    chance = random.Random(number)
    return " ".join(f"{WORDS[language]}{chance.randrange(30)}" for _ in range(chance.randint(3, 9)))


def lines(language: str, count: int, start: int = 0) -> str:
    return "".join(f"{sentence(language, start + number)}\n" for number in range(count))


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def tar_of(members: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def ted_release(folder: Path) -> Path:
    """As neulab's: tokenised, Moses escapes, stray quotation marks, gaps, rows without anything in the languages chosen."""
    languages = ["en", "pt_br", "fr", "el"]
    members = {}
    for split, count in {"train": 120, "dev": 12, "test": 12}.items():
        rows = ["\t".join(["talk_name", *(language.replace("_", "-") for language in languages)])]
        for number in range(count):
            cells = [f'"{sentence(language, number)} &apos;s &quot;' for language in languages]
            cells[3] = "__NULL__" if number % 3 == 0 else cells[3]
            rows.append("\t".join([f"talk_{number // 10}", *cells]))
        rows.append("\t".join(["talk_x", *["__NULL__"] * len(languages)]))
        members[f"all_talks_{split}.tsv"] = "\n".join(rows) + "\n"
    return write(folder / "ted_talks.tar.gz", tar_of(members))


def paracrawl_folder(folder: Path) -> Path:
    """As ParaCrawl's: tab-separated text, TMX, and OPUS's zip of Moses files."""
    rows = "".join(f"{sentence('en', number)}\t{sentence('fr', number)}\n" for number in range(50))
    write(folder / "en-fr.txt.gz", gzip.compress(rows.encode()))
    units = "".join(
        f'<tu tuid="{number}" datatype="Text"><prop type="score-bicleaner">0.7</prop>'
        f'<tuv xml:lang="en"><prop type="source-document">http://x</prop><seg>{sentence("en", number)}</seg></tuv>'
        f'<tuv xml:lang="de"><seg>{sentence("de", number)}</seg></tuv></tu>'
        for number in range(20, 60)
    )
    text = f'<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>'
    write(folder / "en-de.tmx.gz", gzip.compress(text.encode()))
    with zipfile.ZipFile(folder / "en-el.txt.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README", "ParaCrawl")
        for language in ("en", "el"):
            archive.writestr(f"ParaCrawl.en-el.{language}", lines(language, 45))
    return folder


def unpc_folder(folder: Path) -> Path:
    """As the UN's: archives of a pair cut into parts, and the test sets in all languages."""
    for pair in ("ar-en", "en-ru"):
        names = {f"{pair}/UNv1.0.{pair}.{language}": lines(language, 60) for language in pair.split("-")}
        content = tar_of({"LICENSE": "x", **names, f"{pair}/UNv1.0.{pair}.ids": "1\n"})
        half = len(content) // 2
        for number, part in enumerate((content[:half], content[half:])):
            write(folder / f"UNv1.0.{pair}.tar.gz.{number:02}", part)
    sets = {
        f"testsets/{name}/UNv1.0.{name}.{language}": lines(language, 8, start)
        for name, start in (("devset", 1000), ("testset", 2000))
        for language in ("ar", "en", "ru", "fr", "zh")
    }
    write(folder / "UNv1.0.testsets.tar.gz", tar_of(sets))
    return folder


def flores_folder(folder: Path) -> Path:
    for code, language in {"eng_Latn": "en", "fra_Latn": "fr", "zho_Hans": "zh", "zho_Hant": "zh"}.items():
        for split, count in (("dev", 9), ("devtest", 10)):
            write(folder / split / f"{code}.{split}", lines(language, count))
    write(folder / "metadata_dev.tsv", "URL\tdomain\n")
    return folder


@pytest.fixture
def accepted(graftmt, tmp_path: Path, toy_settings: Callable[..., dict[str, Any]]) -> Callable[..., None]:
    """Training takes the corpus: two steps of it."""

    def check(corpus: Path, *directions: str) -> None:
        config = write(
            tmp_path / "train.yaml",
            yaml.safe_dump(
                toy_settings(
                    tmp_path / "run",
                    f"data.corpus={corpus}",
                    "subwords.merges=50",
                    "stages.0.steps=2",
                    f"stages.0.directions=[{','.join(directions)}]",
                    "validation.every=2",
                    f"validation.directions=[{directions[0]}]",
                )
            ),
        )
        dry = graftmt("train", str(config), "--dry-run")
        assert dry.code == 0, dry.stderr
        result = graftmt("train", str(config), "--quiet")
        assert result.code == 0, result.stderr

    return check


def test_the_help_of_every_command_has_an_example_of_itself(graftmt) -> None:
    listed = graftmt("prepare", "--help").stdout
    assert {"ted", "moses", "tsv", "tmx", "jsonl", "parquet", "po", "flores", "paracrawl", "unpc", "fetch"} <= set(COMMANDS)
    for command in COMMANDS:
        assert f" {command} " in listed
        result = graftmt("prepare", command, "-h")
        assert f"graftmt prepare {command}" in result.stdout.partition("Example")[2], command


def test_a_ted_release_becomes_a_corpus_that_training_takes(graftmt, accepted, tmp_path: Path) -> None:
    release, corpus = ted_release(tmp_path / "release"), tmp_path / "corpus"
    result = graftmt("prepare", "ted", str(release), "-o", str(corpus), "--json", "--quiet")
    assert (result.code, result.stderr) == (0, "")
    report = json.loads(result.stdout)["splits"]
    assert list(report) == ["train", "valid", "test"]
    assert report["train"]["lines"] == 120
    assert report["train"]["without_text"] == 1
    assert report["train"]["texts"] == {"en": 120, "pt_br": 120, "fr": 120, "el": 80}
    assert json.loads((corpus / "corpus.json").read_text())["splits"] == report
    train = Corpus.open(corpus, "train").texts(("en", "el"))
    assert train["en"][0] == f'"{sentence("en", 0)} \'s "'
    assert [not text for text in train["el"][:4]] == [True, False, False, True]
    accepted(corpus, "en-el", "pt_br-fr")
    added = open_add_corpus(
        [str(corpus)], new=["el"], base_languages=["en", "fr", "pt_br"], partners=["en"], work=tmp_path / "work", seed=1
    )
    assert (added.partners, added.held_out, added.valid.split) == (("en",), False, "valid")


def test_a_paracrawl_folder_becomes_bilingual_corpora(graftmt, tmp_path: Path) -> None:
    folder, corpora = paracrawl_folder(tmp_path / "paracrawl"), tmp_path / "corpora"
    result = graftmt("prepare", "paracrawl", str(folder), "-o", str(corpora))
    assert result.code == 0, result.stderr
    assert [path.name for path in sorted(corpora.iterdir())] == ["en-de", "en-el", "en-fr"]
    assert "en 40, de 40" in result.stdout
    for pair, start, count in (("en-de", 20, 40), ("en-el", 0, 45), ("en-fr", 0, 50)):
        texts = Corpus.open(corpora / pair, "train").texts(pair.split("-"))
        assert texts == {code: [sentence(code, start + number) for number in range(count)] for code in pair.split("-")}


def test_a_paracrawl_folder_is_aligned_into_a_corpus_that_training_takes(graftmt, accepted, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    folder, corpora, corpus = paracrawl_folder(tmp_path / "paracrawl"), tmp_path / "corpora", tmp_path / "corpus"
    assert graftmt("prepare", "paracrawl", str(folder), "-o", str(corpora), "-q").code == 0
    result = graftmt("prepare", "align", *map(str, sorted(corpora.iterdir())), "-o", str(corpus))
    assert result.code == 0, result.stderr
    train = Corpus.open(corpus, "train").texts(("en", "fr", "de", "el"))
    expected = {sentence("en", number) for number in range(60)}
    assert (set(train["en"]), len(train["en"])) == (expected, len(expected))
    both = sum(bool(french and german) for french, german in zip(train["fr"], train["de"], strict=True))
    assert both == len({sentence("en", number) for number in range(20, 50)})


def test_a_unpc_folder_becomes_a_corpus_that_training_takes(graftmt, accepted, tmp_path: Path) -> None:
    folder, corpus = unpc_folder(tmp_path / "unpc"), tmp_path / "corpus"
    result = graftmt("prepare", "unpc", str(folder), "-o", str(corpus), "--json")
    assert result.code == 0, result.stderr
    report = json.loads(result.stdout)["splits"]
    assert {split: counts["texts"] for split, counts in report.items()} == {
        "train": {"ar": 60, "en": 120, "ru": 60},
        "valid": {"ar": 8, "en": 8, "ru": 8},
        "test": {"ar": 8, "en": 8, "ru": 8},
    }
    accepted(corpus, "ar-en", "en-ru")
    assert graftmt("prepare", "unpc", str(folder), "-o", str(corpus), "-l", "en,ar").code == 0
    assert Corpus.open(corpus, "train").languages == ("ar", "en")


def test_a_flores_folder_becomes_a_corpus_for_evaluation(graftmt, tmp_path: Path) -> None:
    folder, corpus = flores_folder(tmp_path / "flores"), tmp_path / "corpus"
    result = graftmt("prepare", "flores", str(folder), "-o", str(corpus), "-l", "en,fr,zh=zho_Hans", "--short-codes")
    assert result.code == 0, result.stderr
    for split, count in (("valid", 9), ("test", 10)):
        texts = Corpus.open(corpus, split).texts(("en", "fr", "zh"))
        assert texts["zh"] == [sentence("zh", number) for number in range(count)]


def test_every_other_format_in_one_command(graftmt, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pairs = [(sentence("en", number), sentence("fr", number)) for number in range(5)]
    write(tmp_path / "train.en", lines("en", 5))
    write(tmp_path / "train.fr", lines("fr", 5))
    write(tmp_path / "t.csv", "e;f\n" + "".join(f"{first};{second}\n" for first, second in pairs))
    body = "".join(
        f'<tu><tuv xml:lang="EN-us"><seg>{first}</seg></tuv><tuv xml:lang="fr"><seg>{second}</seg></tuv></tu>'
        for first, second in pairs
    )
    write(tmp_path / "m.tmx", f"<tmx><header/><body>{body}</body></tmx>")
    write(tmp_path / "x.jsonl", "".join(json.dumps({"translation": {"en": a, "fr": b}}) + "\n" for a, b in pairs))
    pq.write_table(pa.table({"s": [a for a, _ in pairs], "t": [b for _, b in pairs]}), tmp_path / "x.parquet")
    write(tmp_path / "fr.po", "".join(f'msgid "{first}"\nmsgstr "{second}"\n\n' for first, second in pairs))
    for language in ("en", "fr"):
        write(tmp_path / "downloads" / "Books-en-fr-latest" / f"Books.en-fr.{language}", lines(language, 5))
    commands = [
        ["moses", "train.en", "train.fr"],
        ["tsv", "t.csv", "--columns", "en=e,fr=f", "--delimiter", ";"],
        ["tmx", "m.tmx", "--fold-regions"],
        ["jsonl", "x.jsonl"],
        ["parquet", "x.parquet", "--columns", "en=s,fr=t"],
        ["po", "fr.po"],
        ["fetch", "Books", "en-fr", "--downloads", "downloads"],
    ]
    for command in commands:
        arguments = [str(tmp_path / word) if (tmp_path / word).exists() else word for word in command]
        corpus = tmp_path / "out" / command[0]
        result = graftmt("prepare", *arguments, "-o", str(corpus))
        assert result.code == 0, result.stderr
        assert "en 5, fr 5" in result.stdout
        texts = Corpus.open(corpus, "train").texts(("en", "fr"))
        assert list(zip(texts["en"], texts["fr"], strict=True)) == pairs, command


def bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for language in ("en", "fr"):
            archive.writestr(f"x.{language}", (b"a" * 40_000 + b"\n") * 120)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("command", "files", "words"),
    [
        ("moses", {"c.en": b"a\nb\n", "c.fr": b"a\n"}, ["c.en: 2", "c.fr: 1"]),
        ("moses", {"c.en": b"a\nb\n", "c.fr": b"a\n\xff\n"}, ["c.fr, line 2", "not valid UTF-8"]),
        ("tmx", {"m.tmx": b'<tmx><body><tu><tuv xml:lang="en"><seg>a</seg></tuv></tu>\n<tu><tuv'}, ["m.tmx, line 2"]),
        ("tsv", {"t.tsv": b"en\tfr\na\tb\nc\n"}, ["t.tsv, line 3", "fr is column 2"]),
        ("tsv", {"t.tsv": b"en\tfr\na\tb\nc\td\te\n"}, ["t.tsv, line 3", "3 columns where the header has 2"]),
        ("tsv", {"t.tsv": b"source\ttarget\na\tb\n"}, ["'source'", "--columns"]),
        ("moses", {"a.tar.gz": tar_of({"c.en": "a", "../c.fr": "b"})}, ["a.tar.gz", "'../c.fr'"]),
        ("moses", {"a.zip": bomb()}, ["a.zip", "--max-ratio"]),
        ("moses", {"c.en.gz": gzip.compress(os.urandom(999).hex().encode())[:-9], "c.fr": b"a"}, ["c.en.gz", "truncated"]),
        ("parquet", {"x.parquet": b"PAR1"}, ["x.parquet"]),
    ],
)
def test_bad_input_is_one_paragraph_and_leaves_what_was_there(
    graftmt, tmp_path: Path, command: str, files, words: list[str]
) -> None:
    for name, content in files.items():
        write(tmp_path / "in" / name, content)
    write(tmp_path / "x.en", "old\n")
    write(tmp_path / "x.fr", "vieux\n")
    corpus = tmp_path / "out" / "corpus"
    assert graftmt("prepare", "moses", str(tmp_path / "x.en"), str(tmp_path / "x.fr"), "-o", str(corpus)).code == 0
    before = {path.name: path.read_bytes() for path in corpus.iterdir()}
    result = graftmt("prepare", command, str(tmp_path / "in"), "-o", str(corpus))
    assert (result.code, result.stdout) == (1, "")
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr
    assert {path.name: path.read_bytes() for path in corpus.iterdir()} == before
    assert list(corpus.parent.iterdir()) == [corpus]


def test_help_on_tmx_says_what_becomes_of_entities_and_dtds(graftmt) -> None:
    said = " ".join(graftmt("prepare", "tmx", "--help").stdout.split())
    assert "Entities are refused" in said and "DTDs are not loaded" in said


def test_limits_can_be_raised(graftmt, tmp_path: Path) -> None:
    path = write(tmp_path / "a.zip", bomb())
    result = graftmt("prepare", "moses", str(path), "-o", str(tmp_path / "c"), "--max-ratio", "100000", "--max-size", "1kB")
    assert result.code == 1
    assert "1,000 bytes" in result.stderr
    assert graftmt("prepare", "moses", str(path), "-o", str(tmp_path / "c"), "--max-ratio", "100000", "-q").code == 0


def test_a_disk_that_fills_up_leaves_nothing(graftmt, tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    write(tmp_path / "x.en", lines("en", 2000))
    write(tmp_path / "x.fr", lines("fr", 2000))
    real = Path.open

    def full(self: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        return real(Path("/dev/full") if "w" in mode and self.name == "train.fr.txt" else self, mode, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", full)
        result = graftmt("prepare", "moses", str(tmp_path / "x.en"), str(tmp_path / "x.fr"), "-o", str(tmp_path / "out" / "c"))
    assert result.code == 1
    assert "No space left on device" in result.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_is_no_corpus_is_not_replaced(graftmt, tmp_path: Path) -> None:
    write(tmp_path / "in" / "x.en", "a\n")
    write(tmp_path / "in" / "x.fr", "b\n")
    write(tmp_path / "other" / "notes.md", "mine\n")
    result = graftmt("prepare", "moses", str(tmp_path / "in"), "-o", str(tmp_path / "other"))
    assert result.code == 1
    assert "not a corpus (notes.md), and stays as it is" in result.stderr
    assert (tmp_path / "other" / "notes.md").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("files", "command", "words"),
    [
        ({}, ["moses", "in"], "holds what is to be read"),
        ({"in/extra.tsv": "en\tfr\na\tb\n"}, ["tsv", "in/extra.tsv"], "holds what is to be read"),
        ({"in/deep/extra.tsv": "en\tfr\na\tb\n"}, ["tsv", "in/deep/extra.tsv"], "holds what is to be read"),
        ({"in/notes.md": "mine", "t.tsv": "en\tfr\na\tb\n"}, ["tsv", "t.tsv"], "with other things in it (notes.md)"),
        ({"in/raw/x": "mine", "t.tsv": "en\tfr\na\tb\n"}, ["tsv", "t.tsv"], "with other things in it (raw)"),
        ({"in/mine.en.txt": "mine", "t.tsv": "en\tfr\na\tb\n"}, ["tsv", "t.tsv"], "things in it (mine.en.txt)"),
    ],
)
def test_no_reader_replaces_its_input_or_anything_but_a_corpus(
    graftmt, tmp_path: Path, files: dict[str, str], command: list[str], words: str
) -> None:
    write(tmp_path / "x.en", "a\n")
    write(tmp_path / "x.fr", "b\n")
    made = graftmt("prepare", "moses", str(tmp_path / "x.en"), str(tmp_path / "x.fr"), "-o", str(tmp_path / "in"))
    assert made.code == 0, made.stderr
    for name, text in files.items():
        write(tmp_path / name, text)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    result = graftmt("prepare", command[0], str(tmp_path / command[1]), "-o", str(tmp_path / "in"))
    assert (result.code, result.stdout) == (1, "")
    assert words in " ".join(result.stderr.split())
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_fetch_says_where_downloads_stay_and_reads_no_other_text(graftmt, tmp_path: Path) -> None:
    assert "NAME-PAIR-RELEASE" in graftmt("prepare", "fetch", "--help").stdout
    for language in ("en", "fr"):
        write(tmp_path / "dl" / f"Books.en-fr.{language}", lines(language, 5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "opustools", None)
        result = graftmt(
            "prepare", "fetch", "GlobalVoices", "en-fr", "--downloads", str(tmp_path / "dl"), "-o", str(tmp_path / "gv")
        )
    assert result.code == 1
    assert "opustools" in result.stderr
    assert not (tmp_path / "gv").exists()


def test_a_limit_that_is_no_size_is_said(graftmt, tmp_path: Path) -> None:
    result = graftmt("prepare", "moses", str(tmp_path), "-o", str(tmp_path / "c"), "--max-size", "9PB")
    assert (result.code, result.stdout) == (1, "")
    assert "'9PB' is no size; write one such as 500MB or 200GB." in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("release", "language"), [("ted", "el"), ("paracrawl", "el"), ("unpc", "ar")])
def test_a_language_can_be_added_from_what_was_prepared(
    graftmt, graft_base: Callable[..., Path], tmp_path: Path, release: str, language: str
) -> None:
    """`graftmt add` itself, on a base that knows en, fr and ru."""
    make = {"ted": ted_release, "paracrawl": paracrawl_folder, "unpc": unpc_folder}[release]
    raw, corpus = tmp_path / "raw", tmp_path / "corpus"
    make(raw)
    valid: list[str] = []  # but for TED's and the UN's own
    if release == "paracrawl":
        assert graftmt("prepare", "paracrawl", str(raw), "-o", str(tmp_path / "pairs")).code == 0
        pairs = [str(tmp_path / "pairs" / name) for name in ("en-el", "en-fr")]
        aligned = graftmt("prepare", "align", *pairs, "-o", str(corpus), "--memory", "200MB", "--threads", "1")
        assert aligned.code == 0, aligned.stderr
        valid = [part for code in ("el", "en") for part in ("--valid", f"{code}={pairs[0]}/train.{code}.txt")]
    else:
        read = graftmt("prepare", release, str(raw), "-o", str(corpus))
        assert read.code == 0, read.stderr
    options = [
        *valid,
        "--base",
        str(graft_base()),
        "--side",
        "source",
        "--train",
        str(corpus),
        "--merges",
        "20",
        "--steps",
        "2",
    ]
    small = [
        "--lines",
        "2",
        "--beam",
        "1",
        "--device",
        "cpu",
        "subwords.min_character_count=1",
        "tensorboard=false",
        "threads=1",
    ]
    added = graftmt("add", language, *options, "--run", str(tmp_path / "run"), *small, "--json", "--quiet")
    assert added.code == 0, added.stderr
    assert f"{language}-en" in json.loads(added.stdout)["verdict"]["scores"]


def test_flores_scores_a_base(graftmt, graft_base: Callable[..., Path], tmp_path: Path) -> None:
    folder, corpus = flores_folder(tmp_path / "raw"), tmp_path / "flores"
    read = graftmt("prepare", "flores", str(folder), "-o", str(corpus), "-l", "en,fr", "--short-codes")
    assert read.code == 0, read.stderr
    options = ["-d", "en-fr", "--beam", "1", "--device", "cpu", "--json"]
    scored = graftmt("evaluate", "--base", str(graft_base()), "-c", str(corpus), *options)
    assert scored.code == 0, scored.stderr
    assert json.loads(scored.stdout)["directions"]["en-fr"]["lines"] == 10
