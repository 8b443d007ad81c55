"""Text in any number of pieces and formats becomes one corpus, and each line can be told where it came from."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from graftmt.adding.given_text import open_text, pieces_of
from graftmt.data import Corpus
from graftmt.errors import DataError, GraftError, LanguageError

KNOWN = ("ca", "de", "en", "fr")
CATALAN = ["Bon dia a tothom.", "El gat dorm sota la taula.", "Quina hora és?", "M'agrada llegir llibres vells."]
ENGLISH = ["Good morning, everyone.", "The cat sleeps under the table.", "What time is it?", "I like reading old books."]
Open = Callable[..., Corpus]


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    monkeypatch.setenv("GRAFTMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def open_it(*arguments: str, partners: Sequence[str] | None = ("en",), known: Sequence[str] = KNOWN) -> Corpus:
        return open_text(arguments, "train", known, ["ca"], partners)

    return open_it


def lines(corpus: Corpus) -> dict[str, list[str]]:
    return corpus.texts(corpus.languages)


def table(name: str, *rows: Sequence[str]) -> str:
    Path(name).write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return name


TMX = """<?xml version="1.0"?><tmx version="1.4"><header/><body>{}</body></tmx>"""
UNIT = '<tu><tuv xml:lang="{}"><seg>{}</seg></tuv><tuv xml:lang="{}"><seg>{}</seg></tuv></tu>'


def memory(name: str, english: str, catalan: str) -> str:
    units = "".join(UNIT.format(english, en, catalan, ca) for ca, en in zip(CATALAN, ENGLISH, strict=True))
    Path(name).write_text(TMX.format(units), encoding="utf-8")
    return name


BOTH = {"ca": CATALAN, "en": ENGLISH}


def test_a_table_by_the_names_in_its_header(text: Open) -> None:
    pytest.importorskip("langcodes")
    rows = [(str(n), en, ca) for n, (ca, en) in enumerate(zip(CATALAN, ENGLISH, strict=True))]
    for header in (("id", "en", "ca"), ("id", "English", "Catalan"), ("id", "en-US", "cat")):
        corpus = text(table(f"{header[1]}.tsv", header, *rows))
        assert lines(corpus) == BOTH
        (piece,) = pieces_of(corpus)
        assert (piece.name, piece.lines, piece.first_line) == (f"{header[1]}.tsv", 4, 2)
        assert f"{header[2]} is ca" in piece.note


def test_a_table_of_two_columns_without_a_header(text: Open) -> None:
    in_order = text(table("a.tsv", *zip(CATALAN, ENGLISH, strict=True)))
    assert lines(in_order) == BOTH
    assert "column 1 is taken for ca" in pieces_of(in_order)[0].note


def test_columns_without_a_header_are_told_by_their_text(text: Open) -> None:
    pytest.importorskip("py3langid")
    ours = [f"{one} {other}" for one in CATALAN for other in CATALAN] * 3
    theirs = [f"{one} {other}" for one in ENGLISH for other in ENGLISH] * 3
    corpus = text(table("b.tsv", *zip(theirs, ours, strict=True)))
    assert lines(corpus) == {"ca": ours, "en": theirs}
    assert "column 1 is en" in pieces_of(corpus)[0].note


def test_columns_that_cannot_be_told_are_an_error_with_the_way_out(text: Open) -> None:
    path = table("c.tsv", *zip(CATALAN, ENGLISH, strict=True))
    with pytest.raises(LanguageError, match=r"c\.tsv.*--with.*prepare tsv"):
        text(path, partners=None)
    with pytest.raises(LanguageError, match="3 columns"):
        text(table("d.tsv", *zip("1234", CATALAN, ENGLISH, strict=True)))


def test_a_translation_memory_whatever_its_codes(text: Open) -> None:
    pytest.importorskip("langcodes")
    for english, catalan in (("en", "ca"), ("en-US", "ca-ES"), ("EN", "CA")):
        assert lines(text(memory(f"{english}.tmx", english, catalan))) == BOTH
    with pytest.raises(LanguageError, match=r"de.*expected ca"):
        text(memory("other.tmx", "en", "de"))


def test_json_lines_parquet_catalogues_and_data_sets(text: Open, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    records = [{"translation": {"ca": ca, "en": en}} for ca, en in zip(CATALAN, ENGLISH, strict=True)]
    Path("a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    flat = "".join(json.dumps({"en": en, "ca": ca, "n": 1}) + "\n" for ca, en in zip(CATALAN, ENGLISH, strict=True))
    with gzip.open("b.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(flat)
    parquet.write_table(pyarrow.table(BOTH), "c.parquet")
    entries = "".join(f'msgid "{en}"\nmsgstr "{ca}"\n\n' for ca, en in zip(CATALAN, ENGLISH, strict=True))
    Path("ca.po").write_text(f'msgid ""\nmsgstr "Language: ca\\n"\n\n{entries}', encoding="utf-8")
    for split in ("train", "test"):  # as save_to_disk leaves a data set
        (tmp_path / "stored" / split).mkdir(parents=True)
        nested = pyarrow.table({"translation": [record["translation"] for record in records]})
        with pyarrow.ipc.new_stream(f"stored/{split}/data-00000-of-00001.arrow", nested.schema) as stream:
            stream.write_table(nested)
        Path(f"stored/{split}/state.json").write_text("{}", encoding="utf-8")
    for argument in ("a.jsonl", "b.jsonl.gz", "c.parquet", "ca.po", "stored"):
        assert lines(text(argument)) == BOTH, argument


def test_several_sources_one_after_the_other(text: Open, tmp_path: Path) -> None:
    pytest.importorskip("langcodes")
    (tmp_path / "folder").mkdir()
    for code, side in BOTH.items():
        Path(f"folder/train.{code}.txt").write_text("\n".join(side) + "\n", encoding="utf-8")
        Path(f"moses.{code}").write_text("\n".join(side[:2]) + "\n", encoding="utf-8")
    first = table("a.tsv", ("ca", "en"), ("Hola", "Hello"))
    given = [first, "folder", "moses.ca", "moses.en", "ca=moses.ca", "en=moses.en", memory("m.tmx", "en", "ca")]
    corpus = text(*given)
    assert lines(corpus)["ca"] == ["Hola", *CATALAN, *CATALAN[:2], *CATALAN[:2], *CATALAN]
    assert [(piece.name, piece.lines) for piece in pieces_of(corpus)] == [
        ("a.tsv", 1),
        ("folder", 4),
        ("moses.ca and moses.en", 2),
        ("ca=moses.ca and en=moses.en", 2),
        ("m.tmx", 4),
    ]
    assert text(*given).folder == corpus.folder
    table("a.tsv", ("ca", "en"), ("Adéu", "Goodbye"))
    assert lines(text(*given))["ca"][0] == "Adéu"


def test_one_corpus_folder_and_files_by_language_stay_where_they_are(text: Open, tmp_path: Path) -> None:
    for code, side in BOTH.items():
        Path(f"train.{code}.txt").write_text("\n".join(side) + "\n", encoding="utf-8")
    for given in ([str(tmp_path)], ["ca=train.ca.txt", "en=train.en.txt"]):
        corpus = text(*given)
        assert {path.resolve().parent for path in corpus.files.values()} == {tmp_path}
        assert pieces_of(corpus) == []


def test_mistakes_leave_nothing_behind(text: Open, tmp_path: Path) -> None:
    table("a.tsv", ("ca", "en"), ("Hola", "Hello"), ("no", "such", "row"))
    with pytest.raises(GraftError, match="line 3"):
        text("a.tsv")
    assert not list((tmp_path / "cache").glob("*"))
    with pytest.raises(DataError, match="no file"):
        text("a.tsv", "missing.tsv")
    with pytest.raises(DataError, match=r"pairs.*--train"):
        text(f"ca={table('pairs.tsv', ('ca', 'en'), ('Hola', 'Hello'))}", "en=pairs.tsv")
