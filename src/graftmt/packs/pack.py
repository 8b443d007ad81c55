"""A language pack: all that was learned for one or several new languages on one side of a base. Layer 3.

A pack owns its parameters, by name. `embedding.weight` is its matrix, `output.weight` the projection where it is not tied
to it, `code.weight` its own language codes; `encoder.adapters.2.…` are adapters; a name that the base has too, such as
`encoder.layers.0.ffn.up.weight`, stands in that parameter's place. Training a pack optimises these and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from graftmt.base import Base
from graftmt.errors import ConfigError, LanguageError
from graftmt.model import ModelConfig
from graftmt.packs.initialisation import Initialised, initialise
from graftmt.packs.parts import Parts, Side, resolve, tensor_shapes
from graftmt.packs.recipe import Recipe
from graftmt.text import CodePlacement, Subwords, Tokenizer, code_symbol

NEARLY_ZERO = 1e-3
"""The spread of an adapter's last weights before training: the adapter begins as almost nothing."""


@dataclass
class Pack:
    """One or several new languages on one side of the base whose fingerprint is `base`."""

    side: Side
    languages: tuple[str, ...]
    recipe: Recipe
    base: str
    tokenizer: Tokenizer
    parameters: dict[str, nn.Parameter]
    partners: tuple[str, ...] = ()
    """The base's languages that it was trained with. They decide where parts with `@trained` are used."""
    few: tuple[str, ...] = ()
    """Those of the partners with a few lines only, with which such parts are not used."""
    card: dict[str, Any] = field(default_factory=dict)
    """Provenance for people: row initialisation, training text, scores, parent. It decides nothing."""
    fingerprint: str = ""
    """Empty until it is stored or loaded."""

    @property
    def name(self) -> str:
        """How people and errors call it."""
        return f"{'+'.join(self.languages)} ({self.side})"

    @property
    def device(self) -> torch.device:
        return self.parameters["embedding.weight"].device

    @property
    def size(self) -> int:
        """The number of its parameters."""
        return sum(parameter.numel() for parameter in self.parameters.values())

    def to(self, device: torch.device | str, dtype: torch.dtype | None = None) -> Pack:
        """The same pack elsewhere; this one where nothing would change."""
        dtype = self.parameters["embedding.weight"].dtype if dtype is None else dtype
        moved = {name: parameter.detach().to(device, dtype) for name, parameter in self.parameters.items()}
        if all(tensor.data_ptr() == self.parameters[name].data_ptr() for name, tensor in moved.items()):
            return self
        return replace(self, parameters={name: nn.Parameter(tensor) for name, tensor in moved.items()})

    def scoped_names(self, config: ModelConfig) -> frozenset[str]:
        """The parameters that are only used in directions that were trained."""
        if not self.recipe.scoped:
            return frozenset()
        shared = pack_shapes(self.recipe.shared(), config, self.side, self.tokenizer, len(self.languages))
        return frozenset(self.parameters.keys() - shared.keys())

    def is_whole_with(self, language: str) -> bool:
        """Whether all of it is used with this language on the other side."""
        trained = language in self.partners and language not in self.few
        return trained or not self.recipe.scoped

    def for_partner(self, language: str, config: ModelConfig) -> Pack:
        """The pack as it is used with one language on the other side: whole, or without what is for trained ones only."""
        if self.is_whole_with(language):
            return self
        scoped = self.scoped_names(config)
        kept = {name: parameter for name, parameter in self.parameters.items() if name not in scoped}
        return replace(self, recipe=self.recipe.shared(), parameters=kept)

    def parts(self, config: ModelConfig) -> Parts:
        """What its recipe means for the base's architecture."""
        return resolve(self.recipe, config, self.side)

    def expected_shapes(self, config: ModelConfig) -> dict[str, tuple[int, ...]]:
        """Every tensor that a pack with this recipe and vocabulary has."""
        return pack_shapes(self.recipe, config, self.side, self.tokenizer, len(self.languages))


def pack_shapes(
    recipe: Recipe, config: ModelConfig, side: Side, tokenizer: Tokenizer, languages: int
) -> dict[str, tuple[int, ...]]:
    codes = languages if has_own_codes(recipe, side, tokenizer.code_placement) else 0
    return tensor_shapes(resolve(recipe, config, side), config, side=side, rows=len(tokenizer), codes=codes)


def has_own_codes(recipe: Recipe, side: Side, placement: CodePlacement) -> bool:
    """Whether a pack brings a code row for each of its languages: the code must be one that is written for this side."""
    return recipe.code.kind == "learned" and (side == "target" or placement == "decoder")


def lends_code(pack: Pack) -> bool:
    """Whether a base's code row is put after the pack's matrix as it is: there the copy in the matrix moves in training."""
    return pack.recipe.code.kind in ("fixed", "proxy") and pack.tokenizer.code_placement == "decoder"


def pack_tokenizer(subwords: Subwords, side: Side, base: Tokenizer) -> Tokenizer:
    """A pack's vocabulary: its own pieces and, where codes are written on its side, copies of all the base's codes."""
    return Tokenizer(subwords, codes_of(side, base), base.code_placement)


def codes_of(side: Side, base: Tokenizer) -> tuple[str, ...]:
    """The languages whose codes a pack has copies of."""
    return base.languages if side == "source" or base.code_placement == "decoder" else ()


def check_recipe(recipe: Recipe, side: Side, languages: Sequence[str], base: Base) -> None:
    """What a recipe, a side and languages must be for this base, before any text is read."""
    for language in languages:
        if language in base.languages:
            raise LanguageError(
                f"{language!r} is one of the base's languages already ({', '.join(base.languages)}); a pack is for a new one."
            )
    if len(set(languages)) < len(languages) or not languages:
        raise LanguageError(f"a pack is for one or several different languages; got {', '.join(languages) or 'none'}.")
    resolve(recipe, base.model.config, side)
    choice = recipe.code
    if side == "source" and base.tokenizer.code_placement == "source" and recipe.code != Recipe().code:
        raise ConfigError(
            f"recipe {str(recipe)!r}: a source pack has no language code of its own to choose, since this base writes the "
            "target's code before the source text. Leave the code out, or train a target pack."
        )
    if choice.kind == "proxy" and choice.language == "nearest":
        raise ConfigError(
            "code:proxy:nearest: which code is nearest is read from a model that knows the language; see --codes-from."
        )
    if choice.kind != "none" and has_code_choice(side, base) and choice.language not in base.languages:
        raise ConfigError(
            f"recipe {str(recipe)!r}: the base has no code of {choice.language!r} to take; it has those of "
            f"{', '.join(base.languages)}. Name one of them, as in code:learned:{base.languages[0]}."
        )


def has_code_choice(side: Side, base: Base) -> bool:
    return side == "target" or base.tokenizer.code_placement == "decoder"


def create_pack(
    base: Base,
    *,
    side: Side,
    languages: Sequence[str],
    recipe: Recipe,
    subwords: Subwords,
    seed: int = 1,
    trained_codes: Collection[str] = (),
    translations: Mapping[str, Mapping[str, float]] | None = None,
) -> Pack:
    """A pack as it is before training.

    `trained_codes`: the languages on the other side of the training text, whose code rows will move; `translations`: what
    `init:alignment` makes rows from.
    """
    check_recipe(recipe, side, languages, base)
    tokenizer = pack_tokenizer(subwords, side, base.tokenizer)
    config = base.model.config
    shapes = pack_shapes(recipe, config, side, tokenizer, len(languages))
    generator = torch.Generator().manual_seed(seed)
    parameters = dict(base.model.named_parameters())
    source, target, output = (
        base.model.source_embedding.weight,
        base.model.target_embedding.weight,
        base.model.projection.weight,
    )

    def rows_of(weight: Tensor) -> Initialised:
        return initialise(
            tokenizer.vocabulary,
            base.tokenizer,
            weight.detach().float().cpu(),
            method=recipe.initialisation,
            seed=seed,
            trained_codes=trained_codes,
            translations=translations,
        )

    embedding = rows_of(source if side == "source" else target)
    made: dict[str, Tensor] = {"embedding.weight": embedding.weight}
    if "output.weight" in shapes:
        made["output.weight"] = embedding.weight.clone() if output is target else rows_of(output).weight
    if "output.bias" in shapes:
        made["output.bias"] = _output_bias(base, tokenizer, embedding.rules)
    if "code.weight" in shapes:
        code = base.tokenizer.vocabulary.id(code_symbol(recipe.code.language))
        written = target if side == "target" and base.tokenizer.code_placement == "decoder" else source
        made["code.weight"] = written[code].detach().float().cpu().expand(len(languages), -1).clone()
    for name, shape in shapes.items():
        if name in made:
            continue
        if name in parameters:
            made[name] = parameters[name].detach().float().cpu().clone()
        else:
            made[name] = _adapter_tensor(name, shape, generator)
    assert {name: tuple(tensor.shape) for name, tensor in made.items()} == shapes
    pack = Pack(
        side=side,
        languages=tuple(languages),
        recipe=recipe,
        base=base.fingerprint,
        tokenizer=tokenizer,
        parameters={name: nn.Parameter(made[name]) for name in shapes},
        card={"initialisation": embedding.counts},
    )
    with torch.no_grad():
        for name in pack.scoped_names(config):
            if name.endswith("up.weight") and ".adapters." in name:
                pack.parameters[name].zero_()  # not nearly: what is trained before it must not feel it
    return pack


def _output_bias(base: Base, tokenizer: Tokenizer, rules: Sequence[str]) -> Tensor:
    """(rows): the base's where a row is the base's too, zero where it is new."""
    bias = torch.zeros(len(tokenizer))
    known = base.model.projection.bias
    if known is not None:
        row_of = {symbol: row for row, symbol in enumerate(base.tokenizer.vocabulary.symbols[: len(known)])}
        for row, rule in enumerate(rules):
            if rule in ("overlap", "base code"):
                bias[row] = known[row_of[tokenizer.vocabulary.symbol(row)]].detach().float().cpu()
    return bias


def _adapter_tensor(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Norms as usual, the first map random as usual, the last one nearly zero."""
    if name.endswith("norm.weight"):
        return torch.ones(shape)
    if len(shape) == 1:
        return torch.zeros(shape)
    if name.endswith("up.weight"):
        return torch.empty(shape).normal_(std=NEARLY_ZERO, generator=generator)
    return nn.init.xavier_uniform_(torch.empty(shape), generator=generator)
