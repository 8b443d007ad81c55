"""Compositions: a base, perhaps a source pack, perhaps a target pack → a model for the directions they open. Layer 3.

A composition is a value. It shares the base's tensors and the packs', takes modules of its own to hold them, and
changes nothing in either: any number of compositions of one resident base can work side by side.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TypeVar

from torch import nn

from graftmt.base import Base
from graftmt.errors import CheckpointError, ConfigError, GraftError, LanguageError
from graftmt.model import Transformer
from graftmt.packs.component import Side
from graftmt.packs.composed_codec import ComposedCodec
from graftmt.packs.installation import Installation
from graftmt.packs.pack import Pack, codes_of
from graftmt.text import TextCodec, languages_of

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
