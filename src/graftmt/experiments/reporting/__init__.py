"""Reports of experiments: the paper's tables and figures with our results in them, from the files that jobs leave. Layer 7."""

from graftmt.experiments.reporting.writing import write_report

__all__ = ["write_report"]
