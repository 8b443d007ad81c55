"""Models of the paper and ours by number, as what `graftmt add --recipe 12` asks for. Layer 7."""

from __future__ import annotations

from graftmt.augmentation.line_choice import Spec
from graftmt.errors import ConfigError
from graftmt.experiments.paper import row
from graftmt.packs import Recipe, Side
from graftmt.packs.recipe import papers_number


def numbered_recipe(text: str, side: Side) -> tuple[Recipe, str | None] | None:
    """The recipe of the model with this number, and the lines that it has besides text with English, as `--augment` has them.

    None of a text that is no number. Languages are those that were asked for; what a number means besides is refused.
    """
    number = papers_number(text)
    if number is None:
        return None
    found = row(number)
    if found.side != side:
        raise ConfigError(
            f"--recipe {text}: ({number}) is a {found.side} pack, and this one is a {side} pack; give --side {found.side}, or "
            f"another recipe. `graftmt recipes --side {side}` lists those of this side."
        )
    data = found.model.data
    spec = None if data.english_alone else str(Spec(lines=data.lines_per_language, back_translated=data.back_translated))
    written = f"--recipe '{found.recipe}'" + ("" if spec is None else f" --augment {spec}")
    if not data.filtered:
        raise ConfigError(
            f"--recipe {text}: ({number}) has the recipe of another model and differs from it in the text, {found.data}. "
            f"Write {written}."
        )
    if found.model.second_stage is not None:
        raise ConfigError(
            f"--recipe {text}: ({number}) has the recipe of another model and differs from it in how long its second stage is. "
            f"Write {written} --steps N stages.1.steps=N."
        )
    return Recipe.parse(found.recipe), spec
