"""Curves and heat-maps as PNG files, drawn by matplotlib without a display. Layer 1; needs the `plots` extra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graftmt.errors import DataError, GraftError
from graftmt.files import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESOLUTION = 150  # dots per inch


def plot_curves(
    path: Path,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str,
    x_label: str,
    y_label: str,
) -> None:
    """Draws one line per series of (x, y) points, with a legend."""
    if not any(series.values()):
        raise DataError(f"{title}: there are no points to draw in {len(series)} series; nothing was written to {path}.")
    figure = new_figure(width=7.0, height=4.5)
    axes = figure.add_subplot()
    for name, points in series.items():
        # A lone point is invisible as a line.
        marker = "o" if len(points) == 1 else None
        axes.plot([x for x, _ in points], [y for _, y in points], label=name, marker=marker)
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(figure, path)


MEAN = "mean"


def plot_matrix(
    path: Path,
    values: Mapping[tuple[str, str], float],
    *,
    title: str,
    order: Sequence[str] = (),
    margins: bool = False,
    scale: tuple[float, float] | None = None,
) -> None:
    """Draws a heat-map of (source, target) → value: sources are rows, and directions without a value stay blank.

    `order`: which languages come first, and in what order; the others follow by name. `margins`: the mean of each row and of
    each column next to them, and the mean of all in the corner. `scale`: the values of the first colour and of the last; the
    default is the smallest and the largest there are.
    """
    if not values:
        raise DataError(f"{title}: there are no directions to draw; nothing was written to {path}.")
    sources, targets, grid = matrix_grid(values, order=order, margins=margins)
    figure = new_figure(width=2.5 + 0.6 * len(targets), height=1.5 + 0.5 * len(sources))
    axes = figure.add_subplot()
    lowest, highest = scale or (float(np.nanmin(grid)), float(np.nanmax(grid)))
    image = axes.imshow(grid, cmap="viridis", aspect="auto", vmin=lowest, vmax=highest)
    figure.colorbar(image)
    axes.set_xticks(range(len(targets)), labels=targets, rotation=45 if max(map(len, targets)) > 5 else 0)
    axes.set_yticks(range(len(sources)), labels=sources)
    axes.set(title=title, xlabel="target", ylabel="source")
    if margins:  # a gap between the directions and their means
        axes.axvline(len(targets) - 1.5, color="white", linewidth=4)
        axes.axhline(len(sources) - 1.5, color="white", linewidth=4)
    middle = (lowest + highest) / 2
    for row, column in np.argwhere(~np.isnan(grid)):
        value = grid[row, column]
        # viridis is dark where values are low
        colour = "white" if value <= middle else "black"
        axes.text(column, row, f"{value:.1f}", ha="center", va="center", color=colour)
    save_figure(figure, path)


def matrix_grid(
    values: Mapping[tuple[str, str], float], *, order: Sequence[str] = (), margins: bool = False
) -> tuple[list[str], list[str], NDArray[np.float64]]:
    """The names of the rows, those of the columns, and the values between them, NaN where there is none."""

    def place(language: str) -> tuple[int, str]:
        return (order.index(language) if language in order else len(order), language)

    sources = sorted({source for source, _ in values}, key=place)
    targets = sorted({target for _, target in values}, key=place)
    grid = np.full((len(sources) + margins, len(targets) + margins), np.nan)
    for (source, target), value in values.items():
        grid[sources.index(source), targets.index(target)] = value
    if not margins:
        return sources, targets, grid
    grid[:-1, -1] = np.nanmean(grid[:-1, :-1], axis=1)
    grid[-1, :-1] = np.nanmean(grid[:-1, :-1], axis=0)
    grid[-1, -1] = np.nanmean(grid[:-1, :-1])
    return [*sources, MEAN], [*targets, MEAN], grid


def new_figure(*, width: float, height: float) -> Figure:
    """A figure of our own on the Agg canvas: pyplot would keep global state and might look for a display."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise GraftError(
            "drawing plots needs matplotlib, which is not installed; "
            "install it with `pip install 'graftmt[plots]'`, or leave the plots out."
        ) from error
    figure = Figure(figsize=(width, height), dpi=RESOLUTION, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    with atomic_file(path) as temporary:
        # The temporary name does not end in .png, so the format is stated.
        figure.savefig(temporary, format="png")
