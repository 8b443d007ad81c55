"""How well a vocabulary fits a text: what tells a new language that no detector knows, from its pack alone. Layer 6.

A vocabulary was learned from text of its language, and its pieces are in order of use, so that Zipf's law says about how likely
each is. The vocabulary under which a text is likelier is the one it was written for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graftmt.text import Text
from graftmt.text.protocol import BYTES

HEAD = 10.0
"""Added to a piece's rank: the first pieces are less apart than Zipf's law has it."""
UNKNOWN_COST = 14.0
"""Nats for a piece outside the vocabulary, or a single byte."""


@dataclass(frozen=True, eq=False)
class PieceStatistics:
    """Costs of the pieces of one vocabulary."""

    text: Text
    languages: int = 1
    """That share the vocabulary: each has a part of its pieces only, which makes them rarer than they are in that language."""
    costs: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        rows = list(self.text.piece_rows)
        costs = np.full(len(self.text), UNKNOWN_COST)
        ranks = np.log(np.arange(len(rows)) + HEAD)
        costs[rows] = ranks + np.log(np.exp(-ranks).sum()) - np.log(self.languages)
        for row in rows:
            if self.text.symbols[row] in BYTES:
                costs[row] = UNKNOWN_COST
        object.__setattr__(self, "costs", costs)

    def cost(self, text: str) -> float:
        """Nats a character, spaces not counted; lower is likelier."""
        letters = sum(not character.isspace() for character in text)
        if not letters:
            return 0.0
        return float(self.costs[self.text.encode(text)].sum()) / letters
