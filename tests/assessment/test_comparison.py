"""Two reports are compared line by line as sacreBLEU would, or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from graftmt.assessment import comparison
from graftmt.assessment.comparison import Report, compare_reports
from graftmt.errors import DataError, GraftError
from graftmt.evaluation import Resampling

FEW = Resampling(resamples=100)


@pytest.fixture
def reports(assessed, tmp_path: Path, toy_corpus: Path) -> tuple[Path, Path]:
    """The second one's translations are worse: words are missing from half of them.

    The first line is in English alone, and xc lacks one more.
    """
    corpus = Path(shutil.copytree(toy_corpus, tmp_path / "corpus"))
    for language in ("xa", "xb", "xc"):
        lines = (corpus / f"test.{language}.txt").read_text(encoding="utf-8").splitlines()
        missing = (0, 4) if language == "xc" else (0,)
        kept = ["" if number in missing else line for number, line in enumerate(lines)]
        (corpus / f"test.{language}.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        assessed(folder, corpus=corpus, lines=None)
    for path in second.glob("test.*.txt"):
        texts = path.read_text(encoding="utf-8").splitlines()
        worse = [" ".join(text.split()[number % 2 :]) for number, text in enumerate(texts)]
        path.write_text("\n".join(worse) + "\n", encoding="utf-8")
    shutil.rmtree(second / "scores")  # which know the translations that were made
    assessed(second, corpus=corpus, lines=None)
    return first, second


def open_both(folders: tuple[Path, Path]) -> tuple[Report, Report]:
    return Report.open(folders[0]), Report.open(folders[1] / "report.json")


def test_p_values_of_directions_are_those_of_sacrebleu(reports: tuple[Path, Path]) -> None:
    found = compare_reports(*open_both(reports), resampling=FEW)
    assert len(found.directions) == 12
    for name, differences in found.directions.items():
        source, target = name.split("-")
        texts = {
            code: (reports[0] / "lines" / f"test.{code}.txt").read_text(encoding="utf-8").splitlines()
            for code in (source, target)
        }
        references = [text for text, other in zip(texts[target], texts[source], strict=True) if text and other]
        assert len(references) == found.lines[name] == (18 if "xc" in name else 19)
        systems = [(str(folder), (folder / f"test.{name}.txt").read_text(encoding="utf-8").splitlines()) for folder in reports]
        test = PairedTest(systems, {"BLEU": BLEU(), "chrF2": CHRF()}, [references], test_type="bs", n_samples=100)
        _, expected = test()
        for metric, peer in (("bleu", "BLEU"), ("chrf", "chrF2")):
            first, second = expected[peer]
            assert differences[metric].sacrebleu_p == second.p_value
            assert (differences[metric].first, differences[metric].second) == pytest.approx((first.score, second.score))


def test_the_scores_are_those_of_the_reports_and_so_are_the_averages(reports: tuple[Path, Path]) -> None:
    documents = [json.loads((folder / "report.json").read_text(encoding="utf-8")) for folder in reports]
    found = compare_reports(*open_both(reports), resampling=FEW).to_dict()
    for part in ("directions", "averages"):
        assert found[part].keys() == documents[0][part].keys()
        for name, entry in found[part].items():
            for metric in ("bleu", "chrf"):
                sides = (documents[0][part][name][metric], documents[1][part][name][metric])
                assert (entry[metric]["first"], entry[metric]["second"]) == pytest.approx(sides)
                assert entry[metric]["difference"] == pytest.approx(sides[1] - sides[0])
    average = found["averages"]["all"]["chrf"]
    assert average["significant"] and average["p"] == pytest.approx(2 / 101)
    assert average["interval"][0] < average["difference"] < average["interval"][1] < 0


def test_many_processes_say_the_same(reports: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    alone = compare_reports(*open_both(reports), resampling=FEW)
    monkeypatch.setattr(comparison, "FEWEST_DIRECTIONS", 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert compare_reports(*open_both(reports), resampling=FEW) == alone


def test_a_report_does_not_differ_from_itself(reports: tuple[Path, Path]) -> None:
    found = compare_reports(*open_both((reports[0], reports[0])), resampling=FEW)
    for differences in (*found.directions.values(), *found.averages.values()):
        assert all(one.p == 1 and one.difference == 0 for one in differences.values())


def test_only_directions_of_both_are_compared_and_the_others_named(
    assessed, reports: tuple[Path, Path], tmp_path: Path
) -> None:
    assessed(tmp_path / "few", "en-xa,xa-en", corpus=tmp_path / "corpus", lines=None)
    found = compare_reports(Report.open(tmp_path / "few"), Report.open(reports[1]), resampling=FEW)
    assert list(found.directions) == ["en-xa", "xa-en"]
    assert [len(names) for names in found.left_out.values()] == [0, 10]
    assert any(note.startswith(f"only in {reports[1]}: en-xb") for note in found.table().notes)


def test_reports_of_other_lines_are_refused(assessed, reports: tuple[Path, Path], tmp_path: Path) -> None:
    assessed(tmp_path / "fewer", "en-xa,xb-xa", corpus=tmp_path / "corpus", lines=15)
    with pytest.raises(DataError, match="in en-xa: 19 lines against 14"):
        compare_reports(Report.open(reports[0]), Report.open(tmp_path / "fewer"), resampling=FEW)
    for language, words in (("xa", "the references differ"), ("en", "the source lines differ")):
        path = tmp_path / "corpus" / f"test.{language}.txt"
        before = path.read_text(encoding="utf-8")
        path.write_text("".join(sorted(before.splitlines(keepends=True))), encoding="utf-8")
        assessed(tmp_path / language, "en-xa", corpus=tmp_path / "corpus", lines=None)
        path.write_text(before, encoding="utf-8")
        with pytest.raises(DataError, match=f"in en-xa: {words}"):
            compare_reports(Report.open(reports[0]), Report.open(tmp_path / language), resampling=FEW)


def test_different_kinds_of_bleu_are_refused_unless_one_is_chosen(assessed, reports: tuple[Path, Path], tmp_path: Path) -> None:
    assessed(reports[1], corpus=tmp_path / "corpus", lines=None, tokenize="char")
    both = open_both(reports)
    with pytest.raises(DataError, match=r"en-xa: .*tok:13a.*tok:char.*--tokenize"):
        compare_reports(*both, resampling=FEW)
    chosen = compare_reports(*both, resampling=FEW, tokenize="char")
    assert "tok:char" in chosen.signatures["bleu"][0]
    expected = both[1].directions["en-xa"]["bleu"]
    assert chosen.directions["en-xa"]["bleu"].second == pytest.approx(expected)


def test_what_is_no_report_is_said(reports: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(GraftError, match="there is no file"):
        Report.open(tmp_path)
    (tmp_path / "report.json").write_text('{"directions": {"en-xa": {"bleu": 1}}}', encoding="utf-8")
    with pytest.raises(GraftError, match="no report that can be compared"):
        Report.open(tmp_path)
    (reports[1] / "test.en-xa.txt").write_text("one line\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"\b1 lines.*\b19\b"):
        compare_reports(*open_both(reports), resampling=FEW)


def test_no_direction_in_common_is_said(assessed, tmp_path: Path) -> None:
    assessed(tmp_path / "one", "en-xa")
    assessed(tmp_path / "other", "xa-en")
    with pytest.raises(DataError, match=r"no direction.*en-xa.*xa-en"):
        compare_reports(Report.open(tmp_path / "one"), Report.open(tmp_path / "other"), resampling=FEW)


def test_the_table_marks_what_is_significant(reports: tuple[Path, Path]) -> None:
    table = compare_reports(*open_both(reports), resampling=FEW).table()
    assert table.title == "Paired bootstrap on 18 to 19 lines"
    stars = np.array([[cell.endswith("*") for cell in row] for row in table.rows])
    assert stars[:, [4, 8]].any() and not stars[:, [0, 1, 2, 3, 5, 6, 7]].any()
    assert any("Holm" in note for note in table.notes)
    assert table.rows[-1][0] == "all (12)" and table.rows[-1][-1].endswith("*")


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.pop("split"),
        lambda one: one.update(split="../x"),
        lambda one: one.update(pivot=7),
        lambda one: one.update(new="el"),
        lambda one: one.update(tokenize=[]),
        lambda one: one.update(directions=[]),
        lambda one: one["directions"].update({"en-xa": 7}),
        lambda one: one["directions"]["en-xa"].update(lines="6"),
        lambda one: one["directions"]["en-xa"].pop("bleu_signature"),
        lambda one: one["directions"]["en-xa"].update(source_text=None),
    ],
)
def test_a_damaged_report_is_named(assessed, tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    assessed(tmp_path / "one", "en-xa")
    path = tmp_path / "one" / "report.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(GraftError, match=r"one is no report that can be compared"):
        Report.open(path.parent)
