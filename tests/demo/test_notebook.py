"""The demo's story as a notebook: it runs, and says what it should. It is stored without outputs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import graftmt

NOTEBOOK = Path(__file__).parents[2] / "docs" / "demo.ipynb"


def test_it_is_stored_without_outputs() -> None:
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)


@pytest.mark.slow
def test_every_cell_runs_and_the_base_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("STEPS", "4")
    monkeypatch.setenv("GRAFTMT_CACHE", str(tmp_path / "cache"))
    paths = (str(Path(graftmt.__file__).parents[1]), os.environ.get("PYTHONPATH"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = "".join(
        output.get("text", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "stream"
    )
    assert "The base knows" in printed and "el → uk: πριν από 3 ημέρες → " in printed
    assert "unchanged: True" in printed
