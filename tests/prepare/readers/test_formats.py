"""Each format: what is text, what is missing, and errors that name the file, the line and what to do."""

from __future__ import annotations

import gzip
import json
import struct
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graftmt.data.line_files import LONGEST_LINE
from graftmt.errors import ConfigError, DataError, GraftError, LanguageError
from graftmt.prepare.readers import parse_languages
from graftmt.prepare.readers.any_format import Wanted, read_any
from graftmt.prepare.readers.delimited import read_tables
from graftmt.prepare.readers.flores import read_flores
from graftmt.prepare.readers.gettext import read_gettext
from graftmt.prepare.readers.jsonl import read_jsonl
from graftmt.prepare.readers.moses import language_and_stem, read_moses
from graftmt.prepare.readers.named import Named, read_named
from graftmt.prepare.readers.paracrawl import read_paracrawl
from graftmt.prepare.readers.parquet import read_parquet
from graftmt.prepare.readers.stored_parts import Limits
from graftmt.prepare.readers.ted import read_ted, unescape
from graftmt.prepare.readers.tmx import read_tmx
from graftmt.prepare.readers.unpc import is_unpc_file, read_unpc
from graftmt.progress import heard_by

# --- TED

TED = (
    "talk_name\ten\tpt-br\tfr\nt1\tit &apos;s \" a &#91; test &amp; so\t__NULL__\tc'est\nt2\tb\u2028c\t_ _ NULL _ _\t  x  y \n"
)


def test_ted_cells_are_unescaped_and_null_is_missing(write, stored, lines_of) -> None:
    splits = read_ted(stored(write("all_talks_dev.tsv", TED)))
    assert splits["valid"].languages == ("en", "pt_br", "fr")
    assert lines_of(splits) == {"valid": [("it 's \" a [ test & so", "", "c'est"), ("b c", "", "x y")]}


def test_ted_languages_can_be_chosen_and_renamed(write, stored, lines_of) -> None:
    files = stored(write("all_talks_train.tsv", TED))
    assert lines_of(read_ted(files, parse_languages("fr,br=pt_br")))["train"] == [("c'est", ""), ("x y", "")]
    with pytest.raises(LanguageError, match=r"all_talks_train.tsv .*'pt-bt'.*'pt-br'"):
        read_ted(files, parse_languages("pt-bt"))


@pytest.mark.parametrize(
    ("text", "plain"),
    [("&quot;a&quot;", '"a"'), ("R&nothing &not", "R&nothing &not"), ("&#x41;&#66;", "AB"), ("&#" + "9" * 9999 + ";", None)],
)
def test_escapes_need_their_semicolon(text: str, plain: str | None) -> None:
    assert unescape(text) == (text if plain is None else plain)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("talk_name\ten\tfr\nt\ta\tb\nt\tc\n", r"all_talks_train.tsv, line 3: 2 columns where the header has 3"),
        ("talk_name\ten\tfr\nt\ta\tb\tc\n", r"line 2: 4 columns"),
        ("talk_name\ten\ten\n", "the language 'en' twice"),
        ("talk_name\t../../x\n", "no language's name for a file"),
        ("talk_name\n", "no languages"),
        ("", "is empty"),
        (b"talk_name\ten\nt\t\xe9t\xe9\n", r"line 2: not valid UTF-8 \(byte 0xe9 at column 3"),
        ("talk_name\ten\n".encode("utf-16"), "is in UTF-16"),
        (f"en\n{'a' * (LONGEST_LINE + 1)}\n", r"line 2: 50,001 characters"),
    ],
)
def test_what_is_wrong_with_a_ted_file_is_said(write, stored, text, words: str) -> None:
    with pytest.raises(DataError, match=words):
        list(read_ted(stored(write("all_talks_train.tsv", text)))["train"])


# --- Moses


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Books.en-fr.fr", ("fr", "Books.en-fr")),
        ("x/corpus.pt_BR", ("pt_BR", "x/corpus")),
        ("corpus.en.txt", ("en", "corpus")),
        ("Books.en-fr.de", None),
        ("Books.en-fr.ids", None),
        ("Books.en-fr.xml", None),
        ("README", None),
        ("LICENSE.txt", None),
        (".en", None),
    ],
)
def test_moses_files_are_known_by_their_names(name: str, found) -> None:
    assert language_and_stem(name) == found


def test_moses_files_of_an_opus_zip(make_zip, stored, lines_of) -> None:
    path = make_zip("a.zip", {"README": b"x", "B.en-fr.fr": b"un\ndeux\n", "B.en-fr.en": b"one\ntwo", "B.en-fr.ids": b"1\n2\n"})
    splits = read_moses(stored(path))
    assert splits["train"].languages == ("en", "fr")
    assert lines_of(splits) == {"train": [("one", "un"), ("two", "deux")]}


def test_groups_of_files_come_one_after_the_other_with_gaps_where_a_language_is_missing(
    write, stored, lines_of, tmp_path
) -> None:
    for name, text in {
        "a.en-fr.en": "1",
        "a.en-fr.fr": "2",
        "b.en-de.en": "3",
        "b.en-de.de": "4",
        "dev.en": "5",
        "dev.fr": "6",
    }.items():
        write(f"f/{name}", text)
    splits = read_moses(stored(tmp_path / "f"))
    assert splits["train"].languages == ("en", "fr", "de")
    assert lines_of(splits) == {"train": [("1", "2", ""), ("3", "", "4")], "valid": [("5", "6")]}


def test_files_of_any_name_can_be_labelled_with_their_language(write, stored, lines_of) -> None:
    files = stored(f"en={write('english.txt', 'a')}", f"kab={write('x.gz', gzip.compress(b'b'))}")
    assert lines_of(read_moses(files)) == {"train": [("a", "b")]}


def test_misaligned_files_are_an_error_with_both_lengths(write, stored) -> None:
    files = stored(write("c.en", "1\n2\n3\n4\n"), write("c.fr", "1\n2\n"))
    lines = iter(read_moses(files)["train"])
    assert [next(lines), next(lines)] == [("1", "1"), ("2", "2")]
    with pytest.raises(DataError, match=r"c\.en: 4, .*c\.fr: 2.*line 3\b"):
        next(lines)


def test_a_file_alone_has_no_counterpart(write, stored) -> None:
    with pytest.raises(DataError, match="no counterpart"):
        read_moses(stored(write("c.en", "1")))


def test_mixed_encodings_name_the_line(write, stored) -> None:
    files = stored(write("c.en", "caf\u00e9\ncafe\n".encode()), write("c.fr", "café\n".encode() + "café\n".encode("latin-1")))
    with pytest.raises(DataError, match=r"c\.fr, line 2: .*UTF-8.*0xe9.*column 4\b"):
        list(read_moses(files)["train"])


def test_a_line_without_an_end_does_not_fill_memory(write, stored) -> None:
    files = stored(write("c.en", b"a" * 5_000_000), write("c.fr", b"b"))
    with pytest.raises(DataError, match=r"c\.en, line 1: 200,001 characters or more"):
        list(read_moses(files)["train"])


# --- Tables


def test_columns_by_header_by_name_and_by_number(write, stored, lines_of) -> None:
    files = stored(write("t.tsv", 'en\tfr\nthe "a\tle "a\nb\t\n'))
    expected = {"train": [('the "a', 'le "a'), ("b", "")]}
    assert lines_of(read_tables(files)) == expected
    assert lines_of(read_tables(files, {"x": "en", "y": "fr"})) == expected
    assert lines_of(read_tables(files, {"x": "1", "y": "2"}, header=True)) == expected
    assert lines_of(read_tables(files, {"y": "2"})) == {"train": [("fr",), ('le "a',), ("",)]}


def test_csv_has_quotes_and_line_ends_inside_them(write, stored, lines_of) -> None:
    files = stored(write("t.csv", '\ufeffen,fr\r\n"a, ""b""\r\nc",d\r\n\r\n,e\r\n'))
    assert lines_of(read_tables(files)) == {"train": [('a, "b"\nc', "d"), ("", "e")]}


@pytest.mark.parametrize(
    ("name", "text", "columns", "words"),
    [
        ("t.tsv", "a\tb\n\nc\n", {"en": "1", "fr": "2"}, r"t\.tsv, line 3: 1 column, but fr is column 2"),
        ("t.tsv", "english\tfrench\n", {"en": "englsh"}, "has no column 'englsh'; did you mean 'english'"),
        ("t.csv", 'en,fr\n"a,b\n', None, r"t\.csv, line 2: not valid CSV"),
        ("t.csv", 'en,fr\n"a" b,c\n', None, r"t\.csv, line 2: not valid CSV"),
        ("t.tsv", "", None, "is empty"),
        (
            "t.tsv",
            "source\ttarget\n",
            None,
            "'source' is no language's name .* --columns, as in en=source,fr=target or",
        ),
        ("t.tsv", "en;fr\na;b\n", None, "'en;fr' is no language's .* if ';' separates the columns, write --delimiter ';'"),
        ("t.csv", "en\tfr\na\tb\n", None, "if a tab separates the columns, write --delimiter tab"),
        ("t.tsv", "en,fr\na,b\n", {"en": "en", "fr": "fr"}, "has no column 'en'.* write --delimiter ','"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(write, stored, name: str, text: str, columns, words: str) -> None:
    with pytest.raises(DataError, match=words):
        list(read_tables(stored(write(name, text)), columns)["train"])


def test_a_row_with_more_cells_than_the_header_is_refused_whichever_columns_are_taken(write, stored, lines_of) -> None:
    for name, tab in (("t.tsv", "\t"), ("t.csv", ",")):
        files = stored(write(name, "en\tfr\na\tb\n\nc\td\te\n".replace("\t", tab)))
        for options in ({}, {"columns": {"en": "en"}}, {"columns": {"en": "1"}, "header": True}):
            lines = iter(read_tables(files, **options)["train"])
            assert next(lines)[0] == "a"
            with pytest.raises(DataError, match=rf"{name}, line 4: 3 .*\b2\b.*--delimiter"):
                next(lines)
        files = stored(write(name, "x\ty\na\tb\n\nc\td\te\n".replace("\t", tab)))
        rows = [("x", "y"), ("a", "b"), ("c", "d")]
        assert lines_of(read_tables(files, {"en": "1", "fr": "2"})) == {"train": rows}  # no header says how many there are


def test_all_bad_rows_are_counted_and_may_be_left_out(write, stored, lines_of) -> None:
    text = "en\tfr\n" + "".join(f"a{n}\n" if n % 3 == 0 else f"a{n}\tb{n}\n" for n in range(1, 31))
    files = stored(write("t.tsv", text))
    with pytest.raises(DataError, match=r"line 4: 1 column, .* in 9 rows more: lines 7, 10, 13, 16, 19, ….*--skip-bad-rows"):
        list(read_tables(files)["train"])
    heard: list[str] = []
    with heard_by(heard.append):
        assert len(lines_of(read_tables(files, skip_bad_rows=True))["train"]) == 20
    assert len(heard) == 1 and "10 rows without the right number of columns left out: lines 4, 7" in heard[0]


@pytest.mark.parametrize("first", ["en\tfr", "English\tFrench", "eng_Latn\tfra_Latn"])
def test_a_first_line_that_names_the_columns_is_no_text(write, stored, lines_of, first: str) -> None:
    pytest.importorskip("langcodes")
    files = stored(write("t.tsv", f"{first}\na\tb\n"))
    heard: list[str] = []
    with heard_by(heard.append):
        assert lines_of(read_tables(files, {"en": "1", "fr": "2"})) == {"train": [("a", "b")]}
    assert len(heard) == 1 and "--no-header" in heard[0]
    assert lines_of(read_tables(files, {"fr": "1", "en": "2"}))["train"][0] == tuple(first.split("\t"))
    assert len(lines_of(read_tables(files, {"en": "1", "fr": "2"}, header=False))["train"]) == 2


def test_columns_may_be_named_in_words(write, stored, lines_of) -> None:
    pytest.importorskip("langcodes")
    found = read_tables(stored(write("t.tsv", "Catalan\tBrazilian Portuguese\na\tb\n")))
    assert found["train"].languages == ("ca", "pt_BR") and lines_of(found) == {"train": [("a", "b")]}


def test_options_of_tables_that_cannot_be_meant(write, stored) -> None:
    files = stored(write("t.tsv", "a\n"))
    for options in ({"columns": {"en": "0"}}, {"delimiter": "ab"}, {"columns": {"en": "x"}, "header": False}):
        with pytest.raises(ConfigError):
            read_tables(files, **options)


# --- TMX


def tmx(body: str, before: str = "") -> str:
    start = f'<?xml version="1.0" encoding="UTF-8"?>\n{before}<tmx version="1.4"><header srclang="en"/><body>\n'
    return f"{start}{body}</body></tmx>\n"


def unit(**texts: str) -> str:
    inside = "".join(
        f'<tuv xml:lang="{code.replace("_", "-")}"><prop>p</prop><seg>{text}</seg></tuv>' for code, text in texts.items()
    )
    return f"<tu><note>n</note>{inside}</tu>\n"


def test_tmx_units_are_lines_whatever_the_case_of_codes(write, stored, lines_of) -> None:
    body = (
        unit(EN="a &lt;&amp;", fr="b")
        + unit(en="c")
        + unit(en='x<bpt i="1">&lt;b></bpt><hi>y</hi><ph><sub>z</sub></ph>w', FR="d")
    )
    files = stored(write("m.tmx", tmx(body, '<!DOCTYPE tmx SYSTEM "http://localhost:1/tmx14.dtd">')))
    expected = [("a <&", "b"), ("c", ""), ("xyw", "d")]
    assert lines_of(read_tmx(files)) == {"train": expected}
    assert lines_of(read_tmx(files, {"e": "EN", "f": "Fr"})) == {"train": expected}
    assert lines_of(read_tmx(files, {"fr": "fr"})) == {"train": [("b",), ("d",)]}


def test_regions_are_folded_where_asked(write, stored, lines_of) -> None:
    files = stored(write("m.tmx", tmx(unit(en_US="a", en_GB="b", pt_BR="c")).replace("UTF-8", "UTF-16").encode("utf-16")))
    assert read_tmx(files)["train"].languages == ("en_gb", "en_us", "pt_br")
    assert lines_of(read_tmx(files, {"en": "en", "pt": "pt"}, fold_regions=True)) == {"train": [("a", "c")]}
    with pytest.raises(LanguageError, match=r"'en'.*: en_gb, en_us, pt_br.*--fold-regions"):
        list(read_tmx(files, {"en": "en"})["train"])


def test_text_in_a_variant_is_not_lost_in_silence(write, stored, lines_of) -> None:
    pytest.importorskip("langcodes")
    body = unit(en="a", ca="b") + unit(en_US="c", ca_ES_valencia="d") + unit(en="e", ca="f", ca_ES_valencia="g")
    path = write("m.tmx", tmx(body))
    heard: list[str] = []
    with heard_by(heard.append):
        assert lines_of(read_tmx(stored(path), {"ca": "ca"})) == {"train": [("b",), ("f",)]}
    assert heard and "text in ca_es_valencia too, which is not taken for ca; --fold-regions" in heard[0]
    heard.clear()
    with heard_by(heard.append):
        assert len(lines_of(read_tmx(stored(path)))["train"]) == 3
    assert any("has ca_es_valencia next to ca, each by itself; --fold-regions" in line for line in heard)
    found = read_any(str(path), Wanted(new=("ca",), partners=("en",), known=("en", "fr")))
    assert list(found.source) == [("b", "a"), ("d", "c"), ("f", "e")]
    assert found.note == "ca_es_valencia is taken for ca too; en_us is taken for en too"


LAUGHS = (
    "<!DOCTYPE tmx [<!ENTITY a 'ha'>"
    + "".join(f"<!ENTITY {y} '{f'&{x};' * 10}'>" for x, y in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (tmx(unit(en="a", fr="b") * 3)[:-60], r"m\.tmx, line 5: not well-formed XML \((no element found|unclosed token)"),
        (tmx(unit(en="a") + "<tu>&oops;</tu>"), "line 4: not well-formed XML .undefined entity"),
        (tmx(unit(en="&i;"), LAUGHS), r"m\.tmx, line 2: the entity 'a'.* refused"),
        (tmx(unit(en="&x;"), '<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]>'), "the entity 'x'"),
        (tmx(unit(en="&x;"), '<!DOCTYPE tmx SYSTEM "x.dtd">'), "the entity 'x'"),
        ("<html></html>", "the root element is <html>"),
        ("", "no element found"),
        (tmx("<tu><tuv><seg>a</seg></tuv></tu>"), "a <tuv> without a language"),
        (tmx(unit(en="a" * (LONGEST_LINE + 1))), "characters or more"),
        ('<?xml version="1.0" encoding="nonsense"?><tmx/>', "encoding"),
        (f"<tmx a='{'b' * 3_000_000}'/>", "characters or more"),
        (tmx(unit(en="é")).encode("latin-1"), r"line 3: not well-formed XML \(not well-formed \(invalid token"),
        (tmx(""), "no languages"),
    ],
)
def test_what_is_wrong_with_a_tmx_is_said(write, stored, text, words: str) -> None:
    with pytest.raises(DataError, match=words):
        list(read_tmx(stored(write("m.tmx", text)))["train"])


# --- JSON Lines


def records(*values: object) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def test_json_lines_nested_and_flat(write, stored, lines_of) -> None:
    nested = records({"id": "1", "translation": {"en": "a", "pt-br": "b"}}, {"translation": {"pt-br": "c", "en": None}})
    splits = read_jsonl(stored(write("validation.jsonl", nested)))
    assert (splits["valid"].languages, lines_of(splits)) == (("en", "pt_br"), {"valid": [("a", "b"), ("", "c")]})
    flat = records({"source": "a", "target": "b", "n": 1}, {"target": "c"})
    files = stored(write("x.jsonl", flat))
    assert lines_of(read_jsonl(files, columns={"en": "source", "fr": "target"})) == {"train": [("a", "b"), ("", "c")]}
    assert lines_of(read_jsonl(stored(write("y.jsonl", nested)), {"pt": "pt-br"})) == {"train": [("b",), ("c",)]}


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (records({"translation": {"en": "a"}}) + "{oops\n", {}, r"x\.jsonl, line 2: not valid JSON"),
        ("[1,\n", {}, "jq -c"),
        ("[" * 100_000 + "\n", {}, "line 1: not valid JSON"),
        ('{"a": ' + "9" * 5000 + "}\n", {}, "line 1: not valid JSON"),
        (records([1]), {}, "a list where an object"),
        (records({"source": "a"}), {}, "'translation' is missing.*--columns"),
        (records({"translation": "a"}), {}, "'translation' is a str"),
        (records({"translation": {"en": 3}}), {}, "line 1, 'en': a int where text"),
        (records({"translation": {"en": "a"}}, {"translation": {"en": "a", "fr": "b"}}), {}, "line 2: the language 'fr'"),
        (records({"source": "a"}), {"columns": {"en": "sorce"}}, "no key 'sorce'; did you mean 'source'"),
        ('{"translation": {"en": "\\ud800"}}\n', {}, "half a surrogate pair"),
        ('{"translation": {"en": "a\\u0000"}}\n', {}, "NUL"),
        ("", {}, "no records"),
    ],
)
def test_what_is_wrong_with_json_lines_is_said(write, stored, text: str, options, words: str) -> None:
    with pytest.raises(DataError, match=words):
        list(read_jsonl(stored(write("x.jsonl", text)), **options)["train"])


# --- Parquet


@pytest.fixture
def make_parquet(tmp_path: Path):
    def make(name: str, **columns) -> Path:
        pq.write_table(pa.table(columns), tmp_path / name, row_group_size=3)
        return tmp_path / name

    return make


def test_parquet_struct_and_flat_columns_also_in_archives(make_parquet, make_zip, stored, lines_of) -> None:
    rows = [{"en": f"a{index}", "fr": f"b{index}"} for index in range(10)] + [None, {"en": None, "fr": "c"}]
    path = make_parquet("train-00000-of-00001.parquet", id=list(range(12)), translation=rows)
    expected = [(f"a{index}", f"b{index}") for index in range(10)] + [("", ""), ("", "c")]
    assert lines_of(read_parquet(stored(path))) == {"train": expected}
    assert lines_of(read_parquet(stored(path), {"x": "fr"})) == {"train": [(second,) for _, second in expected]}
    assert lines_of(read_parquet(stored(make_zip("a.zip", {"data/test-0.parquet": path.read_bytes()})))) == {"test": expected}
    flat = make_parquet("flat.parquet", source=["a", None], target=["b", "c"])
    assert lines_of(read_parquet(stored(flat), columns={"en": "source", "fr": "target"})) == {"train": [("a", "b"), ("", "c")]}


def test_what_is_wrong_with_parquet_is_said(make_parquet, write, stored) -> None:
    flat = make_parquet("flat.parquet", source=["a"], number=[1])
    with pytest.raises(DataError, match=r"no column 'translation'; there: source, number.*--columns"):
        read_parquet(stored(flat))
    with pytest.raises(DataError, match="no column 'sauce'; did you mean 'source'"):
        read_parquet(stored(flat), columns={"en": "sauce"})
    with pytest.raises(DataError, match="'number' holds int64"):
        read_parquet(stored(flat), columns={"en": "number"})
    with pytest.raises(DataError, match="expected a struct"):
        read_parquet(stored(flat), field="source")
    cut = write("cut.parquet", flat.read_bytes()[:-10])
    with pytest.raises(DataError, match=r"cut\.parquet: not readable as Parquet"):
        read_parquet(stored(cut), columns={"en": "source"})


# --- gettext

PO = r"""# a comment
msgid ""
msgstr ""
"Language: %s\n"
"Content-Type: text/plain; charset=%s\n"

#: file.c:3
msgctxt "menu"
msgid "Open \"file\"\n"
msgstr "Ouvrir "
"« fichier »\n"

#, c-format, fuzzy
msgid "Close"
msgstr "Fermé"

msgid "%%d file"
msgid_plural "%%d files"
msgstr[0] "%%d fichier"
msgstr[1] "%%d fichiers"

msgid "Untranslated"
msgstr ""

#~ msgid "Old"
#~ msgstr "Vieux"
msgid "Last"
msgstr "Dernier"
"""
JA = """msgid ""
msgstr "Language: ja\\n"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "ファイル%d個"

msgid "Last"
msgstr "最後"
"""


def test_catalogues_are_joined_by_message(write, stored, lines_of, tmp_path: Path) -> None:
    write("po/fr.po", PO % ("fr", "UTF-8"))
    write("po/ja.po", JA)
    splits = read_gettext(stored(tmp_path / "po"))
    assert splits["train"].languages == ("en", "fr", "ja")
    assert lines_of(splits)["train"] == [
        ('Open "file"\n', "Ouvrir « fichier »\n", ""),
        ("%d file", "%d fichier", ""),
        ("%d files", "%d fichiers", "ファイル%d個"),
        ("Last", "Dernier", "最後"),
    ]


def test_other_charsets_and_languages_by_folder_and_label(write, stored, lines_of, tmp_path: Path) -> None:
    latin = (PO % ("xx", "ISO-8859-1")).encode("latin-1")
    write("l/fr/LC_MESSAGES/app.po", latin)
    assert read_gettext(stored(tmp_path / "l"))["train"].languages == ("en", "fr")
    labelled = read_gettext(stored(f"kab={write('x.po', latin)}"), {"kab": "kab", "en": "en"})
    assert lines_of(labelled)["train"][0] == ("Ouvrir « fichier »\n", 'Open "file"\n')
    with pytest.raises(LanguageError, match="messages are in 'en'"):
        read_gettext(stored(f"kab={tmp_path}/x.po"), {"kab": "kab"})


def test_mo_files_say_what_their_po_files_say(write, stored, lines_of, tmp_path: Path) -> None:
    """Against the standard library's own reader too."""
    import gettext

    entries = {
        "": "Language: fr\nContent-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=n>1;\n",
        'menu\x04Open "file"\n': "Ouvrir « fichier »\n",
        "%d file\0%d files": "%d fichier\0%d fichiers",
        "Last": "Dernier",
    }
    path = write("mo/fr.mo", make_mo(entries))
    po = write("po/fr.po", PO % ("fr", "UTF-8"))
    from_mo, from_po = (lines_of(read_gettext(stored(file)))["train"] for file in (path, po))
    assert sorted(from_mo) == sorted(from_po)
    with path.open("rb") as handle:
        peer = gettext.GNUTranslations(handle)
    assert peer.pgettext("menu", 'Open "file"\n') == dict(from_mo)['Open "file"\n']
    assert peer.ngettext("%d file", "%d files", 2) == dict(from_mo)["%d files"]


def make_mo(entries: dict[str, str], order: str = "<") -> bytes:
    pairs = [(key.encode(), value.encode()) for key, value in sorted(entries.items())]
    tables, texts = [[], []], b""
    start = 28 + 16 * len(pairs)
    for table, side in zip(tables, (0, 1), strict=True):
        for pair in pairs:
            table += [len(pair[side]), start + len(texts)]
            texts += pair[side] + b"\0"
    header = struct.pack(f"{order}7I", 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, 0)
    return header + struct.pack(f"{order}{4 * len(pairs)}I", *tables[0], *tables[1]) + texts


def test_a_catalogue_of_msgfmt_where_there_is_one(write, stored, lines_of, tmp_path: Path) -> None:
    po = write("po/fr.po", PO % ("fr", "UTF-8"))
    try:
        subprocess.run(["msgfmt", str(po), "-o", str(tmp_path / "fr.mo")], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("gettext's tools are not installed")
    assert sorted(lines_of(read_gettext(stored(tmp_path / "fr.mo")))["train"]) == sorted(
        lines_of(read_gettext(stored(po)))["train"]
    )


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("fr.po", 'msgid "a"\nmsgstr "b\n', r"fr\.po, line 2: a string without its closing"),
        ("fr.po", 'msgid "a"\n', "ends after a msgid without its msgstr"),
        ("fr.po", 'msgid "a"\nmsgstr "b"\nmsgstr "c"\n', "line 3: a second msgstr"),
        ("fr.po", "hello\n", "line 1: 'hello' is not PO"),
        ("fr.po", b'msgid "a"\nmsgstr "\xe9"\n', r"line 2: not valid utf-8 \(byte 0xe9"),
        ("fr.po", 'msgid ""\nmsgstr "Content-Type: text/plain; charset=rot13\\n"\n', "the charset 'rot13'"),
        ("messages.po", 'msgid "a"\nmsgstr "b"\n', "does not say which language"),
        ("fr.mo", b"nothing", "is no MO file"),
        ("fr.mo", make_mo({"": "", "a": "b"})[:-6], r"message \d would end at byte"),
        ("fr.mo", make_mo({"a": "b"})[:10], "inside its header"),
        ("fr.mo", make_mo({"a": "b"})[:30], "cut at byte 30"),
    ],
)
def test_what_is_wrong_with_a_catalogue_is_said(write, stored, name: str, content, words: str) -> None:
    with pytest.raises(DataError, match=words):
        list(read_gettext(stored(write(name, content)))["train"])


# --- FLORES, UNPC, ParaCrawl, by name


def test_flores_codes_long_short_and_chosen(write, stored, lines_of, tmp_path: Path) -> None:
    for code in ("eng_Latn", "fra_Latn", "zho_Hans", "zho_Hant"):
        for split in ("dev", "devtest"):
            write(f"f/{split}/{code}.{split}", f"{code} {split}\n")
    write("f/metadata_dev.tsv", "x")
    from graftmt.prepare.readers.flores import is_flores_file

    files = stored(tmp_path / "f", wanted=is_flores_file)
    assert lines_of(read_flores(files, parse_languages("en=eng_Latn,fra_Latn"))) == {
        "valid": [("eng_Latn dev", "fra_Latn dev")],
        "test": [("eng_Latn devtest", "fra_Latn devtest")],
    }
    assert read_flores(files)["test"].languages == ("eng_Latn", "fra_Latn", "zho_Hans", "zho_Hant")
    assert set(read_flores(files, short_codes=True)["test"].languages) == {"en", "fr", "zho_Hans", "zho_Hant"}
    assert lines_of(read_flores(files, parse_languages("fr,zh=zho_Hans"), short_codes=True))["valid"] == [
        ("fra_Latn dev", "zho_Hans dev")
    ]
    with pytest.raises(DataError, match="'zh' may be zho_Hans or zho_Hant"):
        read_flores(files, parse_languages("zh"), short_codes=True)


def test_unpc_pairs_become_one_training_text(write, stored, lines_of, tmp_path: Path) -> None:
    for name, text in {
        "ar-en/UNv1.0.ar-en.ar": "أ",
        "ar-en/UNv1.0.ar-en.en": "a",
        "en-ru/UNv1.0.en-ru.en": "b",
        "en-ru/UNv1.0.en-ru.ru": "б",
        "ar-en/UNv1.0.ar-en.ids": "1",
        **{f"testsets/devset/UNv1.0.devset.{code}": code for code in ("ar", "en", "es", "fr", "ru", "zh")},
    }.items():
        write(f"u/{name}", text + "\n")
    files = stored(tmp_path / "u", wanted=is_unpc_file)
    splits = read_unpc(files)
    assert splits["train"].languages == ("ar", "en", "ru")
    assert lines_of(splits) == {"train": [("أ", "a", ""), ("", "b", "б")], "valid": [("ar", "en", "ru")]}
    assert lines_of(read_unpc(files, parse_languages("en,ar"))) == {"train": [("a", "أ")], "valid": [("en", "ar")]}
    (tmp_path / "u/ar-en/UNv1.0.ar-en.ar").unlink()
    with pytest.raises(DataError, match=r"without its ar side, UNv1\.0\.ar-en\.ar"):
        read_unpc(stored(tmp_path / "u", wanted=is_unpc_file))


def test_paracrawl_files_of_every_kind(write, make_zip, stored, lines_of, tmp_path: Path) -> None:
    from graftmt.prepare.readers.paracrawl import is_pair_file

    write("en-fr.txt.gz", gzip.compress(b'one "x\tun\ntwo\tdeux\n'))
    write("v9/en-de/en-de.tmx.gz", gzip.compress(tmx(unit(en="one", de="eins")).encode()))
    make_zip("en-it.txt.zip", {"ParaCrawl.en-it.en": b"one\n", "ParaCrawl.en-it.it": b"uno\n", "README": b""})
    write("es-eu.bicleaner07.txt", "uno\tbat\n")
    files = stored(tmp_path, wanted=is_pair_file)
    assert lines_of(read_paracrawl(files)) == {
        "en-de": [("one", "eins")],
        "en-fr": [('one "x', "un"), ("two", "deux")],
        "en-it": [("one", "uno")],
        "es-eu": [("uno", "bat")],
    }
    assert set(read_paracrawl(files, parse_languages("en,fr,de"))) == {"en-de", "en-fr"}
    with pytest.raises(LanguageError, match=r"no pair there has both"):
        read_paracrawl(files, parse_languages("de,fr"))
    write("en-fr.tmx", tmx(unit(en="a", fr="b")))
    with pytest.raises(DataError, match="en-fr is there more than once"):
        read_paracrawl(stored(tmp_path, wanted=is_pair_file))


def test_what_was_downloaded_by_name_is_read_without_a_network(write, make_zip, lines_of, tmp_path: Path) -> None:
    (tmp_path / "Books-en-fr-latest").mkdir()
    make_zip("Books-en-fr-latest/Books_latest_moses_en-fr.txt.zip", {"Books.en-fr.en": b"a\n", "Books.en-fr.fr": b"b\n"})
    assert lines_of(read_named(Named("opus", "Books", ("en", "fr")), tmp_path)) == {"train": [("a", "b")]}
    for name in ("train-parts/X-y-1-deu-eng", "train"):  # the merged file repeats the parts
        write(f"X-y-1-deu-eng-deu-eng/{name}.deu", "a\n")
        write(f"X-y-1-deu-eng-deu-eng/{name}.eng", "b\n")
    languages = parse_languages("de=deu,en=eng")
    named = Named("mtdata", "X-y-1-deu-eng", ("deu", "eng"))
    assert lines_of(read_named(named, tmp_path, languages)) == {"train": [("a", "b")]}


class OpusGet:
    """Stands in for opustools': what it is asked for is what the files say."""

    def __init__(self, *, directory: str, source: str, target: str, release: str, download_dir: str, **_: object) -> None:
        self.texts = {
            Path(download_dir) / f"{directory}.{source}-{target}.{code}": f"{directory} {release} {code}\n"
            for code in (source, target)
        }

    def get_files(self) -> None:
        for path, text in self.texts.items():
            path.write_text(text, encoding="utf-8")


@pytest.fixture
def opus(monkeypatch: pytest.MonkeyPatch) -> type[OpusGet]:
    monkeypatch.setitem(__import__("sys").modules, "opustools", SimpleNamespace(OpusGet=OpusGet))
    return OpusGet


def test_a_download_is_never_taken_for_another_one(opus: type[OpusGet], write, lines_of, tmp_path: Path) -> None:
    write("Books.en-fr.en", "stray\n")
    write("Books.en-fr.fr", "stray\n")
    wanted = [
        Named("opus", "Books", ("en", "fr")),
        Named("opus", "GlobalVoices", ("en", "fr")),
        Named("opus", "Books", ("en", "fr"), "v1"),
        Named("opus", "Books", ("de", "en")),
    ]
    for _ in range(2):  # the second time from what is there
        for named in wanted:
            texts = tuple(f"{named.name} {named.release or 'latest'} {code}" for code in named.pair)
            assert lines_of(read_named(named, tmp_path)) == {"train": [texts]}


def test_a_download_that_fails_leaves_nothing_to_be_read_later(
    opus: type[OpusGet], lines_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = Named("opus", "Books", ("en", "fr"))

    def cut_off(self: OpusGet) -> None:
        next(iter(self.texts)).write_text("Boo", encoding="utf-8")
        raise ConnectionResetError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(opus, "get_files", cut_off)
        with pytest.raises(GraftError, match=r"'Books' from opus: gone\b"):
            read_named(named, tmp_path)
        patch.setattr(opus, "get_files", lambda self: None)
        with pytest.raises(DataError, match="no text of 'Books' in en-fr"):
            read_named(named, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert lines_of(read_named(named, tmp_path)) == {"train": [("Books latest en", "Books latest fr")]}


def test_a_download_beyond_the_limits_is_kept_for_higher_ones(
    opus: type[OpusGet], make_zip, lines_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, folder = Named("opus", "Books", ("en", "fr")), tmp_path / "downloads" / "Books-en-fr-latest"
    texts = {"Books.en-fr.en": b"one line\n" * 9, "Books.en-fr.fr": b"une ligne\n" * 9}
    downloads: list[Path] = []

    def get_files(self: OpusGet) -> None:
        downloads.append(next(iter(self.texts)).parent)
        make_zip(downloads[-1] / "Books_latest_moses_en-fr.txt.zip", texts)

    monkeypatch.setattr(opus, "get_files", get_files)
    for _ in range(2):
        with pytest.raises(DataError, match=rf"bomb.* {folder}"):
            read_named(named, folder.parent, limits=Limits(size=50))
    assert [path.name for path in folder.iterdir()] == ["Books_latest_moses_en-fr.txt.zip"]
    assert lines_of(read_named(named, folder.parent)) == {"train": [("one line", "une ligne")] * 9}
    assert len(downloads) == 1


def test_a_damaged_download_says_how_to_get_another_one(
    opus: type[OpusGet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "Books_latest_moses_en-fr.txt.zip"
    monkeypatch.setattr(opus, "get_files", lambda self: next(iter(self.texts)).with_name(page).write_text("<html>\n"))
    for _ in range(2):
        with pytest.raises(DataError, match=rf"cannot be read.* {tmp_path / 'Books-en-fr-latest'}\b"):
            read_named(Named("opus", "Books", ("en", "fr")), tmp_path)


def test_a_download_without_text_goes(opus: type[OpusGet], lines_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = Named("opus", "Books", ("en", "fr"))
    with monkeypatch.context() as patch:
        patch.setattr(opus, "get_files", lambda self: next(iter(self.texts)).with_name("LICENSE").write_text("free\n"))
        for _ in range(2):
            with pytest.raises(DataError, match="no text of 'Books' in en-fr"):
                read_named(named, tmp_path)
            assert list(tmp_path.iterdir()) == []
    assert lines_of(read_named(named, tmp_path)) == {"train": [("Books latest en", "Books latest fr")]}


def test_a_folder_of_something_else_is_not_downloaded_into(opus: type[OpusGet], write, tmp_path: Path) -> None:
    write("Books-en-fr-latest/notes.md", "mine\n")
    with pytest.raises(DataError, match="without the text of 'Books'"):
        read_named(Named("opus", "Books", ("en", "fr")), tmp_path)
    assert (tmp_path / "Books-en-fr-latest" / "notes.md").read_text() == "mine\n"


def test_downloads_call_the_packages_and_say_how_to_install_them(
    write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opustools", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for provider in ("opus", "mtdata"):
        with pytest.raises(DataError, match=r"pip install 'graftmt\[names\]'"):
            read_named(Named(provider, "Books", ("en", "fr")), tmp_path / provider)
    with pytest.raises(ConfigError):
        Named("web", "Books", ("en", "fr"))
    with pytest.raises(ConfigError, match="plain names"):
        Named("mtdata", "--evil", ("en", "fr"))
    with pytest.raises(ConfigError, match="only OPUS has releases"):
        Named("mtdata", "X-y-1-deu-eng", ("deu", "eng"), "v1")


# --- Languages


@pytest.mark.parametrize("text", ["", "en,,fr", "en,en", "../x=fr", "a.b", "txt", "en="])
def test_languages_that_cannot_be_meant(text: str) -> None:
    with pytest.raises(GraftError):
        parse_languages(text)
