"""Compositions: a base, perhaps a source pack, perhaps a target pack → a model for the directions they open. Layer 3.

A composition is a value. It shares the base's tensors and the packs', takes modules of its own to hold them, and
changes nothing in either: any number of compositions of one resident base can work side by side. Components put a pack's
parameters into its modules (`Installation`); which text reads a language, and which row of which matrix is its code, says
its codec.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import nn

from graftmt.base import Base
from graftmt.errors import CheckpointError, ConfigError, GraftError, LanguageError, nearest
from graftmt.model import Transformer
from graftmt.packs.component import Side, Stack
from graftmt.packs.pack import Pack, codes_of
from graftmt.packs.parts import Setting
from graftmt.text import Text, TextCodec, languages_of

Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True)
class Composition:
    """A model, and how text becomes its rows."""

    model: Transformer
    codec: TextCodec
    source: Pack | None
    target: Pack | None


def compose(base: Base, *, source: Pack | None = None, target: Pack | None = None, fold: bool = False) -> Composition:
    """The model of base and packs; the source pack's parts come before the target pack's where both are on one layer.

    `fold`, for inference: what can be made part of other weights becomes part of them. That costs a copy of these weights;
    without it, any number of compositions share them. Two packs that replace the same parameter are an error.
    """
    for pack, side in ((source, "source"), (target, "target")):
        if pack is not None:
            check_fits(pack, base, side)  # type: ignore[arg-type]
    packs = [pack for pack in (source, target) if pack is not None]
    model = twin(base.model)
    modules, owners = dict(model.named_modules()), dict[str, Pack]()
    for pack in packs:
        setting = pack.setting(model.config)
        setting.check()
        installation = Installation(model=model, modules=modules, base=base, pack=pack, setting=setting, owners=owners)
        for component in pack.recipe.components:
            component.install(installation)
    if fold:
        fold_parts(model)
    codec: TextCodec = ComposedCodec(base.tokenizer, source, target) if packs else TextCodec(base.tokenizer)
    return Composition(model.eval(), codec, source, target)


def check_fits(pack: Pack, base: Base, side: Side) -> None:
    """A pack works on the side and on the base it was made for, and nowhere else."""
    if pack.side != side:
        raise ConfigError(f"the pack {pack.name} is for the {pack.side} side; it cannot be used as the {side} pack.")
    if not base.fingerprint:
        raise GraftError(
            "this base was never stored, so nothing can be known to belong to it; store it with base.save(folder)."
        )
    if pack.base != base.fingerprint:
        raise CheckpointError(
            f"the pack {pack.name} was made for the base {pack.base[:16]}…; this base is {base.fingerprint[:16]}…. "
            "Use the base it was made for, or train the pack again on this one."
        )
    known = [language for language in pack.languages if language in languages_of(base.tokenizer, side)]
    if known:
        raise LanguageError(
            f"the pack {pack.name} is for {', '.join(known)}, which the base has already; packs are for other languages."
        )
    codes = codes_of(side, base.tokenizer), base.tokenizer.layout.placement(side)
    own_codes = pack.tokenizer.languages, pack.tokenizer.layout.placement(side)
    shapes = {name: tuple(parameter.shape) for name, parameter in pack.parameters.items()}
    if own_codes != codes or shapes != pack.expected_shapes(base.model.config):
        raise CheckpointError(
            f"the pack {pack.name} names this base as its own, but has codes or tensors of another architecture; "
            "train it again on this base."
        )
    if pack.device != base.model.device:
        raise GraftError(
            f"the pack {pack.name} is on {pack.device} and the base on {base.model.device}; move it with pack.to(…)."
        )


@dataclass(frozen=True, kw_only=True)
class Installation:
    """One pack on its way into a model, put there by its components. The modules are the composition's own and may be changed.

    The tensors in them are the base's, and are not to be written to. A source pack is installed before a target pack.
    """

    model: Transformer
    modules: Mapping[str, nn.Module]
    """The modules that the base has too, by the base's names, also where something has been put around them since."""
    base: Base
    pack: Pack
    setting: Setting
    owners: dict[str, Pack]
    """The base's parameters that a pack has replaced so far, and which pack."""

    @property
    def parameters(self) -> Mapping[str, nn.Parameter]:
        """The pack's, by name."""
        return self.pack.parameters

    def layers(self, stack: Stack) -> nn.ModuleList:
        """The layers of a stack with all that is around them."""
        return self.model.encoder.layers if stack == "encoder" else self.model.decoder.layers

    def layer(self, stack: Stack, index: int) -> nn.Module:
        """A layer, counted from 0, without what may have been put around it."""
        return self.modules[f"{stack}.layers.{index}"]

    def replace(self, name: str) -> None:
        """Puts the pack's parameter where the base has the one of this name. Two packs cannot do that with one parameter."""
        owner = self.owners.setdefault(name, self.pack)
        if owner is not self.pack:
            raise ConfigError(
                f"the packs {owner.name} and {self.pack.name} both have their own {name}: they cannot be combined. "
                "Use packs that tune different layers, or translate with --pivot."
            )
        module, _, attribute = name.rpartition(".")
        self.modules[module]._parameters[attribute] = self.parameters[name]

    def filled(self, make: type[Module], prefix: str, *arguments: object) -> Module:
        """A new module that holds the pack's parameters whose names begin with `prefix`."""
        with torch.device("meta"):
            module = make(*arguments)
        for name, _ in list(module.named_parameters()):
            path, _, attribute = name.rpartition(".")
            module.get_submodule(path)._parameters[attribute] = self.parameters[prefix + name]
        return module


def twin(module: Module) -> Module:
    """A tree of modules of its own around the same tensors, which take no gradients here."""
    aliases: dict[int, nn.Parameter] = {}

    def alias(parameter: nn.Parameter) -> nn.Parameter:
        return aliases.setdefault(id(parameter), nn.Parameter(parameter.detach(), requires_grad=False))

    def copied(part: nn.Module) -> nn.Module:
        result = copy.copy(part)
        result._parameters = {name: own if own is None else alias(own) for name, own in part._parameters.items()}
        result._buffers = dict(part._buffers)
        result._modules = {name: own if own is None else copied(own) for name, own in part._modules.items()}
        return result

    return copied(module)  # type: ignore[return-value]


def fold_parts(module: nn.Module) -> nn.Module:
    """The module with every part of it that has a method `folded` replaced by what that gives, inner ones first."""
    for name, child in module._modules.items():
        module._modules[name] = child if child is None else fold_parts(child)
    return module.folded() if hasattr(type(module), "folded") else module  # type: ignore[operator]


@dataclass(frozen=True)
class ComposedCodec(TextCodec):
    """A `Codec` for one base and at most one pack a side.

    Rows of a matrix: those of the base's or the pack's text, then the own codes of whichever pack brings some. How sentences
    are arranged is the base's affair, also where a pack's text is of another kind.
    """

    source: Pack | None = None
    target: Pack | None = None

    def text_of(self, side: Side) -> Text:
        pack = self._pack(side)
        return self.base.side(side) if pack is None else pack.tokenizer

    def code_rows(self, language: str, side: Side, matrix: Side) -> list[int]:
        """A row of the matrix, or of those that the language's pack puts after them; none where the pack goes without."""
        pack, text = self._pack(side), self.text_of(matrix)
        if pack is None:
            return [text.code(language)]
        return pack.recipe.code.rows_of(text, pack.languages.index(language), self.base.layout.placement(side))

    def check(self, language: str, side: Side) -> None:
        """A pack's matrix has rows for the text of its own languages only."""
        pack = self._pack(side)
        known = pack.languages if pack else languages_of(self.base, side)
        if language not in known:
            raise LanguageError(
                f"language {language!r} is not known here as {side}{nearest(language, known) or ';'} known: "
                f"{', '.join(known)}. Compose the base with a pack for it, or with none where it is one of the base's."
            )

    def _pack(self, side: Side) -> Pack | None:
        return self.source if side == "source" else self.target
