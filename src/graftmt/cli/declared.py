"""Commands made from dataclasses of options: names, kinds, defaults and help are read from the fields."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import typer

from graftmt.cli.common import finite
from graftmt.options import Spelling, field_docs, spelling_of

Options = TypeVar("Options")
Rest = ParamSpec("Rest")


def takes(kind: type[Options]) -> Callable[[Callable[Concatenate[Options, Rest], None]], Callable[..., None]]:
    """A decorator for commands whose first parameter is an instance of `kind`; the others stay options of their own.

    >>> @takes(AddOptions)
    ... def add(options: AddOptions, as_json: AsJson = False) -> None: ...
    """

    def decorate(function: Callable[Concatenate[Options, Rest], None]) -> Callable[..., None]:
        fields = [field for field in dataclasses.fields(kind) if field.init]  # type: ignore[arg-type]
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]

        @functools.wraps(function)
        def command(**values: Any) -> None:
            given = {field.name: _value(field, values.pop(field.name)) for field in fields}
            function(kind(**given), **values)  # type: ignore[call-arg]

        hints, docs = get_type_hints(kind), field_docs(kind)  # type: ignore[arg-type]
        parameters = [_parameter(field, hints[field.name], docs[field.name]) for field in fields]
        parameters += [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        del command.__wrapped__  # typer would read its signature instead
        return command

    return decorate


def _parameter(field: dataclasses.Field[Any], hint: Any, doc: str) -> inspect.Parameter:
    """One field as typer reads a parameter."""
    spelling = spelling_of(field)
    default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
    inner, several, optional = _taken_apart(hint)
    if several:
        inner = str if spelling.commas else types.GenericAlias(list, (inner,))
        default = None if default == () else default
    if default is None or optional:
        inner = inner | None
    finite_only = finite if hint in (float, float | None) else None
    common: dict[str, Any] = {
        "callback": finite_only,
        "help": doc,
        "metavar": spelling.metavar,
        "min": spelling.least,
        "max": spelling.most,
    }
    if spelling.positional:
        info: Any = typer.Argument(**common)
    else:
        panel = spelling.group or None
        info = typer.Option(*_flags(field.name, inner, spelling), rich_help_panel=panel, **common)
    annotation = Annotated.__class_getitem__((inner, info))  # type: ignore[attr-defined]
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _flags(name: str, kind: Any, spelling: Spelling) -> tuple[str, ...]:
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


def _value(field: dataclasses.Field[Any], value: Any) -> Any:
    """What typer gave as what the field holds."""
    spelling = spelling_of(field)
    if value is None:
        return None if field.default is dataclasses.MISSING else field.default
    if spelling.commas and isinstance(value, str):
        return tuple(item.strip() for item in value.split(",") if item.strip())
    return tuple(value) if isinstance(value, list) else value
