"""Plots are whole PNG files that can be opened, or an error and no file at all."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from graftmt.errors import DataError, GraftError
from graftmt.evaluation.plots import matrix_grid, plot_curves, plot_matrix

PNG_HEADER = b"\x89PNG\r\n\x1a\n"
CURVES = {
    "embed": [(0.0, 1.0), (100.0, 12.5)],
    "embed + adapters": [(0.0, 1.5), (100.0, 14.0)],
    "baseline": [(50.0, 9.0)],
}
MATRIX = {("el", "en"): 30.0, ("en", "el"): 20.0, ("el", "uk"): 10.0}


def draw_curves(path: Path) -> None:
    plot_curves(path, CURVES, title="BLEU by step", x_label="step", y_label="BLEU")


def assert_is_image(path: Path) -> None:
    image_module = pytest.importorskip("PIL.Image")
    assert path.read_bytes().startswith(PNG_HEADER)
    with image_module.open(path) as image:
        image.load()  # reads every pixel, so a file cut short would not pass
        assert image.format == "PNG"
        assert min(image.size) > 100


@pytest.fixture
def _matplotlib() -> None:
    pytest.importorskip("matplotlib")


@pytest.mark.usefixtures("_matplotlib")
def test_curves_are_an_image_and_the_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "plots" / "curves.png"
    draw_curves(path)
    assert_is_image(path)
    assert [file.name for file in path.parent.iterdir()] == ["curves.png"]


@pytest.mark.usefixtures("_matplotlib")
@pytest.mark.parametrize("values", [MATRIX, {("el", "en"): 30.0}])
def test_a_matrix_is_an_image_even_with_directions_missing(tmp_path: Path, values: dict[tuple[str, str], float]) -> None:
    path = tmp_path / "matrix.png"
    plot_matrix(path, values, title="BLEU")
    assert_is_image(path)


@pytest.mark.usefixtures("_matplotlib")
def test_drawing_leaves_pyplot_alone(tmp_path: Path) -> None:
    before = "matplotlib.pyplot" in sys.modules
    draw_curves(tmp_path / "curves.png")
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_nothing_to_draw_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no points"):
        plot_curves(tmp_path / "curves.png", {"embed": []}, title="BLEU", x_label="step", y_label="BLEU")
    with pytest.raises(DataError, match="no directions"):
        plot_matrix(tmp_path / "matrix.png", {}, title="BLEU")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # None in sys.modules makes an import fail as if the package were not there.
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(GraftError, match=r"graftmt\[plots\]"):
        draw_curves(tmp_path / "curves.png")
    assert not list(tmp_path.iterdir())


def test_margins_are_the_means_of_rows_and_columns_and_the_order_is_kept() -> None:
    sources, targets, grid = matrix_grid(MATRIX, order=("uk", "en"), margins=True)
    assert (sources, targets) == (["en", "el", "mean"], ["uk", "en", "el", "mean"])
    blank = float("nan")
    expected = [[blank, blank, 20, 20], [10, 30, blank, 20], [10, 30, 20, 20]]
    assert grid == pytest.approx(np.array(expected), nan_ok=True)


@pytest.mark.slow
@pytest.mark.usefixtures("_matplotlib")
def test_two_dozen_languages_have_room_for_every_number(tmp_path: Path) -> None:
    image_module = pytest.importorskip("PIL.Image")
    names = [f"x{number}" for number in range(22)]
    path = tmp_path / "matrix.png"
    plot_matrix(path, {(a, b): 12.3 for a in names for b in names if a != b}, title="chrF", margins=True, scale=(0, 100))
    with image_module.open(path) as image:
        width, height = image.size
    assert width / 23 > 60 and height / 23 > 50  # pixels of a cell; a number of ten points takes 45 by 20
