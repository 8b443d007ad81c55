"""What a pack gains in its trained direction against what it keeps of the others, a point for each model. Layer 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from graftmt.evaluation.plots import new_figure, save_figure
from graftmt.experiments.reporting.figures import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

KINDS = ("pack, with English alone", "pack, with other languages too", "re-trained or bilingual", "pack, beyond the paper")
STYLES = {kind: style for kind, *style in zip(KINDS, (COLOURS[0], COLOURS[1], "#8A8A8A", COLOURS[2]), "o^sD", strict=True)}
GAP, LEAST_GAP = 0.5, 5.0
"""Of the height, and in points: where as much lies between two models that follow each other, it is left out of the plot."""


@dataclass(frozen=True, kw_only=True)
class TradeOff:
    """One panel: trained against zero-shot score of each model, by its number."""

    title: str
    x_label: str
    y_label: str
    points: Mapping[str, tuple[float, float]]
    kinds: Mapping[str, str]
    """Number → what it is trained on, one of `KINDS`."""


def draw_trade_offs(path: Path, panels: Sequence[Sequence[TradeOff]], title: str) -> None:
    """Rows of panels, as ours above and the paper's below."""
    width = max(map(len, panels))
    canvas = new_figure(width=6.2 * width, height=0.6 + 4.4 * len(panels))
    grid = canvas.add_gridspec(len(panels), width)
    drawn = []
    for row, line in enumerate(panels):
        for column, panel in enumerate(line):
            drawn += _draw_panel(canvas, grid[row, column], panel)
    named = {text: handle for axes, _ in drawn for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    canvas.legend(
        [named[kind] for kind in KINDS if kind in named],
        [kind for kind in KINDS if kind in named],
        loc="outside lower center",
        ncols=len(named),
        fontsize="small",
    )
    canvas.suptitle(title)
    canvas.draw_without_rendering()  # places are in pixels, which only the layout decides
    for axes, points in drawn:
        _label_points(axes, points)
    save_figure(canvas, path)


def _draw_panel(canvas: Figure, place: SubplotSpec, panel: TradeOff) -> list[tuple[Axes, dict[str, tuple[float, float]]]]:
    """One plot, or where models have collapsed two, one above the other, without the gap between them."""
    parts = split_by_gap(panel.points)
    heights = [max(1, len(part), len(panel.points) / 4) for part in parts]
    rows = place.subgridspec(len(parts), 1, height_ratios=heights, hspace=0.06)
    drawn: list[tuple[Axes, dict[str, tuple[float, float]]]] = []
    for number, part in enumerate(parts):
        axes = canvas.add_subplot(rows[number, 0], sharex=drawn[0][0] if drawn else None)
        for kind, (colour, marker) in STYLES.items():
            chosen = [xy for name, xy in part.items() if panel.kinds[name] == kind]
            if chosen:
                xs, ys = [x for x, _ in chosen], [y for _, y in chosen]
                axes.scatter(xs, ys, s=30, zorder=3, color=colour, marker=marker, label=kind)
        axes.margins(0.12, 0.12 if len(part) > 2 else 0.6)
        axes.grid(alpha=0.3)
        drawn.append((axes, part))
    (top, _), (bottom, _) = drawn[0], drawn[-1]
    top.set_title(panel.title)
    bottom.set_xlabel(panel.x_label)
    drawn[heights.index(max(heights))][0].set_ylabel(panel.y_label)
    if len(drawn) > 1:
        top.tick_params(bottom=False, labelbottom=False)
        top.spines["bottom"].set_linestyle((0, (4, 4)))
        bottom.spines["top"].set_linestyle((0, (4, 4)))
    return drawn


def split_by_gap(points: Mapping[str, tuple[float, float]]) -> list[dict[str, tuple[float, float]]]:
    """The points from above; in two where much lies between."""
    names = sorted(points, key=lambda name: -points[name][1])
    heights = [points[name][1] for name in names]
    gaps = [upper - lower for upper, lower in pairwise(heights)]
    if len(names) < 4 or max(gaps) < max(LEAST_GAP, GAP * (heights[0] - heights[-1])):
        return [dict(points)]
    after = gaps.index(max(gaps)) + 1
    return [{name: points[name] for name in part} for part in (names[:after], names[after:])]


def _label_points(axes: Axes, points: Mapping[str, tuple[float, float]]) -> None:
    """Each label next to its point, where it covers neither another label nor a point; farther off with a line, if need be."""
    scale = axes.figure.dpi / 72
    height = 9.5 * scale
    places = {name: tuple(axes.transData.transform(xy)) for name, xy in points.items()}
    taken = [(x - 3 * scale, y - 3 * scale, x + 3 * scale, y + 3 * scale) for x, y in places.values()]
    frame = axes.get_window_extent()
    for name, (x, y) in sorted(places.items(), key=lambda item: (-item[1][1], item[1][0])):
        best: tuple[float, float] | None = None
        width = (13.0 if len(name) < 3 else 18.0) * scale
        for distance in (9, 15, 22, 30, 40, 52):
            for right, up in ((1, 0), (0, 1), (-1, 0), (0, -1), (0.7, 0.7), (-0.7, 0.7), (0.7, -0.7), (-0.7, -0.7)):
                left, bottom = x + distance * right * scale - width / 2, y + distance * up * scale - height / 2
                box = (left, bottom, left + width, bottom + height)
                inside = frame.x0 < box[0] and box[2] < frame.x1 and frame.y0 < box[1] and box[3] < frame.y1
                if inside and not any(_overlap(box, other) for other in taken):
                    best = (distance * right, distance * up)
                    taken.append(box)
                    break
            if best is not None:
                break
        offset = best or (9.0, 0.0)
        far = max(map(abs, offset)) > 12
        line = {"arrowstyle": "-", "color": "#8A8A8A", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2} if far else None
        axes.annotate(
            name, points[name], xytext=offset, textcoords="offset points", fontsize=8, ha="center", va="center", arrowprops=line
        )


def _overlap(first: tuple[float, float, float, float], second: tuple[float, float, float, float]) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]
