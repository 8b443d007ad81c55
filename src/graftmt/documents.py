"""JSON documents that anyone may have made, such as those of a base or a pack, with fields checked against their declared
types. Layer 0."""

from __future__ import annotations

import reprlib
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from graftmt.errors import CheckpointError, GraftError
from graftmt.files import parse_json
from graftmt.reading import LARGEST_TEXT, read_limited

LARGEST_DOCUMENT = LARGEST_TEXT
MOST_VALUES = 400_000
"""In a JSON document, counted by its commas and brackets: each becomes an object of some 60 bytes."""
LONGEST_MESSAGE = 1_000
"""Characters that are shown of an error which may repeat a text from a document."""
_LARGEST_INTEGER = 2**63


def read_document(path: Path, what: str) -> dict[str, Any]:
    """The JSON object in a file, or an error that says which file is missing or damaged; `what` names it for a person."""
    try:
        return parse_document(read_limited(path, LARGEST_DOCUMENT))
    except FileNotFoundError:
        raise GraftError(f"{what}: there is no file {path}; check the path.") from None
    except ValueError as error:
        raise CheckpointError(f"{what}: {path} is damaged ({error}). Restore it from a copy.") from None
    except OSError as error:
        raise CheckpointError(f"{what}: cannot read {path}: {error.strerror}.") from None


def parse_document(content: bytes) -> dict[str, Any]:
    """The JSON object that a text holds. Whatever is wrong with it is a ValueError, also that it would take much memory."""
    if len(content) > LARGEST_DOCUMENT:
        raise ValueError(f"it has more than {LARGEST_DOCUMENT:,} bytes")
    if sum(map(content.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES:,} values")
    value = parse_json(content)
    if not isinstance(value, dict):
        raise ValueError(f"it holds a {type(value).__name__} where an object was expected")
    return value


def check_fields(value: Any, kind: Any, where: str = "") -> None:
    """A ValueError that names the field where a value is not of its declared kind.

    `kind` is a TypedDict, or a type that its fields may have: str, int, float, bool, Any, Literal, list[X], dict[str, X] and
    X | None. Keys that a TypedDict does not declare may hold anything.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return
    if origin in (Union, types.UnionType):
        if value is not None or type(None) not in inner:
            check_fields(value, next(one for one in inner if one is not type(None)), where)
    elif is_typeddict(kind):
        _expect(isinstance(value, dict), value, "an object", where)
        hints = get_type_hints(kind)
        if missing := [name for name in hints if name in kind.__required_keys__ - value.keys()]:
            raise ValueError(f"{_join(where, ', '.join(missing))} missing")
        for name, hint in hints.items():
            if name in value:
                check_fields(value[name], hint, _join(where, name))
    elif origin is list:
        _expect(isinstance(value, list), value, "a list", where)
        for index, item in enumerate(value):
            check_fields(item, inner[0], _join(where, str(index)))
    elif origin is dict:
        _expect(isinstance(value, dict), value, "an object", where)
        for key, item in value.items():
            check_fields(item, inner[1], _join(where, reprlib.repr(key)[1:-1]))
    elif origin is Literal:
        _expect(isinstance(value, str) and value in inner, value, f"one of {', '.join(inner)}", where)
    else:
        _expect(_is_scalar(value, kind), value, {str: "text", bool: "true or false"}.get(kind, "a number"), where)


def _is_scalar(value: Any, kind: type) -> bool:
    """JSON writes 1.0 as 1 at times. A number must be one that arithmetic and formatting can take."""
    if kind is float:
        return isinstance(value, float) or _is_scalar(value, int)
    if kind is int:
        return type(value) is int and abs(value) < _LARGEST_INTEGER
    return isinstance(value, kind)


def _expect(fine: bool, value: Any, expected: str, where: str) -> None:
    if not fine:
        raise ValueError(f"{where or 'it'} is {reprlib.repr(value)}; expected {expected}")


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
