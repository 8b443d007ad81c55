"""The reader of the paper's notation for recipes (Table 29), whose errors say where and what may stand there. Layer 3.

Components joined by `+`, in any order; each kind reads its own spellings.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace

from graftmt.errors import ConfigError, nearest
from graftmt.packs.component import SCOPED, Component, Written
from graftmt.packs.recipe import Recipe
from graftmt.packs.registry import kinds

_NUMBER = re.compile(r"\(\s*(?P<bracketed>[0-9]{1,9})\s*\)|(?P<bare>[0-9]{1,9})")


class UnknownComponentError(ConfigError):
    """A recipe names a component of no kind that is installed."""

    def __init__(self, message: str, component: str) -> None:
        super().__init__(message)
        self.component = component


def papers_number(text: str) -> int | None:
    """12 of `12` and `(12)`, as the paper calls its models; None of anything else. What that model is, is not known here."""
    match = _NUMBER.fullmatch(text.strip())
    return int(match["bracketed"] or match["bare"]) if match else None


def read_recipe(text: str) -> Recipe:
    """What `Recipe.parse` gives."""
    components: list[Component] = []
    for written in _split(text):
        for component in _read(written):
            for earlier in components:
                if clash := component.clash(earlier):
                    raise written.error(f"{written.text!r} {clash}")
            components.append(component)
    present = {type(component) for component in components}
    for kind in kinds():
        if kind.missing and kind not in present:
            raise Written(text, text).error(kind.missing)
    return Recipe(tuple(components))


def expected() -> str:
    """What a recipe may have, as an error says it."""
    forms = [description.form for kind in kinds() for description in kind.descriptions]
    return f"{', '.join(forms)}; also with dec- for enc-, and first, last or 1,2,3 for all"


def _split(text: str) -> list[Written]:
    """The components as they are written, each with the one that follows it."""
    found, start = [], 0
    for part in text.split("+"):
        own = part.strip()
        if not own:
            raise Written(text, "", start).error(f"a component is missing; expected {expected()}.")
        where = start + part.index(own)
        head, at, scope = own.partition("@")
        if at and at + scope.strip().lower() != SCOPED:
            what = f"'@{scope.strip()}' is no scope; write '{SCOPED}', for the directions that were trained."
            raise Written(text, own, where).error(what, len(head))
        found.append(Written(text, head.rstrip(), where, bool(at)))
        start += len(part) + 1
    for position in range(len(found) - 2, -1, -1):
        found[position] = replace(found[position], following=found[position + 1])
    return found


def _read(written: Written) -> list[Component]:
    for kind in kinds():
        found = kind.read(written)
        if found is None:
            continue
        if written.scoped and not all(component.scoped for component in found):
            what = f"{written.text!r} cannot be for trained directions only; '{SCOPED}' stands after {_with_scope()}."
            raise written.error(what)
        return list(found)
    if (number := papers_number(written.text)) is not None:
        what = f"{written.text!r} is a number; write the components of that model, which `graftmt recipes --id {number}` shows."
        raise written.error(what)
    what = f"{written.text!r} is no component{_suggestion(written.text)} Expected {expected()}."
    raise UnknownComponentError(written.message(what), written.text)


def _with_scope() -> str:
    """One way to write each kind that may have a scope."""
    scoped = [kind for kind in kinds() if is_dataclass(kind) and "scoped" in {field.name for field in fields(kind)}]
    return ", ".join(kind.descriptions[0].form for kind in scoped if kind.descriptions)


def _suggestion(text: str) -> str:
    """The nearest component, with the dimension that stands in the text."""
    head, bracket, tail = text.lower().partition("(")
    meant = head.strip() + bracket + tail
    return nearest(meant, [form for kind in kinds() for form in kind.suggestions(meant)]) or "."
