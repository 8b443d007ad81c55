"""A report holds every figure, and heat-maps where matplotlib is installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graftmt.assessment import score_report
from graftmt.assessment.off_target import Judge
from graftmt.assessment.score_report import document, off_target_notes, table, write_report


def test_off_target_rates_stand_in_the_report_with_their_floors(assessed, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("py3langid")
    found = assessed(None, "en-xa,xa-en", off_target=True, lines=None)
    written = document(found)
    # Toy English is no English to the detector: what the references are judged to be, their translations are too.
    floor = written["off_target"]["en"]["floor"]
    assert 0 < floor <= 1
    assert written["directions"]["xa-en"]["off_target"]["rate"] == pytest.approx(floor, abs=0.15)
    assert sum(written["directions"]["xa-en"]["off_target"]["into"].values()) > 0
    assert written["averages"]["to_pivot"]["off_target"] == written["directions"]["xa-en"]["off_target"]["rate"]
    assert written["directions"]["en-xa"]["off_target"]["rate"] is None
    assert written["averages"]["from_pivot"]["off_target"] is None
    assert written["off_target"]["xa"]["how"].startswith("cannot be told")
    assert table(found).rows[0][-1] == "?"
    notes = off_target_notes(found)
    assert f"en {100 * floor:.1f} %" in notes[0]
    assert notes[1].startswith("off-target rate of xa cannot be told")


def test_without_a_judge_there_is_no_word_of_it(assessed) -> None:
    found = assessed(None, "en-xa")
    assert "off_target" not in json.dumps(document(found))
    assert table(found).columns[-1].name == "chrF"
    assert off_target_notes(found) == []
    assert isinstance(assessed(None, "en-xa", off_target=True).judge, Judge)


def test_heat_maps_are_drawn_where_matplotlib_is_installed(assessed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    found = assessed(None, "en-xa,xa-en,xa-xb")
    written = write_report(tmp_path / "with", found, document(found))
    assert [path.name for path in written] == ["report.json", "report.md", "bleu.png", "chrf.png"]
    assert all(path.is_file() for path in written)
    monkeypatch.setattr(score_report.importlib.util, "find_spec", lambda name: None)
    write_report(tmp_path / "without", found, document(found))
    assert sorted(path.name for path in (tmp_path / "without").iterdir()) == ["report.json", "report.md"]
