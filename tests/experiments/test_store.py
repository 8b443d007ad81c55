"""Results and notes that are damaged: named, with what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.errors import DataError
from graftmt.experiments.addresses import Addresses
from graftmt.experiments.jobs import base_job
from graftmt.experiments.profiles import load_profile
from graftmt.experiments.reporting.selection import select_results
from graftmt.experiments.store import Store
from graftmt.experiments.workshop import made_facts


def result() -> dict[str, Any]:
    entry = {"source": "en", "target": "fr", "bleu": 1.5, "chrf": 20, "off_target": None, "lines": 3, "tokenize": "13a"}
    scores = {
        "averages": {"→EN": {"bleu": 1.5, "chrf": 20.0, "directions": 1}},
        "directions": {"en-fr": entry},
        "signatures": {"bleu": {"13a": "tok:13a"}, "chrf": "x"},
    }
    return {
        "job": "base-4",
        "kind": "model",
        "profile": "docs",
        "fingerprint": "0dddbf411efd9ae5",
        "scores": {"test": scores},
        "seconds": {"training": 1.5},
    }


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no scores": lambda one: one.pop("scores"),
    "scores are a list": lambda one: one.update(scores=[]),
    "a set is a number": lambda one: one["scores"].update(test=7),
    "directions are a text": lambda one: one["scores"]["test"].update(directions="en-fr"),
    "a direction is none": lambda one: one["scores"]["test"]["directions"].update({"en-fr": None}),
    "bleu is a text": lambda one: one["scores"]["test"]["directions"]["en-fr"].update(bleu="1.5"),
    "lines are half": lambda one: one["scores"]["test"]["directions"]["en-fr"].update(lines=[3]),
    "no signature": lambda one: one["scores"]["test"]["signatures"].update(bleu={}),
    "an average is a list": lambda one: one["scores"]["test"]["averages"].update({"→EN": []}),
    "seconds are a text": lambda one: one.update(seconds={"training": "long"}),
    "it failed with a number": lambda one: one.update(failed=7),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_damaged_result_is_named(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    store, job, document = Store(Addresses(load_profile("docs"), tmp_path)), base_job(4), result()
    store.path(job).parent.mkdir()
    store.path(job).write_text(json.dumps(document), encoding="utf-8")
    assert store.read(job) == document
    change(document)
    store.path(job).write_text(json.dumps({**document, "changed": True}), encoding="utf-8")
    with pytest.raises(DataError, match=rf"{store.path(job).name} is damaged"):
        store.read(job)


@pytest.mark.parametrize("figure", ["bleu", "chrf", "lines"])
def test_a_report_names_a_result_whose_figures_are_none(tmp_path: Path, figure: str) -> None:
    document = result()
    document["scores"]["test"]["directions"]["en-fr"][figure] = "much"
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "base-4.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(DataError, match=r"base-4\.json"):
        _ = select_results(tmp_path).results


@pytest.mark.parametrize(
    "document", [{}, {"curve": 7}, {"curve": [7]}, {"curve": [], "steps": "many"}, {"curve": [], "seconds": {"training": []}}]
)
def test_a_damaged_note_of_a_model_is_named(tmp_path: Path, document: dict[str, Any]) -> None:
    (tmp_path / "made.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(DataError, match=r"made\.json is damaged"):
        made_facts(tmp_path / "made.json")
