"""What components put a pack's parameters into: the modules of one composition. Layer 3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import nn

from graftmt.errors import ConfigError
from graftmt.model import Transformer
from graftmt.packs.component import Stack
from graftmt.packs.parts import Setting

if TYPE_CHECKING:
    from graftmt.base import Base
    from graftmt.packs.pack import Pack

Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True, kw_only=True)
class Installation:
    """One pack on its way into a model. The model's modules are the composition's own and may be changed.

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
