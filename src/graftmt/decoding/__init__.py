"""Greedy and beam search. Layer 3."""

from graftmt.decoding.batches import length_batches, search_all
from graftmt.decoding.search import (
    Hypothesis,
    SearchOptions,
    batch_tokens_for,
    beam_search,
    checked_options,
    greedy_search,
    search_of,
)

__all__ = [
    "Hypothesis",
    "SearchOptions",
    "batch_tokens_for",
    "beam_search",
    "checked_options",
    "greedy_search",
    "length_batches",
    "search_all",
    "search_of",
]
