"""Structural damage to JSON and YAML: values of wrong types and sizes, names that lead elsewhere, keys missing or twice."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import yaml

Place = tuple[Any, ...]
"""Keys and indexes that lead to a node."""
RAW = "@@raw@@"
"""Stands for a text that is no value of Python's, until the document is written."""
EVIL = "@@evil@@"
"""Stands for an absolute path that nothing may be written to."""
DEEP = 100_000

NUMBERS = (
    *(
        "0",
        "-1",
        "1",
        "2",
        "-0.0",
        "0.5",
        "1e308",
        "1e400",
        "NaN",
        "Infinity",
        "-Infinity",
        "2147483648",
        "9223372036854775808",
    ),
    *("18446744073709551616", "200000000", "1" + "0" * 30, "9" * 5000, "-" + "9" * 5000),
)
TEXTS = (
    *('""', '" "', '"x"', '"../../evil"', f'"{EVIL}"', '".."', '"."', '"a/b"', '"~"', '"el"', '"en"', '"cpu"', '"null"'),
    *('"\\ud800"', '"\\udfff\\ud800"', '"\\u0000"', '"\\u001b[31mred"', '"a\\nb"', '"[/x]"', '"[bold]"', '"%s{0}{x}"'),
    *('"embed + enc-adapters-all(99999999999)"', '"embed + non-tied + dec-adapters-all(8)"', '"' + "x" * 100_000 + '"'),
    *('"' + "0123456789abcdef" * 4 + '"', '"\\u009b31mred"', '"\\u007f"', '"\\u202etxt.exe"'),
)
OTHERS = (
    *(
        "null",
        "true",
        "false",
        "[]",
        "{}",
        "[[]]",
        "[null]",
        "[1, 2]",
        '["en", "en"]',
        '["en", 3, null]',
        '{"a": 1}',
        '{"": {}}',
    ),
    *("[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP, "[" + "0," * 100_000 + "0]"),
)
WHOLE = (
    *(
        b"",
        b" ",
        b"\n",
        b"null",
        b"[]",
        b"{}",
        b'"text"',
        b"1",
        b"NaN",
        b"\xef\xbb\xbf{}",
        b"\xff\xfe{\0}\0",
        b"{",
        b'{"a":',
        b"\0" * 100,
    ),
    *(
        b"[" * DEEP,
        b"[" * DEEP + b"]" * DEEP,
        b'{"a":' * DEEP,
        b'{"kind": "base"}',
        b'{"kind": "pack", "format": 1}',
        b"\xff" * 20,
    ),
)
YAML_TEXTS = (
    *(
        "!!python/object/apply:os.system [true]",
        "&a [*a]",
        "*missing",
        "!!binary x",
        "0x",
        "1_000",
        "1:30:00",
        "2001-01-01",
        "? {}",
        "{? [a] : b}",
    ),
    *(
        "!!timestamp 2001-99-99",
        "!!int x",
        "!!float .nan",
        ".inf",
        "~",
        "on",
        "!x y",
        '"\\ud800"',
        '"\\x1b[31m"',
        "{a: 1, a: 2}",
        "<<: 1",
    ),
)


def mutate_json(chance: Random, data: bytes, evil: str) -> tuple[str, bytes]:
    """A document with one thing wrong, and what; `evil` is an absolute path that nothing may be written to."""
    if chance.random() < 0.08:
        whole = chance.choice(WHOLE)
        return f"whole document {_short(whole.decode(errors='replace'))}", whole
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return "not JSON: emptied", b""
    what, changed, raw = change(chance, document, evil)
    text = json.dumps(changed, ensure_ascii=chance.random() < 0.5, indent=2)
    return what, (text.replace(json.dumps(RAW), raw, 1) + "\n").encode(errors="surrogatepass")


def mutate_lines(chance: Random, data: bytes, evil: str) -> tuple[str, bytes]:
    """The same for one line of a file with a document a line."""
    lines = data.splitlines()
    if not lines:
        return mutate_json(chance, data, evil)
    number = chance.randrange(len(lines))
    what, changed = mutate_json(chance, lines[number], evil)
    lines[number] = changed.replace(b"\n", b" ")
    return f"line {number + 1}: {what}", b"\n".join(lines) + b"\n"


def mutate_yaml(chance: Random, data: bytes, evil: str) -> tuple[str, bytes]:
    """The same for YAML, which JSON's values are values of too."""
    if chance.random() < 0.08:
        whole = chance.choice((*WHOLE, *(text.encode() for text in YAML_TEXTS)))
        return f"whole document {_short(whole.decode(errors='replace'))}", whole
    document = yaml.safe_load(data)
    what, changed, raw = change(chance, document, evil)
    if raw and chance.random() < 0.4:
        raw = chance.choice(YAML_TEXTS)
        what += f", then {raw}"
    text = json.dumps(changed, indent=2) if chance.random() < 0.5 else yaml.safe_dump(changed)
    return what, text.replace(json.dumps(RAW), RAW).replace(f"'{RAW}'", RAW).replace(RAW, raw, 1).encode()


def change(chance: Random, document: Any, evil: str) -> tuple[str, Any, str]:
    """What was done, the changed document, and the text that goes where RAW stands in it."""
    document = copy.deepcopy(document)
    places = list(_places(document))
    place = chance.choice(places)
    if not place:
        return "whole document replaced", RAW, chance.choice(OTHERS)
    parent, key = _parent(document, place), place[-1]
    name = ".".join(map(str, place))
    kind = chance.choice(("replace",) * 8 + ("remove", "add", "twice", "other", "nudge", "rename", "wrap"))
    if kind == "remove":
        del parent[key]
        return f"{name} removed", document, ""
    if kind == "add":
        extra = {"unknown": RAW} if isinstance(parent, dict) else RAW
        parent.update(extra) if isinstance(parent, dict) else parent.append(extra)
        return f"one more beside {name}", document, chance.choice(OTHERS[:10] + NUMBERS + TEXTS).replace(EVIL, evil)
    if kind == "twice" and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[key]))
        return f"{name} twice", document, ""
    if kind == "twice" and isinstance(key, str):
        parent[RAW] = 1
        return f"{name} twice", document, json.dumps(key)
    if kind == "other":
        other = chance.choice(places)
        parent[key] = copy.deepcopy(_at(document, other))
        return f"{name} ← {'.'.join(map(str, other))}", document, ""
    if kind == "nudge" and isinstance(parent[key], int | float):
        parent[key] = chance.choice(
            (parent[key] + 1, parent[key] - 1, -parent[key], parent[key] * 1000, float(parent[key]), str(parent[key]))
        )
        return f"{name} ← {parent[key]}", document, ""
    if kind == "rename" and isinstance(key, str):
        parent[chance.choice(("", "x", key + "x", key.upper(), "\x1b[31m", "a/b", "../x"))] = parent.pop(key)
        return f"{name} renamed", document, ""
    if kind == "wrap":
        parent[key] = chance.choice(([parent[key]], {"value": parent[key]}, [parent[key], parent[key]]))
        return f"{name} wrapped", document, ""
    raw = chance.choice(chance.choice((NUMBERS, TEXTS, OTHERS))).replace(EVIL, evil)
    parent[key] = RAW
    return f"{name} ← {_short(raw)}", document, raw


def _places(document: Any, at: Place = ()) -> Iterator[Place]:
    yield at
    items = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    for key, value in items:
        yield from _places(value, (*at, key))


def _at(document: Any, place: Place) -> Any:
    for key in place:
        document = document[key]
    return document


def _parent(document: Any, place: Place) -> Any:
    return _at(document, place[:-1])


def _short(text: str) -> str:
    return text if len(text) < 60 else f"{text[:40]}… ({len(text):,} characters)"
