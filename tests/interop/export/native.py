"""What graftmt itself says of lines under a composition: the answers that exported models must give too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch

from graftmt.base import Base
from graftmt.decoding import SearchOptions, search_all
from graftmt.experiments.definitions import models, tables
from graftmt.packs import Composition, Pack, Recipe, create_pack
from graftmt.text import Subwords
from graftmt.text.protocol import Side


@cache
def recipes_of_tables() -> dict[str, list[str]]:
    """The different recipes of Tables 2 and 3, by side, with adapters of dimension 4."""
    found: dict[str, dict[str, None]] = {"source": {}, "target": {}}
    for number in (2, 3):
        for system in (row.system for row in tables()[number].rows):
            for model in (models()[one] for one in (system.model, system.source, system.target) if one is not None):
                if model.recipe is not None and model.side is not None:
                    found[model.side][re.sub(r"\(\d+\)", "(4)", model.recipe)] = None
    return {side: list(recipes) for side, recipes in found.items()}


@dataclass(frozen=True)
class Forced:
    """A line with a given translation, as rows, and the log-probability of each of its tokens under graftmt."""

    source: list[int]
    prefix: list[int]
    target: list[int]
    """Without prefix, with the end, unless it was cut off."""
    log_probabilities: list[float]


@torch.inference_mode()
def log_probabilities(composition: Composition, source: list[int], prefix: list[int], target: list[int]) -> list[float]:
    """Of each token of a translation that is given, after the prefix."""
    scores = composition.model(torch.tensor([source]), torch.tensor([[*prefix, *target[:-1]]]))[0, len(prefix) - 1 :]
    found: list[float] = torch.log_softmax(scores, dim=-1).gather(1, torch.tensor(target)[:, None])[:, 0].tolist()
    return found


def forced(composition: Composition, source: str, target: str, pairs: Sequence[tuple[str, str]]) -> list[Forced]:
    codec, found = composition.codec, []
    prefix = codec.decoder_prefix(target)
    for line, translation in pairs:
        rows = source_rows(composition, source, target, line)
        wanted = [*codec.target_tokenizer(target).encode(translation), codec.end_id]
        found.append(forced_rows(composition, rows, prefix, wanted))
    return found


def forced_rows(composition: Composition, source: list[int], prefix: list[int], target: list[int]) -> Forced:
    return Forced(source, prefix, target, log_probabilities(composition, source, prefix, target))


def source_rows(composition: Composition, source: str, target: str, line: str) -> list[int]:
    codec = composition.codec
    text = codec.source_tokenizer(source).encode(line)
    return [*codec.source_prefix(source, target), *text, *codec.source_suffix(source, target)]


def searched(composition: Composition, source: str, target: str, lines: Sequence[str], **options: int) -> list[list[int]]:
    """The best translation of each line as rows, without its end."""
    codec = composition.codec
    sources = [source_rows(composition, source, target, line) for line in lines]
    found = search_all(
        composition.model,
        sources,
        [codec.decoder_prefix(target)] * len(lines),
        SearchOptions(**options),  # type: ignore[arg-type]
        end=codec.end_id,
        forbidden=codec.forbidden,
    )
    return [hypotheses[0].tokens for hypotheses in found]


def noisy_pack(base: Base, family: str, side: Side, recipe: str, subwords: Subwords) -> Pack:
    """A pack for "xx" on an imported base, with noise for what training would do."""
    code = {"nllb": " + code:learned:eng_Latn", "mbart": " + code:learned:en_XX"}.get(family, "")
    pack = create_pack(base, side=side, languages=("xx",), recipe=Recipe.parse(recipe + code), subwords=subwords)
    with torch.no_grad():
        for parameter in pack.parameters.values():
            parameter += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    return pack
