"""Options that are declared once, as fields of a dataclass, and read by Python and by the command line. Layer 0.

A field's docstring is its help. `option` and `argument` say how the command line spells it; a plain field is `--its-name`.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from dataclasses import MISSING, dataclass
from functools import cache
from itertools import pairwise
from typing import Any

KEY = "graftmt.option"
"""Under which a field's metadata has its `Spelling`."""


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """How an option is written on the command line."""

    flags: tuple[str, ...] = ()
    """Empty: made from the field's name."""
    positional: bool = False
    commas: bool = False
    """Several values may come in one text, with commas between them, and not by repeating the option alone."""
    group: str = ""
    """The heading that `--help` shows it under."""
    metavar: str | None = None
    hidden: bool = False
    """`--help` does not show it."""
    least: float | None = None
    most: float | None = None


def option(
    *flags: str,
    default: Any = MISSING,
    group: str = "",
    metavar: str | None = None,
    commas: bool = False,
    least: float | None = None,
    most: float | None = None,
) -> Any:
    """A field that is an option with these flags, such as `--with`; without a default it has to be given."""
    spelling = Spelling(flags=flags, group=group, metavar=metavar, commas=commas, least=least, most=most)
    return dataclasses.field(default=default, metadata={KEY: spelling})


def argument(*, default: Any = MISSING, commas: bool = False, metavar: str | None = None, hidden: bool = False) -> Any:
    """A field that is a positional argument."""
    spelling = Spelling(positional=True, commas=commas, metavar=metavar, hidden=hidden)
    return dataclasses.field(default=default, metadata={KEY: spelling})


def not_an_option(default: Any) -> Any:
    """A field that Python alone sets; the command line leaves its default."""
    return dataclasses.field(default=default, metadata={KEY: None})


def spelling_of(field: dataclasses.Field[Any]) -> Spelling | None:
    """None for what is no option."""
    found = field.metadata.get(KEY, Spelling())
    assert found is None or isinstance(found, Spelling)
    return found


@cache
def field_docs(kind: type) -> dict[str, str]:
    """Field → the docstring below it, on one line; of the classes it derives from too."""
    found: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        if not dataclasses.is_dataclass(owner):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
        body = tree.body[0].body  # type: ignore[attr-defined]
        for statement, following in pairwise(body):
            text = _text_of(following)
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and text is not None:
                found[statement.target.id] = " ".join(text.split())
    return found


def _text_of(statement: ast.stmt) -> str | None:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def items(*texts: str) -> list[str]:
    """What stands between the commas of one text or several."""
    return [item.strip() for text in texts for item in text.split(",") if item.strip()]
