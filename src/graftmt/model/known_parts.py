"""Which classes of modules the fast ways of training and decoding know; all others run as they are. Layer 1.

A fast way takes weights out of modules, puts other modules in their places or records what they do. That is right for a class
whose `forward` it knows, and wrong, without an error, for a subclass with one of its own. So the class itself must be known.
"""

from __future__ import annotations

import logging
from typing import TypeVar

from torch import nn

Kind = TypeVar("Kind", bound=type[nn.Module])

_KNOWN: set[type[nn.Module]] = {nn.Linear, nn.LayerNorm, nn.ModuleList}
_NOTICED: set[tuple[str, type[nn.Module]]] = set()


def known_part(kind: Kind) -> Kind:
    """Marks a class, without its subclasses, for all fast ways.

    It promises that `forward` and `step` use child modules by calling them alone, so that each may be replaced by one with the
    same output; that they keep no state and never look at values on the CPU, so that they can be recorded; and that masks are
    passed on as they come.
    """
    _KNOWN.add(kind)
    return kind


def is_known(module: nn.Module) -> bool:
    """Of the module alone, not of its children."""
    return type(module) in _KNOWN


def all_known(way: str, *modules: nn.Module | None) -> bool:
    """Whether these modules and all that they consist of are known; where not, a notice says so once."""
    unknown = next((part for module in modules if module is not None for part in module.modules() if not is_known(part)), None)
    if unknown is not None:
        notice(way, unknown)
    return unknown is None


def notice(way: str, module: nn.Module) -> None:
    """Says, once in a process, which class of modules is not done in a fast way."""
    kind = type(module)
    if (way, kind) not in _NOTICED:
        _NOTICED.add((way, kind))
        name = f"{kind.__module__}.{kind.__qualname__}"
        logging.getLogger("graftmt").warning("%s: modules of the class %s are not known here and run as they are.", way, name)
