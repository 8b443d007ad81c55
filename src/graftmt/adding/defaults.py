"""What `graftmt add` does where it is not told: recipe, lines in other languages, steps. Layer 6."""

from __future__ import annotations

from collections.abc import Sequence

from graftmt.adding.examination import Examination
from graftmt.base import Base
from graftmt.packs import Recipe, Side
from graftmt.text import languages_of
from graftmt.text.aliases import english_in

EPOCHS: dict[Side, int] = {"source": 12, "target": 20}
"""Passes over the text. Embeddings that only read settle soon; a decoder's layer learns longer."""
FEWEST_STEPS, MOST_STEPS = 300, 20_000
MOST_LINES = 1000
"""Back-translated for each other language of the base by default, as in the paper's (19) and (20) …"""
PAIRS_PER_LINE = 4
"""… and at most one for N pairs of the text, over all languages …"""
MOST_IN_ALL = 40_000
"""… and at most N lines, however large the text and however many the base's languages …"""
FEWEST_LINES = 20
"""… or none at all, where fewer than this would be left for each."""


def default_recipe(side: Side, base: Base, partners: Sequence[str] | None = None, *, augmented: bool = True) -> Recipe:
    """What lost nothing against the best of the paper's in any column (docs/results/docs-reading.md).

    Writing a language takes a layer and an adapter, (31). Reading it, a first layer helps, (14), but learns to do without the
    other languages' codes unless it sees them: with lines in them, `augmented`, (106); else embeddings alone, (101). The code
    begins as that of English or, in a base without it, of the language it is trained with.
    """
    if side == "target":
        recipe = f"embed + dec-last-layer + enc-adapters-last({2 * base.model.config.model_dim})"
    else:
        recipe = "embed" + " + enc-first-layer" * augmented + " + init:alignment"
    own = languages_of(base.tokenizer, side)  # those with a code where the new language gets one
    if "en" not in own and base.tokenizer.layout.code_matrix(side) is not None:
        known = [name for name in partners or () if name in own] or own
        recipe = f"{recipe} + code:learned:{english_in(own) or known[0]}"
    return Recipe.parse(recipe)


def pairs_for_a_line(base: Base, languages: int) -> int:
    """How many pairs of the text make one line for each other language of the base, of each new one."""
    return PAIRS_PER_LINE * (len(base.languages) - 1) * languages


def most_lines(base: Base, languages: int) -> int:
    """How many lines for each other language there are at most, however large the text."""
    return min(MOST_LINES, MOST_IN_ALL * PAIRS_PER_LINE // pairs_for_a_line(base, languages))


def choose_steps(examination: Examination, side: Side, batch_tokens: int) -> int:
    """About EPOCHS passes over the text, at least a few hundred updates."""
    tokens = sum(
        found.lines * max(1.0, (found.under_pack or found.under_base).tokens_per_line)
        for found in examination.languages.values()
    )
    return int(min(MOST_STEPS, max(FEWEST_STEPS, EPOCHS[side] * tokens / batch_tokens)))
