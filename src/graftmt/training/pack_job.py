"""A pack as a training job: what is asked for, checked; its directions; what each stage trains in which of them. Layer 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn

from graftmt.base import Base
from graftmt.data import Corpus, Direction, parse_direction
from graftmt.devices import choose_device
from graftmt.errors import ConfigError, LanguageError
from graftmt.model import Transformer
from graftmt.packs import Composition, Pack, Recipe, Side
from graftmt.packs.codes import nearest_code
from graftmt.packs.component import SCOPED
from graftmt.packs.storage import read_pack_document
from graftmt.text import languages_of
from graftmt.training.optimization import StageConfig
from graftmt.training.run_configuration import PackConfig
from graftmt.training.training_job import Prepared


def check_precision(config: PackConfig, base: Base) -> None:
    """A base in bf16 trains packs in bf16, on a GPU."""
    if base.model.source_embedding.weight.dtype == torch.float32:
        return
    if config.precision != "bf16":
        raise ConfigError("the base is held in bf16: train with precision=bf16, or load the base in fp32.")
    if base.model.device.type == "cpu":  # whose norms take no mixture of precisions
        raise ConfigError("the base is held in bf16, which is for training on a GPU; on a CPU load it in fp32.")


def training_device(config: PackConfig, base: Base) -> str:
    """The base's own; where its layers are to be sharded, the base stays in host memory and its parts go to the devices."""
    if not config.sharded:
        return str(base.model.device)
    if base.model.device.type != "cpu":
        raise ConfigError(
            f"sharded=true is for a base that does not fit one device, and this one is on {base.model.device}; load it on the "
            "CPU, from where each process takes its part, or leave sharded out."
        )
    return choose_device(config.device)


def other_side(side: Side) -> Side:
    return "target" if side == "source" else "source"


def possible_partners(config: PackConfig, base: Base) -> tuple[str, ...]:
    """The base's languages on the other side of the pack."""
    return languages_of(base.tokenizer, other_side(config.side))


def resolved_recipe(config: PackConfig, base: Base) -> Recipe:
    """The recipe with the base's own code in `code:learned:English`, and with the language that `code:proxy:nearest` means."""
    recipe = Recipe.parse(config.recipe).with_codes_of(base, config.side)
    if recipe.code.is_nearest:
        if config.codes_from is None or len(config.languages) != 1:
            raise ConfigError(
                "code:proxy:nearest needs one new language and --codes-from: a base that knows it, or a target pack with a "
                "learned code of it. To name the code yourself, write code:proxy:ru."
            )
        return recipe.having(recipe.code.naming(nearest_code(config.languages[0], config.codes_from, base)))
    return recipe


def check_text(config: PackConfig, base: Base, train: Corpus) -> None:
    """Partners are languages of the base, and there is text in them and in the new languages."""
    partners = config.data.partners
    known = possible_partners(config, base)
    unknown = [language for language in partners if language not in known]
    if unknown or not partners:
        raise LanguageError(
            f"a pack is trained on pairs with the base's languages, {', '.join(known)}; got "
            f"{', '.join(unknown) or 'none'}. Name one or several of them (data.partners)."
        )
    missing = [language for language in (*config.languages, *partners) if language not in train.languages]
    if missing:
        raise LanguageError(
            f"the {train.split!r} split in {train.folder} has no text in {', '.join(missing)}; it has "
            f"{', '.join(train.languages)}. Add the text, or name other partners (data.partners)."
        )


def check_parent(parent: Pack, config: PackConfig, base: Base) -> None:
    """What is continued stays what it was: same base, side, languages and recipe."""
    differs = [
        f"{what} {theirs}, not {ours}"
        for what, theirs, ours in (
            ("base", parent.base[:16], base.fingerprint[:16]),
            ("side", parent.side, config.side),
            ("languages", "+".join(parent.languages), "+".join(config.languages)),
        )
        if theirs != ours
    ]
    if differs:
        raise ConfigError(f"the pack {config.parent} cannot be continued here: it has {'; '.join(differs)}.")


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


@dataclass
class PackJob:
    """A pack that is ready to train: its text, its first values and the model that it is a part of."""

    config: PackConfig
    base: Base
    pack: Pack
    composition: Composition
    prepared: Prepared
    shared: Transformer | None = None
    """The model of directions that parts with `@trained` are not for, where these parts begin as something: in a pack that is
    continued. All stages but the last train in it."""

    @property
    def directions(self) -> list[Direction]:
        """Of the first stage."""
        return pack_directions(self.config, self.config.stages[0])

    @property
    def parameters(self) -> Mapping[str, nn.Parameter]:
        return self.pack.parameters

    @property
    def keeps_start(self) -> bool:
        return self.pack.recipe.scoped and self.config.parent is None  # a parent's parts begin as something else

    def _is_last(self, stage: int) -> bool:
        return stage + 1 == len(self.config.stages)

    def directions_of(self, stage: int) -> list[Direction]:
        scoped = self.pack.recipe.scoped and self._is_last(stage)
        return scoped_directions(self.config) if scoped else pack_directions(self.config, self.config.stages[stage])

    def model_of(self, stage: int) -> Transformer:
        return self.composition.model if self._is_last(stage) or self.shared is None else self.shared

    def names_trained(self, stage: int) -> frozenset[str]:
        """The parameters that a stage trains: the last one those for trained directions only, where the pack has any."""
        scoped = self.pack.scoped_names(self.base.model.config)
        return scoped if scoped and self._is_last(stage) else frozenset(self.pack.parameters) - scoped
