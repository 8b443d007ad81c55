"""JSON documents: graftmt's own, and those that anyone may have made, such as of a base or a pack. Layer 0.

The fields of the latter are checked against their declared types.
"""

from __future__ import annotations

import json
import re
import reprlib
import types
from collections import Counter
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from graftmt.errors import CheckpointError, GraftError
from graftmt.files import LARGEST_TEXT, check_regular, read_limited, write_text

LARGEST_JSON = 32 * 2**20
"""Bytes of graftmt's own files: work, results, alignments."""
MOST_VALUES = 2_000_000
"""In one JSON text, counted by commas and brackets."""
LARGEST_DOCUMENT = LARGEST_TEXT
MOST_IN_DOCUMENT = 400_000
"""In one that anyone may have made: each becomes an object of some 60 bytes."""
LONGEST_MESSAGE = 1_000
"""Characters that are shown of an error which may repeat a text from a document."""
_LARGEST_INTEGER = 2**63
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def read_json(path: Path, what: str) -> dict[str, Any]:
    """A JSON object of graftmt's own, or an error that says which file is missing or damaged; `what` names it for a person."""
    if not path.is_dir():
        check_regular(path)
    try:
        value = parse_json(read_limited(path, LARGEST_JSON))
    except FileNotFoundError:
        raise GraftError(f"{what}: there is no file {path}; check the path.") from None
    except ValueError as error:
        raise GraftError(f"{what}: {path} is damaged ({error}); restore it from a copy or make it again.") from None
    except OSError as error:
        raise GraftError(f"{what}: cannot read {path}: {error.strerror}.") from None
    if not isinstance(value, dict):
        raise GraftError(f"{what}: {path} holds a {type(value).__name__} where an object was expected.")
    return value


def parse_json(content: bytes, *, most: int = MOST_VALUES, unique: bool = False) -> Any:
    """The value of a JSON text from anywhere. Whatever is wrong with it is a ValueError with a short message.

    `most`: values that it may have. `unique`: an object that has a key twice is an error too.
    """
    try:
        if sum(map(content.count, (b",", b"[", b"{"))) > most:
            raise ValueError(f"more than {most:,} values")
        value = json.loads(content, object_pairs_hook=_unique if unique else None)
        if _SURROGATE.search(content):  # half of a character: Python reads it, and fails wherever it is written
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair, which is no text") from None
    except RecursionError:
        raise ValueError("nested too deep") from None
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {repeated!r:.60} stands there twice")
    return found


def read_document(path: Path, what: str) -> dict[str, Any]:
    """The same for an object that anyone may have made, which may take less memory."""
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
    if sum(map(content.count, (b",", b"[", b"{"))) > MOST_IN_DOCUMENT:
        raise ValueError(f"it has more than {MOST_IN_DOCUMENT:,} values")
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
