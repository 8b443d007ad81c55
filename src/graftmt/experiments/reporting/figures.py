"""The paper's figures from our results as PNG. Layer 7.

Drawn like the other plots of the package; colours are those of Okabe and Ito, which colour-blind readers can tell apart, and
every curve has a marker of its own besides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from graftmt.evaluation import METRIC_NAMES, Metric
from graftmt.evaluation.plots import new_figure, save_figure
from graftmt.experiments.definitions import Curve, Figure, Panel
from graftmt.experiments.reporting.cells import Results, split_of
from graftmt.experiments.reporting.result_files import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C564B")
MARKERS = "osD^vPX*"

Points = dict[float, list[float]]
"""x → the score of each seed."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A figure's file, None where nothing of it has been run, and what a reader has to know of it."""

    number: int
    title: str
    path: Path | None
    notes: tuple[str, ...]


def draw_figure(figure: Figure, results: Results, path: Path, metric: Metric) -> Drawn:
    """One panel next to the other; curves without results are named in the notes."""
    notes: list[str] = []
    missing: dict[tuple[str, ...], list[str]] = {}
    found = []
    for panel in figure.panels:
        # While a model trains chrF is watched, BLEU perhaps not.
        watched = any(result.bleu_curve for result in results.all)
        shown: Metric = metric if panel.by == "lines" or watched else "chrf"
        direction = _direction(panel, results)
        if direction != panel.direction and direction is not None:
            notes.append(f"{direction} in place of {panel.direction}, which was not validated")
        curves = {curve: points for curve in panel.curves if (points := _points(panel, curve, direction, results, shown))}
        absent = tuple(f"({curve.model}) {curve.label}" for curve in panel.curves if curve not in curves and not curve.added)
        missing.setdefault(absent, []).append(direction or panel.direction)
        found.append((panel, direction or panel.direction, shown, curves))
    # By lines, the whole corpus alone is no curve.
    if any(len(points) > (panel.by == "lines") for panel, *_, curves in found for points in curves.values()):
        if not figure.ours and any(panel.metric != shown for panel, _, shown, curves in found if curves):
            notes.append("the paper plots BLEU; ours is chrF")
        drawn = dict.fromkeys(f"({curve.model}) {curve.label}" for *_, curves in found for curve in curves if curve.added)
        notes += [f"not in the paper's figure: {', '.join(drawn)}"] if drawn else []
        notes += [f"not run for {' and '.join(where)}: {', '.join(absent)}" for absent, where in missing.items() if absent]
        if any(panel.split == "valid" and panel.by == "lines" and not results.has_split("valid") for panel, *_ in found):
            notes.append("scores are those of the test set; the paper's are of the validation set")
        _draw_panels(figure, found, results, path)
        return Drawn(number=figure.number, title=figure.title, path=path, notes=tuple(notes))
    return Drawn(number=figure.number, title=figure.title, path=None, notes=())


def _draw_panels(
    figure: Figure, panels: Sequence[tuple[Panel, str, Metric, Mapping[Curve, Points]]], results: Results, path: Path
) -> None:
    canvas = new_figure(width=6.2 * len(panels), height=5.4)
    styles = {key: n for n, key in enumerate(dict.fromkeys((c.model, c.plus) for p in figure.panels for c in p.curves))}
    for number, (panel, direction, metric, curves) in enumerate(panels, 1):
        axes = canvas.add_subplot(1, len(panels), number)
        for curve, points in curves.items():
            style = styles[curve.model, curve.plus]
            _line(axes, points, curve.label if figure.ours else f"({curve.model}) {curve.label}", style)
        validated = panel.split == "valid" and (panel.by == "updates" or results.has_split("valid"))
        split = "validation" if validated else "test"
        label = "updates" if panel.by == "updates" else "line pairs of training"
        axes.set(title=direction.replace("-", " → "), xlabel=label, ylabel=f"{split} {METRIC_NAMES[metric]}")
        if panel.by == "lines":
            _size_axis(axes, sorted({x for points in curves.values() for x in points}), _whole(panel, results))
        axes.grid(alpha=0.3)
        if curves:
            axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)  # clear of the curves
        else:
            axes.set(xticks=[], yticks=[])
            axes.text(0.5, 0.5, "not run", transform=axes.transAxes, ha="center", va="center", color="grey")
    canvas.suptitle(figure.title if figure.ours else f"Figure {figure.number}: {figure.title}")
    save_figure(canvas, path)


def _line(axes: Axes, points: Points, label: str, style: int) -> None:
    places = sorted(points)
    means = [fmean(points[x]) for x in places]
    colour, marker = COLOURS[style % len(COLOURS)], MARKERS[style % len(MARKERS)]
    dashes = "-" if style < len(COLOURS) else "--"
    axes.plot(
        places, means, dashes, color=colour, marker=marker, markersize=4.5, markevery=max(1, len(places) // 12), label=label
    )
    if any(len(points[x]) > 1 for x in places):
        axes.fill_between(places, [min(points[x]) for x in places], [max(points[x]) for x in places], color=colour, alpha=0.15)


def _size_axis(axes: Axes, places: Sequence[float], whole: float | None) -> None:
    axes.set_xscale("log")
    labels = ["all" if x == whole else f"{x / 1000:g}k" if x >= 1000 else f"{x:g}" for x in places]
    axes.set_xticks(list(places), labels=labels)
    axes.set_xticks([], minor=True)


def _whole(panel: Panel, results: Results) -> float | None:
    """Where the whole corpus stands: after the largest part of it."""
    models = {curve.model for curve in panel.curves}
    sizes = [r.lines for r in results.all if r.kind == "size" and r.model in models and r.lines] or list(panel.sizes)
    return 3 * max(sizes) if sizes else None


def _curve_results(panel: Panel, curve: Curve, results: Results) -> list[Result]:
    """Those of one base only: the main one of those that the curve's model has."""
    kinds = ("model", "size") if panel.by == "lines" else ("model",)
    found = [
        r
        for r in results.all
        if r.kind in kinds
        and r.model == curve.model
        and not r.failed
        and r.plus == curve.plus
        and set(r.languages) - {"en"} == set(curve.languages)
    ]
    bases = [(r.base, r.base_fingerprint) for r in found]
    main = [b for b in bases if b[1] is not None and results.main_bases.get(b[0]) == b[1]] or bases
    # A pack on the English-centric base has the number of the usual one; that one has more results.
    chosen = Counter(main).most_common(1)[0][0] if main else None
    return [r for r in found if (r.base, r.base_fingerprint) == chosen]


def _direction(panel: Panel, results: Results) -> str | None:
    """The panel's; or, where it was not validated, the one most curves have with the same new language and not English."""
    if panel.by == "lines":
        return panel.direction
    keys = Counter(
        key
        for curve in panel.curves
        for result in _curve_results(panel, curve, results)
        for key in {name for point in result.curve for name in point if "-" in name}
    )
    source, _, target = panel.direction.partition("-")
    if panel.direction in keys or "en" in (source, target):
        return panel.direction
    near = Counter({k: n for k, n in keys.items() if k.startswith(f"{source}-") and not k.endswith("-en")})
    near = near or Counter({k: n for k, n in keys.items() if k.endswith(f"-{target}") and not k.startswith("en-")})
    return min(near, key=lambda key: (-near[key], key)) if near else None


def _points(panel: Panel, curve: Curve, direction: str | None, results: Results, metric: Metric) -> Points:
    points: Points = {}
    for result in _curve_results(panel, curve, results):
        if panel.by == "updates":
            for point in result.curve if metric == "chrf" else result.bleu_curve:
                if direction is not None and direction in point and "step" in point:
                    points.setdefault(point["step"], []).append(point[direction])
            continue
        split = panel.split if results.has_split(panel.split) else "test"
        scored = split_of(result.by_set, split).get(direction or "")
        place = result.lines or _whole(panel, results)
        if scored is not None and place is not None:
            points.setdefault(place, []).append(scored.mean(metric))
    return points
