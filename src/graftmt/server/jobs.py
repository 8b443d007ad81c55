"""Files translated as jobs (being written)."""

from __future__ import annotations


class Jobs:
    """Placeholder until jobs land."""
