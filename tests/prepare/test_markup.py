"""HTML goes, and what only looks like it stays; what mends is mended whole, and nothing takes long."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from graftmt.cli.app import app
from graftmt.prepare.markup import has_markup, without_markup

CATALAN = "Obre el fitxer i tanca la finestra que seguirà oberta després"


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("<p>Obre el fitxer<br/>ara</p>", "Obre el fitxer ara"),
        ('Premeu <b class="x">OK</b> o <A HREF=https://a.org/b>aquí</A>', "Premeu OK o aquí"),
        ("Obre&nbsp;el&amp;nbsp;fitxer", "Obre el fitxer"),
        ("AT&amp;T &lt;p&gt;Hola&lt;/p&gt; l&#39;ull &#xe0;", "AT&T Hola l'ull à"),
        ("<!-- nota -->Hola<img src='x.png' alt=\"\">", "Hola"),
        ("日本<br>語のテキスト", "日本 語のテキスト"),
    ],
)
def test_tags_and_entities_go(marked: str, plain: str) -> None:
    assert " ".join(without_markup(marked).split()) == plain
    assert has_markup(marked) and not has_markup(plain)


@pytest.mark.parametrize(
    "text", ["a < b", "<username>", '<xliff:g id="1">', "R&D", "&no such;", "x<y>z", "<3", "{b} %s <", "P&L;"]
)
def test_what_only_looks_like_html_stays(text: str) -> None:
    assert without_markup(text) == text


@given(st.text(st.sampled_from("<>/&;ampbr #39x=\"' é"), max_size=60))
def test_what_is_plain_once_stays_plain(text: str) -> None:
    plain = without_markup(html.escape(html.escape(text)))
    assert len(plain) <= len(html.escape(html.escape(text)))
    once = without_markup(without_markup(plain))
    assert without_markup(once) == once


def test_text_made_to_be_slow_is_not() -> None:
    for text in (
        "<a " + "x " * 20_000,
        "<" * 50_000,
        "&" * 50_000,
        "<a " + "=" * 50_000,
        "<!--" * 10_000,
        "<p " + "a='" * 9_000,
    ):
        without_markup(text)


def messy_table(path: Path) -> None:
    """A TSV as people have it: lines encoded twice, with HTML, without the placeholder or the address of the other side."""
    rows = []
    for number in range(400):
        english = f"Open the file number {number} and close the window that will stay open afterwards"
        catalan = f"{CATALAN}, número {number}"
        if number % 20 == 1:
            catalan = catalan.encode().decode("latin-1")  # à becomes Ã and a no-break space
        elif number % 20 == 2:
            catalan = catalan.replace("à", "è").replace("é", "è").encode().decode("cp1252").encode().decode("cp1252")  # twice
        elif number % 20 == 3:
            catalan = f"<p>{catalan}<br/></p>"
        elif number % 20 == 4:
            english, catalan = f"{english}: %s", f"{catalan}:"
        elif number % 20 == 5:
            english, catalan = f"{english} at https://example.org/en", f"{catalan} a https://exemple.cat/ca"
        elif number % 20 == 6:
            english, catalan = f"{english}: {{count, plural, one {{# line}} other {{# lines}}}}", f"{catalan}: {{n}}"
        elif number % 20 == 7:
            english, catalan = f"{english} %1$s", f"{catalan} %s &amp;nbsp;"
        rows.append(f"{english}\t{catalan}")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def test_a_messy_table_is_mended_by_tsv_and_clean(tmp_path: Path) -> None:
    messy_table(tmp_path / "messy.tsv")
    run = CliRunner()
    read = ["prepare", "tsv", str(tmp_path / "messy.tsv"), "-o", str(tmp_path / "corpus"), "--columns", "en=1,ca=2"]
    assert run.invoke(app, read, catch_exceptions=False).exit_code == 0
    clean = ["prepare", "clean", str(tmp_path / "corpus"), "-o", str(tmp_path / "clean"), "--no-language-id", "--json"]
    result = run.invoke(app, clean, catch_exceptions=False)
    assert result.exit_code == 0
    report = json.loads(result.stdout)["splits"]["train"]
    assert report["repaired"]["encoding"] == {"ca": 40}
    assert report["repaired"]["markup"]["ca"] == 40
    assert report["dropped"]["placeholders"] == {"ca": 60}
    lines = (tmp_path / "clean" / "train.ca.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 340
    assert not [line for line in lines if "Ã" in line or "<" in line or "&" in line]
    assert sum(line.startswith(CATALAN) for line in lines) == 320  # all but those whose à was made è
