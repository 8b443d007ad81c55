"""What a pack gains in its trained direction against what it keeps of the others. Layer 7.

A point for each model. At most five of a panel are named, in words; the tables have all.
"""

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
WORDS = {
    **dict.fromkeys(("106", "31", "54"), "graftmt's default"),
    **dict.fromkeys(("5", "43"), "re-training"),
    **dict.fromkeys(("7", "46", "24", "51"), "embeddings"),
    **dict.fromkeys(("12", "47"), "encoder adapters"),
    **dict.fromkeys(("32", "52"), "adapters in all layers"),
    "15": "whole encoder",
    **dict.fromkeys(("14", "48"), "first encoder layer"),
    "118": "default, with all languages",
    **dict.fromkeys(("62", "56"), "whole decoder"),
}
"""Model → what trains in it; the first ones matter most. `graftmt add` takes the first three by default."""
MOST_NAMED = 5
NAME_SIZE, LEAST_DISTANCE = 9, 7
"""Of a name and from its point to it, in points."""
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


def named_points(points: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    """Model → its words, of the few that are named."""
    return dict([(number, words) for number, words in WORDS.items() if number in points][:MOST_NAMED])


def draw_trade_offs(path: Path, panels: Sequence[Sequence[TradeOff]], title: str) -> None:
    """Rows of panels, as ours above and the paper's below; the legend is next to them."""
    width = max(map(len, panels))
    canvas = new_figure(width=5.4 * width + 2.4, height=0.6 + 4.4 * len(panels))
    grid = canvas.add_gridspec(len(panels), width)
    drawn = []
    for row, line in enumerate(panels):
        for column, panel in enumerate(line):
            drawn += _draw_panel(canvas, grid[row, column], panel)
    handles = {text: handle for axes, *_ in drawn for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    shown = [kind for kind in KINDS if kind in handles]
    canvas.legend([handles[kind] for kind in shown], shown, loc="outside right upper", fontsize="small")
    canvas.suptitle(title)
    canvas.draw_without_rendering()  # places are in pixels, which only the layout decides
    for axes, points, named in drawn:
        _label_points(axes, points, named)
    save_figure(canvas, path)


Drawn = tuple["Axes", dict[str, tuple[float, float]], dict[str, str]]
"""Axes, the points in them, and the names of the panel."""


def _draw_panel(canvas: Figure, place: SubplotSpec, panel: TradeOff) -> list[Drawn]:
    """One plot, or where models have collapsed two, one above the other, without the gap between them."""
    parts = split_by_gap(panel.points)
    heights = [max(1, len(part), len(panel.points) / 4) for part in parts]
    rows = place.subgridspec(len(parts), 1, height_ratios=heights, hspace=0.06)
    named = named_points(panel.points)
    drawn: list[Drawn] = []
    for number, part in enumerate(parts):
        axes = canvas.add_subplot(rows[number, 0], sharex=drawn[0][0] if drawn else None)
        for kind, (colour, marker) in STYLES.items():
            chosen = {name: xy for name, xy in part.items() if panel.kinds[name] == kind}
            if chosen:
                xs, ys = zip(*chosen.values(), strict=True)
                sizes = [60 if name in named else 22 for name in chosen]
                axes.scatter(xs, ys, s=sizes, zorder=3, color=colour, marker=marker, label=kind)
        axes.margins(0.12, 0.12 if len(part) > 2 else 0.6)
        axes.grid(alpha=0.3)
        drawn.append((axes, part, named))
    top, bottom = drawn[0][0], drawn[-1][0]
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


def _label_points(axes: Axes, points: Mapping[str, tuple[float, float]], named: Mapping[str, str]) -> None:
    """Each name next to its point, where it covers neither another name nor a point; farther off with a line, if need be."""
    scale = axes.figure.dpi / 72
    places = {name: tuple(axes.transData.transform(xy)) for name, xy in points.items()}
    taken = [(x - 3 * scale, y - 3 * scale, x + 3 * scale, y + 3 * scale) for x, y in places.values()]
    frame = axes.get_window_extent()
    for name, (x, y) in sorted(places.items(), key=lambda item: (-item[1][1], item[1][0])):
        if name not in named:
            continue
        width, height = _size(axes, named[name])
        best: tuple[float, float] | None = None
        for distance in (LEAST_DISTANCE, 12, 20, 30, 42, 56):
            for right, up in ((1, 0), (0, 1), (-1, 0), (0, -1), (0.7, 0.7), (-0.7, 0.7), (0.7, -0.7), (-0.7, -0.7)):
                # The distance is from the point to the nearest side of the name.
                from_x = right * (distance * scale + width / 2)
                from_y = up * (distance * scale + height / 2)
                left, bottom = x + from_x - width / 2, y + from_y - height / 2
                box = (left, bottom, left + width, bottom + height)
                inside = frame.x0 < box[0] and box[2] < frame.x1 and frame.y0 < box[1] and box[3] < frame.y1
                if inside and not any(_overlap(box, other) for other in taken):
                    best = (from_x / scale, from_y / scale)
                    taken.append(box)
                    break
            if best is not None:
                break
        offset = best or (9.0 + width / scale / 2, 0.0)
        line = (
            {"arrowstyle": "-", "color": "#8A8A8A", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2}
            if distance > LEAST_DISTANCE
            else None
        )
        axes.annotate(
            named[name],
            points[name],
            xytext=offset,
            textcoords="offset points",
            fontsize=NAME_SIZE,
            ha="center",
            va="center",
            arrowprops=line,
        )


def _size(axes: Axes, words: str) -> tuple[float, float]:
    """Width and height in pixels."""
    text = axes.text(0, 0, words, fontsize=NAME_SIZE)
    box = text.get_window_extent()
    text.remove()
    return box.width, box.height


def _overlap(first: tuple[float, float, float, float], second: tuple[float, float, float, float]) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]
