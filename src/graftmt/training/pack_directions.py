"""The directions that a pack trains in, and in which stages. Layer 4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graftmt.data import Corpus, Direction, parse_direction
from graftmt.errors import ConfigError, LanguageError
from graftmt.packs import Recipe
from graftmt.packs.component import SCOPED
from graftmt.packs.storage import read_pack_document
from graftmt.training.optimization import StageConfig
from graftmt.training.run_configuration import PackConfig


def pack_directions(config: PackConfig, stage: StageConfig) -> list[Direction]:
    """Each new language with each partner, the new one on the pack's side, unless the stage names some of them."""
    source = config.side == "source"
    pairs = [Direction(*((new, old) if source else (old, new))) for new in config.languages for old in config.data.partners]
    if not stage.directions:
        return pairs
    known = (*config.languages, *config.data.partners)
    chosen = [parse_direction(text, known) for text in stage.directions]
    for direction in chosen:
        if direction not in pairs:
            raise LanguageError(
                f"direction {direction} cannot train this pack, whose {config.side} side is {' or '.join(config.languages)}; "
                f"its directions are {', '.join(map(str, pairs))}."
            )
    return chosen


def with_scoped_stage(config: PackConfig) -> PackConfig:
    """What is for trained directions only is learned last, on top of all else: one more stage, half as long."""
    recipe = config.recipe if config.parent is None else read_pack_document(config.parent)["recipe"]
    if not Recipe.parse(recipe).scoped:
        return config
    if len(config.stages) == 1:
        (stage,) = config.stages
        last = replace(stage.with_steps(max(1, stage.steps // 2)), name=f"{stage.name}{SCOPED}")
        config = replace(config, stages=(stage, last))
    scoped_directions(config)
    return config


def scoped_directions(config: PackConfig) -> list[Direction]:
    """Where parts with `@trained` learn: in the last stage's directions, but for those with a few lines (`data.few`).

    Those lines are there so that the pack remembers their codes; the parts would learn to do without.
    """
    found = [one for one in pack_directions(config, config.stages[-1]) if set(one).isdisjoint(config.data.few)]
    if not found:
        chosen = ", ".join(config.stages[-1].directions)
        few = (
            f"the directions of the last stage ({chosen}) are of languages in data.few"
            if chosen
            else "data.few names all of data.partners"
        )
        raise ConfigError(
            f"the recipe has parts with {SCOPED}, and {few}: no direction is left for them. "
            "Leave a partner with whole text out of data.few, or the scope out of the recipe."
        )
    return found


def with_lines(corpus: Corpus, directions: Sequence[Direction]) -> list[Direction]:
    """The directions for which at least one line has text on both sides.

    A language may be there without a line in common with the new one, as in text that is aligned through English only.
    """
    languages = {language for direction in directions for language in direction if language in corpus.languages}
    if not languages:
        return []
    filled = {
        language: {row for row, line in enumerate(lines) if line.strip()}
        for language, lines in corpus.texts(sorted(languages)).items()
    }
    return [d for d in directions if set(d) <= filled.keys() and not filled[d.source].isdisjoint(filled[d.target])]
