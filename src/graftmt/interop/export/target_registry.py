"""Which targets and forms of text there are: the files of `targets/` and `texts/`, and what other packages register. Layer 5.

Another package registers a target, or the form of its kind of text, in its pyproject.toml:

    [project.entry-points."graftmt.export"]
    onnx = "graftmt_onnx:Onnx"
"""

from __future__ import annotations

import inspect
import logging
import pkgutil
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from graftmt.errors import ConfigError, ExportError, nearest
from graftmt.interop.export.target import ExportTarget
from graftmt.interop.export.text_form import TextForm

GROUP = "graftmt.export"


def target_names() -> tuple[str, ...]:
    return tuple(target.name for target in _targets())


def export_target(name: str) -> ExportTarget:
    """The target of this name; an unknown one is an error that names the known."""
    for target in _targets():
        if target.name == name:
            return target
    raise ConfigError(f"there is no format {name!r}{nearest(name, target_names()) or ';'} known: {', '.join(target_names())}.")


def text_form(kind: str) -> TextForm:
    """How texts of a kind leave graftmt; a kind that cannot is an error."""
    forms: list[TextForm] = [one() for one in _registered() if issubclass(one, TextForm)]
    for form in forms:
        if form.kind == kind:
            return form
    raise ExportError(
        f"text of kind {kind!r} cannot be exported: no form of it outside graftmt is known. Kinds that have one: "
        f"{', '.join(form.kind for form in forms)}. Translate with graftmt, or register a TextForm for it."
    )


def _targets() -> list[ExportTarget]:
    return [one() for one in _registered() if issubclass(one, ExportTarget)]


@cache
def _registered() -> tuple[type[Any], ...]:
    """All classes of both sorts: ours, then those of other packages."""
    from graftmt.interop.export import targets, texts

    files = ((package, info.name) for package in (targets, texts) for info in pkgutil.iter_modules(package.__path__))
    modules = [import_module(f"{package.__name__}.{name}") for package, name in files]
    found = [
        value for module in modules for value in vars(module).values() if _is_one(value) and value.__module__ == module.__name__
    ]
    for entry_point in entry_points(group=GROUP):
        try:
            value = entry_point.load()
        except Exception as error:  # a package that does not work must not keep the others from working
            reason = f"{type(error).__name__}: {error}"
            logging.getLogger(__name__).warning("the export %r cannot be used (%s).", entry_point.name, reason)
        else:
            found += [value] if _is_one(value) else []
    return tuple(found)


def _is_one(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, ExportTarget | TextForm) and not inspect.isabstract(value)
