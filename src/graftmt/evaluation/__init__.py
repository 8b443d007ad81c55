"""Strings in, scores with signatures out; averages, significance, tables and plots of them. Layer 1, without torch."""

from graftmt.evaluation.matrix import grouped, groups
from graftmt.evaluation.plots import plot_curves, plot_matrix
from graftmt.evaluation.scores import (
    METRIC_NAMES,
    METRICS,
    Metric,
    Score,
    Scores,
    joined,
    score_bleu,
    score_chrf,
    score_direction,
)
from graftmt.evaluation.significance import (
    Difference,
    Resampling,
    compare_averages,
    compare_resampled,
    compare_systems,
    resample_chrf,
)
from graftmt.evaluation.tables import Column, Table, score_table

__all__ = [
    "METRICS",
    "METRIC_NAMES",
    "Column",
    "Difference",
    "Metric",
    "Resampling",
    "Score",
    "Scores",
    "Table",
    "compare_averages",
    "compare_resampled",
    "compare_systems",
    "grouped",
    "groups",
    "joined",
    "plot_curves",
    "plot_matrix",
    "resample_chrf",
    "score_bleu",
    "score_chrf",
    "score_direction",
    "score_table",
]
