"""Strings in, scores with signatures out; averages, tables and plots of them. Layer 1, without torch."""

from graftmt.evaluation.matrix import Average, averages
from graftmt.evaluation.metrics import DirectionScores, Score, score_bleu, score_chrf, score_direction
from graftmt.evaluation.plots import plot_curves, plot_matrix
from graftmt.evaluation.tables import Column, Table, score_table

__all__ = [
    "Average",
    "Column",
    "DirectionScores",
    "Score",
    "Table",
    "averages",
    "plot_curves",
    "plot_matrix",
    "score_bleu",
    "score_chrf",
    "score_direction",
    "score_table",
]
