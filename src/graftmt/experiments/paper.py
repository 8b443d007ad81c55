"""The paper's packs next to what they have here: a recipe each, the parameters that the paper prints and those it has. Layer 7.

`ROWS` are the packs of `models.yaml` under the paper's bold numbers, `OURS` those of `beyond.yaml`, and `totals` gives whole
models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from graftmt.errors import ConfigError
from graftmt.experiments.definitions import Model, models, size_of, tables
from graftmt.model import ModelConfig, Transformer, named_size
from graftmt.packs.component import Side
from graftmt.packs.parts import shapes_of_vocabulary
from graftmt.packs.recipe import Recipe

VOCABULARY = {("el",): 4_152, ("el", "uk", "sv", "id"): 16_211, ("ar",): 8_428}
"""Rows of a pack's vocabulary, a new language's code included: 2.13M / 512, 8.30M / 512 and 8.63M / 1024."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One incrementally trained model, the paper's or ours."""

    model: Model

    @property
    def id(self) -> int:
        return self.model.id

    @property
    def side(self) -> Side:
        assert self.model.side is not None, f"({self.id}) is a pack without a side"
        return self.model.side

    @property
    def recipe(self) -> str:
        assert self.model.recipe is not None, f"({self.id}) is a pack without a recipe"
        return self.model.recipe

    @property
    def config(self) -> ModelConfig:
        return named_size(size_of(self.model), norm="post")

    @property
    def table(self) -> int:
        """The first table that has it as a row."""
        return next(n for n, table in sorted(tables().items()) if any(row.system.model == self.id for row in table.rows))

    @property
    def data(self) -> str:
        """What it trains on, in the paper's words."""
        data = self.model.data
        names = ",".join(self.model.languages).upper()
        language = names if len(self.model.languages) == 1 else f"{{{names}}}"
        if data.view == "multi-aligned":
            return f"{language}-* (multi-aligned{', BT' * data.back_translated})"
        text = f"{language}-EN"
        if (lines := data.lines_per_language) is not None:
            amount = f"{lines // 1000}k" if lines >= 1000 else str(lines)
            text += f" + {amount} lines per lang{' (BT)' * data.back_translated}"
        return text if data.filtered else f"{text} without lang ID filtering"

    @property
    def computed_parameters(self) -> int:
        """A target pack learns its codes in a matrix of their own; a source pack's matrix has copies of the base's."""
        languages = self.model.languages
        shapes = shapes_of_vocabulary(
            Recipe.parse(self.recipe), self.config, side=self.side, rows=VOCABULARY[languages], languages=len(languages)
        )
        return sum(map(math.prod, shapes.values()))

    def document(self) -> dict[str, Any]:
        printed, computed = self.model.parameters, self.computed_parameters
        return {
            "id": self.id,
            "table": self.table,
            "name": self.model.name,
            "corpus": self.model.corpus,
            "base": size_of(self.model),
            "side": self.side,
            "languages": list(self.model.languages),
            "recipe": self.recipe,
            "data": self.data,
            "paper_parameters": printed,
            "computed_parameters": computed,
            "agrees": None if printed is None else agrees(printed, computed),
            "note": self.model.note,
        }


def agrees(printed: str, computed: int) -> bool:
    """Whether a count, rounded to the digits that are printed, is the printed one: 2,125,824 is "2.13M"."""
    number = printed.removesuffix("M")
    decimals = len(number.partition(".")[2])
    return f"{computed / 1e6:.{decimals}f}" == number


ROWS = tuple(Row(model=model) for model in models().values() if model.trains == "pack" and not model.ours)
OURS = tuple(Row(model=model) for model in models().values() if model.trains == "pack" and model.ours)


def row(number: int) -> Row:
    """The row with this bold number, or our number."""
    for candidate in (*ROWS, *OURS):
        if candidate.id == number:
            return candidate
    known, ours = (", ".join(str(candidate.id) for candidate in rows) for rows in (ROWS, OURS))
    raise ConfigError(f"the paper has no incremental model ({number}); it has {known}. Ours are {ours}.")


@dataclass(frozen=True, kw_only=True)
class Total:
    """A whole model; source, target and output share one matrix of `rows`."""

    id: int
    name: str
    rows: int
    assumption: str

    def document(self) -> dict[str, Any]:
        model = models()[self.id]
        size, printed = size_of(model), model.parameters
        assert printed is not None, f"the paper prints no total of ({self.id})"
        with torch.device("meta"):
            transformer = Transformer.build(named_size(size, norm="post"), self.rows)
        computed = sum(parameter.numel() for parameter in transformer.parameters())
        return {
            "name": f"{self.name} ({self.id})",
            "size": size,
            "rows": self.rows,
            "paper_parameters": printed,
            "computed_parameters": computed,
            "agrees": agrees(printed, computed),
            "assumption": self.assumption,
        }


TOTALS = (
    Total(
        id=4,
        name="TED initial model",
        rows=70_376,
        assumption="4 specials, 3 case tokens, 64,000 merges, 6,349 characters, 20 codes: the released dictionary.",
    ),
    Total(
        id=1,
        name="TED bilingual baselines",
        rows=8_152,
        assumption="The rows are not stated: 8,021 to 8,216 agree; 8,000 merges + 152 others are taken.",
    ),
    Total(
        id=42,
        name="ParaCrawl Big 12-2",
        rows=68_600,
        assumption="The rows are not stated: 68,118 to 69,093 agree; 64,000 merges + 4,573 characters + 27 others are taken.",
    ),
    Total(
        id=45,
        name="ParaCrawl bilingual Big 6-6",
        rows=16_448,
        assumption="The rows are not stated: 16,400 to 16,496 give the 193.2M that Table 27's source hides.",
    ),
)


def totals() -> list[dict[str, Any]]:
    """The whole models, each counted on one without memory."""
    return [total.document() for total in TOTALS]
