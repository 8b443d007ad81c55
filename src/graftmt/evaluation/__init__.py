"""Strings in, scores with signatures out; averages, significance, tables and plots of them. Layer 1, without torch."""

from graftmt.evaluation.matrix import Average, averages, groups
from graftmt.evaluation.metrics import DirectionScores, Score, score_bleu, score_chrf, score_direction
from graftmt.evaluation.plots import plot_curves, plot_matrix
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
    "Average",
    "Column",
    "Difference",
    "DirectionScores",
    "Resampling",
    "Score",
    "Table",
    "averages",
    "compare_averages",
    "compare_resampled",
    "compare_systems",
    "groups",
    "plot_curves",
    "plot_matrix",
    "resample_chrf",
    "score_bleu",
    "score_chrf",
    "score_direction",
    "score_table",
]
