"""Options, each declared once: commands are made from the fields of dataclasses; what else several commands share is here."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import types
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from graftmt.errors import ConfigError
from graftmt.options import Spelling, field_docs, items, spelling_of
from graftmt.progress import silence

if TYPE_CHECKING:
    from graftmt.translation_options import ModelOptions
    from graftmt.translator import Translator


def finite(value: float | None) -> float | None:
    """For options that are numbers: `nan` passes every comparison, and decides nothing."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a number that can be meant.")
    return value


BaseFolder = Annotated[Path, typer.Option("--base", "-b", help="Folder of the base")]
Beam = Annotated[int, typer.Option("--beam", help="Hypotheses kept; 1: greedy, faster")]
Device = Annotated[str, typer.Option("--device", metavar="NAME", help="cpu, cuda, cuda:1 or auto")]
Packs = Annotated[
    list[str] | None, typer.Option("--packs", "-p", metavar="PACKS", help="Packs, with commas; NAME=PATH names one")
]
Tokenize = Annotated[
    str | None,
    typer.Option("--tokenize", metavar="NAME", help="BLEU's tokeniser (default: by language)"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts")]


def silenced(context: typer.Context, quiet: bool) -> bool:
    """--quiet: nobody hears what the command says on the way."""
    if quiet:
        context.with_resource(silence())
    return quiet


Quiet = Annotated[bool, typer.Option("--quiet", "-q", callback=silenced, help="No progress messages")]
Minutes = Annotated[
    float | None,
    typer.Option("--minutes", metavar="N", min=0, callback=finite, help="Stop cleanly after N minutes; rerun to resume"),
]


def numbers(text: str, option: str) -> list[int]:
    """A list with commas in which each item is a number from 0; `option` is where it was given."""
    for item in (found := items(text)):
        if not (item.isascii() and item.isdecimal() and len(item) < 10):
            raise ConfigError(f"{option} {text!r}: {item!r} is no number; write numbers with commas, such as 2,3.")
    return list(map(int, found))


def open_translator(options: ModelOptions) -> Translator:
    """Base and packs as they were named, run by the engine that was named; `options.device` is chosen already."""
    from graftmt.interop.engine_registry import open_translator
    from graftmt.packs.named_packs import parse_packs

    packs = parse_packs(options.packs)
    return open_translator(options.engine, options.base, packs, device=options.device, dtype=options.dtype)


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
