"""Which kinds of components there are: the files of `components/`, and what other packages register. Layer 3.

Another package registers a kind in its pyproject.toml:

    [project.entry-points."graftmt.components"]
    scale = "graftmt_scale:Scale"
"""

from __future__ import annotations

import inspect
import logging
import pkgutil
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from graftmt.packs.component import Component

if TYPE_CHECKING:
    from graftmt.packs.recipe import Recipe

GROUP = "graftmt.components"

Kind = type[Component]


def kinds() -> tuple[Kind, ...]:
    """All kinds, ours before those of other packages, each in the order of a recipe's canonical form."""
    return tuple(_packages())


def package_of(kind: Kind) -> str | None:
    """The package that has registered a kind; None for ours."""
    return _packages().get(kind)


def packages_of(recipe: Recipe) -> list[str]:
    """The packages, other than this one, without which a recipe cannot be read."""
    found = (package_of(type(component)) for component in recipe.components)
    return sorted({package for package in found if package is not None})


@lru_cache(maxsize=1)
def _packages() -> dict[Kind, str | None]:
    """Each kind and its package."""
    ours: dict[Kind, str | None] = dict.fromkeys(_own_kinds())
    theirs: dict[Kind, str | None] = {}
    for entry_point in entry_points(group=GROUP):
        package = entry_point.dist.name if entry_point.dist is not None else entry_point.module
        kind = _loaded(entry_point, package)
        if kind is not None and kind not in ours:
            theirs[kind] = package
    return {kind: package for known in (ours, theirs) for kind, package in sorted(known.items(), key=_place)}


def _place(item: tuple[Kind, str | None]) -> tuple[int, str, str]:
    kind, _ = item
    return kind.position, kind.__module__, kind.__name__


def _own_kinds() -> list[Kind]:
    from graftmt.packs import components

    modules = [import_module(f"{components.__name__}.{found.name}") for found in pkgutil.iter_modules(components.__path__)]
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if inspect.isclass(kind)
        and issubclass(kind, Component)
        and not inspect.isabstract(kind)
        and kind.__module__ == module.__name__
    ]


def _loaded(entry_point: EntryPoint, package: str) -> Kind | None:
    """A package that does not work must not keep the others from working: it is left out, and a warning says so."""
    try:
        kind = entry_point.load()
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    else:
        if inspect.isclass(kind) and issubclass(kind, Component) and not inspect.isabstract(kind):
            return kind
        problem = f"{entry_point.value} is no kind of component, a subclass of graftmt.packs.component.Component"
    logging.getLogger(__name__).warning(
        "the component %r of the package %s cannot be used (%s); install another version of it, or remove it.",
        *(entry_point.name, package, problem),
    )
    return None
