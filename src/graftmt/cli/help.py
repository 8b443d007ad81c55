"""What `--help` looks like: a paragraph, examples, then the options in groups, one line each where they fit."""

from __future__ import annotations

import inspect
import re
from typing import Any

import typer
from typer.core import TyperCommand

WIDTH = 80
_VERBATIM = "\b"
"""A paragraph that begins so keeps its line breaks (click)."""


class GroupedCommand(TyperCommand):
    """A command whose help shows options under the headings that they were declared with."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            positional = parameter.param_type_name == "argument"
            heading = "Arguments" if positional else getattr(parameter, "rich_help_panel", None) or "Options"
            groups.setdefault(heading, []).append(record)
        # What has no group of its own (--json, --quiet, --help) comes last.
        for heading in sorted(groups, key=lambda name: (name != "Arguments", name == "Options")):
            with formatter.section(heading):
                formatter.write_dl(groups[heading], col_max=24)


def set_help(commands: typer.Typer) -> None:
    """Docstrings as help, for a group of commands and the groups in it."""
    commands.rich_markup_mode = None
    for command in commands.registered_commands:
        assert command.callback is not None
        command.cls = GroupedCommand
        command.help = help_text(command.help or command.callback.__doc__ or "")
    for group in commands.registered_groups:
        assert group.typer_instance is not None
        set_help(group.typer_instance)


def help_text(docstring: str) -> str:
    """Paragraphs flow; lines that are indented, such as examples, stay as they are."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(docstring))
    return "\n\n".join(_VERBATIM + "\n" + one if re.search(r"(?m)^  ", one) else one for one in paragraphs)
