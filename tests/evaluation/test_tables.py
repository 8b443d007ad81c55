"""A table shows the same cells in both outputs, whatever characters they hold."""

from __future__ import annotations

import io
import re

from rich.console import Console

from graftmt.evaluation.scores import Score, Scores, joined
from graftmt.evaluation.tables import Column, Table, score_table

AWKWARD = Table(
    title="Odd | cells",
    columns=(Column(name="name"), Column(name="in|out", alignment="center"), Column(name="value", alignment="right")),
    rows=(("a|b", "<unk>", "1.0"), ("back\\|slash", "[bold]x[/bold]", "two\nlines"), ("*", "tab\there", "")),
    notes=("made | by hand",),
)


def scored(source: str, target: str, bleu: float, tokenizer: str = "13a", **more: float | None) -> Scores:
    values = {"bleu": bleu, "chrf": bleu + 20, "lines": 7, **more}
    signatures = {"bleu": f"tok:{tokenizer}", "chrf": "nc:6"}
    return Scores(
        Score(metric=metric, value=value, signature=signatures.get(metric, ""), source=source, target=target)
        for metric, value in values.items()
    )


def terminal(table: Table) -> str:
    console = Console(width=120, file=io.StringIO(), record=True)
    console.print(table.rich())
    return console.export_text()


def test_markdown_escapes_pipes_so_that_every_row_has_every_column() -> None:
    title, blank, *lines = AWKWARD.markdown().splitlines()
    assert title == "### Odd | cells"
    assert blank == ""
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + len(AWKWARD.rows)
    for line in table:
        # An escaped character is a backslash and the next one; what is left of "|" are borders.
        borders = re.sub(r"\\.", "", line).count("|")
        assert borders == len(AWKWARD.columns) + 1
    assert r"a\|b" in table[2]
    assert r"\<unk>" in table[2]
    assert lines[-1] == "- made | by hand", "pipes mean nothing outside the table, and signatures are full of them"


def test_markdown_states_the_alignment() -> None:
    assert "| :--- | :---: | ---: |" in AWKWARD.markdown()


def test_rich_shows_cells_as_they_are() -> None:
    text = terminal(AWKWARD)
    for cell in ("Odd | cells", "a|b", "<unk>", "[bold]x[/bold]", "made | by hand"):
        assert cell in text


def test_a_note_longer_than_the_table_is_shown_in_one_piece() -> None:
    note = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
    assert note in terminal(Table(title="Narrow", columns=(Column(name="a"),), rows=(("1",),), notes=(note,)))


def test_no_title_means_no_heading() -> None:
    table = Table(title="", columns=(Column(name="a"),), rows=())
    assert table.markdown() == "| a |\n| :--- |\n"
    assert terminal(table).strip().startswith("┏")


def test_the_score_table_holds_directions_averages_and_signatures() -> None:
    table = score_table(joined([scored("fr", "en", 30), scored("de", "en", 20), scored("en", "de", 10)]))
    assert table.rows == (
        ("fr-en", "7", "30.0", "50.0"),
        ("de-en", "7", "20.0", "40.0"),
        ("en-de", "7", "10.0", "30.0"),
        ("→EN, mean of 2 directions", "", "25.0", "45.0"),
        ("all, mean of 3 directions", "", "20.0", "40.0"),
    )
    assert table.notes == ("BLEU tok:13a", "chrF nc:6")
    for rendered in (table.markdown(), terminal(table)):
        assert "BLEU tok:13a" in rendered


def test_signatures_that_differ_say_whose_they_are() -> None:
    table = score_table(joined([scored("en", "fr", 30), scored("en", "zh", 20, tokenizer="zh")]))
    assert table.notes == ("BLEU tok:13a (en-fr)", "BLEU tok:zh (en-zh)", "chrF nc:6")


def test_off_target_rates_are_a_column_and_their_means_are_of_what_is_known() -> None:
    rates = {("fr", "en"): 0.02, ("de", "en"): 1.0, ("en", "xx"): None}
    table = score_table(joined(scored(*pair, 30, off_target=rate) for pair, rate in rates.items()))
    assert table.columns[-1].name == "off-target"
    assert [row[-1] for row in table.rows] == ["2.0 %", "100.0 %", "?", "51.0 %", "51.0 %"]


def test_new_languages_are_named_under_the_table() -> None:
    table = score_table(joined([scored("fr", "en", 30), scored("el", "fr", 20), scored("uk", "fr", 10)]), new=("el", "uk"))
    assert [row[0] for row in table.rows[3:]] == ["X→/EN, mean of 2 directions", "all, mean of 3 directions"]
    assert table.notes[-1] == "X: el, uk"


def test_the_mean_of_one_direction_does_not_repeat_its_row() -> None:
    table = score_table(scored("el", "en", 30, off_target=0.0), new=("el",))
    assert [row[0] for row in table.rows] == ["el-en"]
    assert not any(note.startswith("X:") for note in table.notes), "there is no X to explain"
