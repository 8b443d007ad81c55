"""A language pack: all that was learned for one or several new languages on one side of a base. Layer 3.

A pack owns its parameters, by name; the components of its recipe say which they are. A name that the base has too, such as
`encoder.layers.0.ffn.up.weight`, stands in that parameter's place. Training a pack optimises these and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from graftmt.base import Base
from graftmt.devices import AnyDevice, AnyDtype, choose_device
from graftmt.errors import LanguageError, first_few
from graftmt.model import ModelConfig
from graftmt.packs.component import Shape, Side
from graftmt.packs.parts import Setting, own_tensors, tensor_shapes
from graftmt.packs.recipe import Recipe
from graftmt.text import BaseText, Pieces, Text, languages_of


@dataclass(repr=False)
class Pack:
    """One or several new languages on one side of the base whose fingerprint is `base`."""

    side: Side
    languages: tuple[str, ...]
    recipe: Recipe
    base: str
    tokenizer: Text
    parameters: dict[str, nn.Parameter]
    partners: tuple[str, ...] = ()
    """The base's languages that it was trained with. They decide where parts with `@trained` are used."""
    few: tuple[str, ...] = ()
    """Those of the partners with a few lines only, with which such parts are not used."""
    card: dict[str, Any] = field(default_factory=dict)
    """Provenance for people: row initialisation, training text, scores, parent. It decides nothing."""
    fingerprint: str = ""
    """Empty until it is stored or loaded."""
    architecture: ModelConfig | None = field(default=None, compare=False)
    """That of its base, which is stored with it."""

    @classmethod
    def load(cls, path: str | Path, *, device: AnyDevice = "cpu", dtype: AnyDtype = "fp32") -> Pack:
        """Reads a pack's folder or .graftpack file, and checks that it is whole and unchanged."""
        from graftmt.packs.storage import load_pack  # which makes packs, and so imports this module

        return load_pack(path, device=choose_device(device), dtype=dtype)

    def save(self, path: str | Path, *, dtype: AnyDtype = "fp32", replace: bool = False) -> str:
        """Writes the pack as a folder, or as one file where `path` ends in .graftpack; returns its fingerprint.

        Another pack in this place is an error, unless `replace` says that it may go.
        """
        from graftmt.packs.storage import save_pack

        assert self.architecture is not None, "every pack that was made or loaded has one"
        return save_pack(self, path, self.architecture, dtype=dtype, replace=replace)

    def __repr__(self) -> str:
        """What it is, without its tensors."""
        return f"<Pack {self.name}: {self.recipe}, {self.size:,} parameters, fingerprint {self.fingerprint[:16] or 'none yet'}>"

    @property
    def name(self) -> str:
        """How people and errors call it."""
        return f"{'+'.join(self.languages)} ({self.side})"

    @property
    def device(self) -> torch.device:
        return next(iter(self.parameters.values())).device

    @property
    def size(self) -> int:
        """The number of its parameters."""
        return sum(parameter.numel() for parameter in self.parameters.values())

    def to(self, device: torch.device | str, dtype: torch.dtype | None = None) -> Pack:
        """The same pack on this device or in this dtype; this one if nothing would change."""
        dtype = next(iter(self.parameters.values())).dtype if dtype is None else dtype
        moved = {name: parameter.detach().to(device, dtype) for name, parameter in self.parameters.items()}
        if all(tensor.data_ptr() == self.parameters[name].data_ptr() for name, tensor in moved.items()):
            return self
        return replace(self, parameters={name: nn.Parameter(tensor) for name, tensor in moved.items()})

    def scoped_names(self, config: ModelConfig) -> frozenset[str]:
        """The parameters that are only used in directions that were trained."""
        if not self.recipe.scoped:
            return frozenset()
        shared = tensor_shapes(replace(self.setting(config), recipe=self.recipe.shared()))
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

    def setting(self, config: ModelConfig) -> Setting:
        """Its recipe for the base's architecture."""
        return pack_setting(self.recipe, config, self.side, self.tokenizer, len(self.languages))

    def expected_shapes(self, config: ModelConfig) -> dict[str, Shape]:
        """Every tensor that a pack with this recipe and vocabulary has."""
        return tensor_shapes(self.setting(config))


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """A pack whose tensors get their first values, one after the other: what components make these from."""

    base: Base
    setting: Setting
    tokenizer: Text
    """The pack's own."""
    seed: int
    generator: torch.Generator
    """Of all that is drawn at random, in the order of the pack's tensors; rows of embeddings are drawn from the seed."""
    trained_codes: Collection[str] = ()
    """The languages on the other side of the training text, whose code rows will move."""
    translations: Mapping[str, Mapping[str, float]] | None = None
    """Symbol of the pack → symbols of the base that translate it, with weights."""
    card: dict[str, Any] = field(default_factory=dict)
    """What the pack's card will say of its first values."""
    made: dict[Any, Any] = field(default_factory=dict)
    """What one component has made that another one needs too."""

    @cached_property
    def base_parameters(self) -> dict[str, nn.Parameter]:
        return dict(self.base.model.named_parameters())

    def copy_of(self, name: str) -> Tensor:
        """A parameter of the base, in fp32 on the CPU."""
        return self.base_parameters[name].detach().float().cpu().clone()


def pack_setting(recipe: Recipe, config: ModelConfig, side: Side, tokenizer: Text, languages: int) -> Setting:
    placement = tokenizer.layout.placement(side)
    return Setting(recipe=recipe, config=config, side=side, rows=len(tokenizer), languages=languages, code_placement=placement)


def pack_tokenizer(subwords: Pieces, side: Side, base: BaseText) -> Text:
    """A pack's text: its own pieces and, where codes are read from its matrix, copies of all the base's codes."""
    return subwords.with_codes(codes_of(side, base), base.layout.placement(side))


def codes_of(side: Side, base: BaseText) -> tuple[str, ...]:
    """The languages whose codes a pack has copies of."""
    whose = base.layout.codes_in(side)
    return () if whose is None else languages_of(base, whose)


def check_recipe(recipe: Recipe, side: Side, languages: Sequence[str], base: Base) -> None:
    """What a recipe, a side and languages must be for this base, before any text is read."""
    known = languages_of(base.tokenizer, side)
    for language in languages:
        if language in known:
            raise LanguageError(
                f"{language!r} is one of the base's languages already ({first_few(known)}); a pack is for a new one."
            )
    if len(set(languages)) < len(languages) or not languages:
        raise LanguageError(f"a pack is for one or several different languages; got {', '.join(languages) or 'none'}.")
    placement = base.tokenizer.layout.placement(side)
    setting = Setting(recipe=recipe, config=base.model.config, side=side, code_placement=placement)
    setting.check()
    for component in recipe.components:
        component.check_base(setting, base)


def create_pack(
    base: Base,
    *,
    side: Side,
    languages: Sequence[str],
    recipe: Recipe,
    subwords: Pieces,
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
    setting = pack_setting(recipe, base.model.config, side, tokenizer, len(languages))
    beginning = Beginning(
        base=base,
        setting=setting,
        tokenizer=tokenizer,
        seed=seed,
        generator=torch.Generator().manual_seed(seed),
        trained_codes=trained_codes,
        translations=translations,
    )
    parameters = {}
    for name, (shape, component) in own_tensors(setting).items():
        value = component.first_value(name, shape, beginning)
        assert tuple(value.shape) == shape, f"{component}: the first value of {name} is {tuple(value.shape)}, not {shape}"
        parameters[name] = nn.Parameter(value)
    return Pack(
        side=side,
        languages=tuple(languages),
        recipe=recipe,
        base=base.fingerprint,
        tokenizer=tokenizer,
        parameters=parameters,
        card=beginning.card,
        architecture=base.model.config,
    )
