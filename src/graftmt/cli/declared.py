"""Commands made from dataclasses of options: names, kinds, defaults and help are read from the fields."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from graftmt.cli.common import finite
from graftmt.options import Spelling, field_docs, items, spelling_of

Command = Callable[..., None]


def takes(*kinds: type) -> Callable[[Command], Command]:
    """A decorator for commands whose first parameters are instances of `kinds`; the others stay options of their own.

    >>> @takes(AddOptions)
    ... def add(options: AddOptions, as_json: AsJson = False) -> None: ...
    """

    def decorate(function: Command) -> Command:
        fields = {kind: _fields(kind) for kind in kinds}
        own = list(inspect.signature(function, eval_str=True).parameters.values())[len(kinds) :]

        @functools.wraps(function)
        def command(**values: Any) -> None:
            given = [
                kind(**{field.name: _value(field, spelling, values.pop(field.name)) for field, spelling in fields[kind]})
                for kind in kinds
            ]
            function(*given, **values)

        parameters = [parameter for kind in kinds for parameter in _parameters(kind)]
        parameters += [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        del command.__wrapped__  # typer would read its signature instead
        return command

    return decorate


def _fields(kind: type) -> list[tuple[dataclasses.Field[Any], Spelling]]:
    fields = [(field, spelling_of(field)) for field in dataclasses.fields(kind) if field.init]
    return [(field, spelling) for field, spelling in fields if spelling is not None]


def _parameters(kind: type) -> list[inspect.Parameter]:
    hints, docs = get_type_hints(kind), field_docs(kind)
    return [_parameter(field, spelling, hints[field.name], docs[field.name]) for field, spelling in _fields(kind)]


def _parameter(field: dataclasses.Field[Any], spelling: Spelling, hint: Any, doc: str) -> inspect.Parameter:
    """One field as typer reads a parameter."""
    default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
    inner, several, optional = _taken_apart(hint)
    if several:
        # Positional ones with commas are one text; options may be repeated too.
        inner = (
            str if spelling.commas and spelling.positional else types.GenericAlias(list, (str if spelling.commas else inner,))
        )
        default = default if default is inspect.Parameter.empty else None
    if default is None or optional:
        inner = inner | None
    finite_only = finite if hint in (float, float | None) else None
    common: dict[str, Any] = {
        "callback": finite_only,
        "help": doc,
        "metavar": spelling.metavar,
        "min": spelling.least,
        "max": spelling.most,
        "hidden": spelling.hidden,
    }
    if spelling.positional:
        info: Any = typer.Argument(**common)
    else:
        panel = spelling.group or None
        info = typer.Option(*_flags(field.name, spelling), rich_help_panel=panel, **common)
    annotation = Annotated.__class_getitem__((inner, info))  # type: ignore[attr-defined]
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _flags(name: str, spelling: Spelling) -> tuple[str, ...]:
    if spelling.flags:
        return spelling.flags
    return (f"--{name.replace('_', '-')}",)


def _taken_apart(hint: Any) -> tuple[Any, bool, bool]:
    """`tuple[str, ...] | None` → str, several, may be missing."""
    optional = False
    if get_origin(hint) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        optional = len(kinds) < len(get_args(hint))
        hint = kinds[0]
    if get_origin(hint) is tuple:
        return get_args(hint)[0], True, optional
    return hint, False, optional


def _value(field: dataclasses.Field[Any], spelling: Spelling, value: Any) -> Any:
    """What typer gave as what the field holds."""
    if value is None or value == []:
        return None if field.default is dataclasses.MISSING else field.default
    if spelling.commas:
        return tuple(items(*([value] if isinstance(value, str) else value)))
    return tuple(value) if isinstance(value, list) else value
