"""What `--help` looks like: a paragraph, examples, then the options in groups, one line each where they fit."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

WIDTH = 80
_VERBATIM = "\b"
"""A paragraph that begins so keeps its line breaks (click)."""


LAST = ("Running", "Folders", "Options")
"""Groups that come after the others. What has none (--json, --quiet, --help) is under the last of them."""
_KINDS = {int: "N", float: "X", Path: "PATH", str: "TEXT"}
"""What stands for a value whose option names nothing better."""
LONGEST_OPTION = 24
"""Columns for an option and its value; the help of a longer one begins on the next line."""


class GroupedCommand(TyperCommand):
    """A command whose help shows options under the headings that they were declared with."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if getattr(parameter, "hidden", False):
                continue
            positional = parameter.param_type_name == "argument"
            heading = "Arguments" if positional else getattr(parameter, "rich_help_panel", None) or "Options"
            groups.setdefault(heading, []).append((spelled(parameter), explained(parameter)))
        for heading in sorted(groups, key=lambda name: (name != "Arguments", LAST.index(name) if name in LAST else -1)):
            with formatter.section(heading):
                formatter.write_dl(groups[heading], col_max=LONGEST_OPTION)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        parameters = [
            one for one in self.get_params(ctx) if one.param_type_name == "argument" and not getattr(one, "hidden", False)
        ]
        return ["[OPTIONS]", *(value_of(one) if one.required else f"[{value_of(one)}]" for one in parameters)]


def value_of(parameter: Any) -> str:
    """What stands for the parameter's value: LANG, N, cpu|cuda."""
    name = parameter.metavar or parameter.name.upper()
    return f"{name}..." if parameter.nargs == -1 and not name.endswith("...") else name


def spelled(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return value_of(parameter)
    flags = ", ".join(sorted(parameter.opts, key=len))
    if parameter.secondary_opts:
        return f"{flags} / {', '.join(parameter.secondary_opts)}"
    return flags if parameter.is_flag else f"{flags} {value_of(parameter)}"


def explained(parameter: Any) -> str:
    """The option's help, and its default where the help does not name one."""
    text = parameter.help or ""
    if ". " not in text:
        text = text.removesuffix(".")
    if parameter.required and parameter.param_type_name != "argument":
        return f"{text} (required)"
    default = parameter.default
    # `is`: 0 is a default like others; a missing one is a value of click's own.
    shown = isinstance(default, str | int | float | Path) and default is not False and default != ""
    if not shown or "default" in text.lower() or not getattr(parameter, "show_default", True):
        return text
    default = "yes" if default is True else f"{default:g}" if isinstance(default, float) else default
    return f"{text[:-1]}; default: {default})" if text.endswith(")") else f"{text} (default: {default})"


def set_help(commands: typer.Typer) -> None:
    """Docstrings as help, for a group of commands and the groups in it."""
    commands.rich_markup_mode = None
    for command in commands.registered_commands:
        assert command.callback is not None
        command.cls = GroupedCommand
        command.help = help_text(command.help or command.callback.__doc__ or "")
        command.short_help = command.short_help or first_sentence(command.help)
        name_values(command.callback)
    for group in commands.registered_groups:
        assert group.typer_instance is not None
        set_help(group.typer_instance)


def name_values(function: Callable[..., Any]) -> None:
    """Each option that does not say what stands for its value gets a short word for its kind."""
    parameters = inspect.signature(function, eval_str=True).parameters
    # typer reads them later; as texts, they would become other objects then
    function.__annotations__ |= {name: parameter.annotation for name, parameter in parameters.items()}
    for parameter in parameters.values():
        kind, *infos = get_args(parameter.annotation) if get_origin(parameter.annotation) is Annotated else (None,)
        for info in infos:
            if isinstance(info, OptionInfo) and info.metavar is None:
                info.metavar = _word_for(kind)


def _word_for(kind: Any) -> str | None:
    """None for a flag. `list[str] | None` is as `str`."""
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    inner = next((one for one in get_args(kind) if one is not type(None)), None)
    return _KINDS.get(kind) if inner is None else _word_for(inner)


def first_sentence(text: str) -> str:
    """A command's line in the help of its group: whole, where typer would cut it to fit."""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=[.])\s", paragraph, maxsplit=1)[0]


def help_text(docstring: str) -> str:
    """Paragraphs flow; lines that are indented, such as examples, stay as they are."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(docstring))
    return "\n\n".join(_VERBATIM + "\n" + one if re.search(r"(?m)^  ", one) else one for one in paragraphs)
