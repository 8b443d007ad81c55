"""Curves and heat-maps as PNG files, drawn by matplotlib without a display. Layer 1; needs the `plots` extra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

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
    figure = _figure(width=7.0, height=4.5)
    axes = figure.add_subplot()
    for name, points in series.items():
        # A lone point is invisible as a line.
        marker = "o" if len(points) == 1 else None
        axes.plot([x for x, _ in points], [y for _, y in points], label=name, marker=marker)
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    axes.grid(alpha=0.3)
    axes.legend()
    _save(figure, path)


def plot_matrix(path: Path, values: Mapping[tuple[str, str], float], *, title: str) -> None:
    """Draws a heat-map of (source, target) → value: sources are rows, and directions without a value stay blank."""
    if not values:
        raise DataError(f"{title}: there are no directions to draw; nothing was written to {path}.")
    sources = sorted({source for source, _ in values})
    targets = sorted({target for _, target in values})
    grid = np.full((len(sources), len(targets)), np.nan)
    for (source, target), value in values.items():
        grid[sources.index(source), targets.index(target)] = value
    figure = _figure(width=2.5 + 0.6 * len(targets), height=1.5 + 0.5 * len(sources))
    axes = figure.add_subplot()
    image = axes.imshow(grid, cmap="viridis", aspect="auto")
    figure.colorbar(image)
    axes.set_xticks(range(len(targets)), labels=targets)
    axes.set_yticks(range(len(sources)), labels=sources)
    axes.set(title=title, xlabel="target", ylabel="source")
    middle = (np.nanmin(grid) + np.nanmax(grid)) / 2
    for row, column in np.argwhere(~np.isnan(grid)):
        value = grid[row, column]
        # viridis is dark where values are low
        colour = "white" if value <= middle else "black"
        axes.text(column, row, f"{value:.1f}", ha="center", va="center", color=colour)
    _save(figure, path)


def _figure(*, width: float, height: float) -> Figure:
    """A figure of our own on the Agg canvas: pyplot would keep global state and might look for a display."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise GraftError(
            "drawing plots needs matplotlib, which is not installed; "
            "install it with `pip install 'graftmt[plots]'`, or go on without plots."
        ) from error
    figure = Figure(figsize=(width, height), dpi=RESOLUTION, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Figure, path: Path) -> None:
    with atomic_file(path) as temporary:
        # The temporary name does not end in .png, so the format is said.
        figure.savefig(temporary, format="png")
