"""Which families of foreign models there are: the files of `families/`, and what other packages register. Layer 5.

Another package registers a family in its pyproject.toml:

    [project.entry-points."graftmt.families"]
    mine = "graftmt_mine:MyFamily"
"""

from __future__ import annotations

import inspect
import pkgutil
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points

from graftmt.errors import CheckpointError, ConfigError, nearest
from graftmt.interop.importing.family import Family, ForeignFolder
from graftmt.interop.importing.import_refusals import reason_to_refuse

GROUP = "graftmt.families"


@lru_cache(maxsize=1)
def families() -> dict[str, Family]:
    """All families by name, ours first."""
    from graftmt.interop.importing import families as ours

    modules = [import_module(f"{ours.__name__}.{found.name}") for found in pkgutil.iter_modules(ours.__path__)]
    kinds = [
        kind
        for module in modules
        for kind in vars(module).values()
        if inspect.isclass(kind)
        and issubclass(kind, Family)
        and not inspect.isabstract(kind)
        and kind.__module__ == module.__name__
    ]
    kinds += [entry_point.load() for entry_point in entry_points(group=GROUP)]
    return {kind.name: kind() for kind in kinds}


def family_of(folder: ForeignFolder, named: str | None = None) -> Family:
    """The family of a model: the one named, or the one that recognises it; others are refused with the reason."""
    known = families()
    if named is not None:
        if named not in known:
            raise ConfigError(f"--family {named!r}{nearest(named, known)} Known families: {', '.join(sorted(known))}.")
        return known[named]
    if reason := reason_to_refuse(folder):
        raise CheckpointError(f"{folder.path} cannot be imported: {reason}.")
    found = next((family for family in known.values() if family.recognises(folder)), None)
    if found is None:
        what = f"a model of type {folder.model_type!r:.60}" if folder.model_type else "no model whose type is known"
        titles = ", ".join(dict.fromkeys(family.title for family in known.values()))
        raise CheckpointError(f"{folder.path} has {what}; it cannot be imported. What can be: {titles}.")
    return found
