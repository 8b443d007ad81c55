"""YAML and dotted overrides into frozen dataclasses, with errors that name the key and its nearest neighbour. Layer 0.

The dataclass next to the code is the only declaration of an option: its fields give names, kinds and defaults.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from graftmt.errors import ConfigError, nearest
from graftmt.files import LARGEST_TEXT, check_regular, read_limited

T = TypeVar("T")
LATER = {"later": True}
"""Metadata of a field that came later: its default is left out, so that what was written or hashed before stays the same."""
DEEPEST = 50
"""Levels of a configuration."""
LONGEST_INTEGER = 128
"""Bits. Larger ones cannot be meant, nor become a float, nor be shown."""


def load_yaml(path: Path) -> dict[str, Any]:
    """The mapping a YAML file holds."""
    if path.is_dir():
        raise ConfigError(f"{path} is a folder where a YAML file was expected.")
    check_regular(path)
    try:
        value = yaml.safe_load(read_limited(path, LARGEST_TEXT).decode())
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration file {path}; check the path.") from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder where a YAML file was expected.") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path} is not valid YAML: it is nested too deep.") from None
    except OSError as error:
        raise ConfigError(f"cannot read the configuration file {path}: {error.strerror}.") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path} holds a {type(value).__name__} where a mapping of keys to values was expected.")
    copied: dict[str, Any] = _deep_copy(value)
    return copied


def apply_overrides(mapping: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """`a.b=value` sets mapping['a']['b']; `stages.0.steps=10` reaches into a list. Values are read as YAML."""
    result: dict[str, Any] = _deep_copy(mapping)
    for override in overrides:
        dotted, equals, text = override.partition("=")
        if not equals or not dotted:
            raise ConfigError(f"override {override!r}: expected KEY=VALUE, such as seed=2 or stages.0.steps=1000.")
        try:
            value = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise ConfigError(f"override {override!r}: the value is not valid YAML: {error}") from None
        _set(result, dotted.split("."), value, dotted)
    return result


def _set(node: Any, keys: list[str], value: Any, dotted: str) -> None:
    """Walks to the parent of the last key, making mappings on the way where there are none yet."""
    for position, key in enumerate(keys):
        last = position == len(keys) - 1
        if isinstance(node, list):
            if not key.isdecimal() or int(key) >= len(node):
                raise ConfigError(f"override {dotted}: {key!r} is not one of the {len(node)} entries, 0 to {len(node) - 1}.")
            index: Any = int(key)
        elif isinstance(node, dict):
            index = key
            if not last and node.get(key) is None:
                node[key] = {}
        else:
            raise ConfigError(f"override {dotted}: {'.'.join(keys[:position])} is a value and has no key {key!r}.")
        if last:
            node[index] = value
        else:
            node = node[index]


def _deep_copy(value: Any, depth: int = 0) -> Any:
    """The same value in mappings and lists of its own. One that is in itself, as YAML can have it, has no end."""
    if depth > DEEPEST:
        raise ConfigError(f"the configuration is nested more than {DEEPEST} levels deep, or holds itself; write it flatter.")
    if isinstance(value, dict):
        return {key: _deep_copy(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_deep_copy(item, depth + 1) for item in value]
    return value


def from_mapping(kind: type[T], mapping: Mapping[str, Any], where: str = "") -> T:
    """An instance of the dataclass `kind`; unknown keys and values of the wrong kind are errors that name the key."""
    hints = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for key, value in mapping.items():
        if key not in fields:
            hint = nearest(str(key), fields) or "."
            raise ConfigError(f"unknown key {_join(where, str(key))!r}{hint} Known here: {', '.join(sorted(fields))}.")
        values[key] = _convert(hints[key], value, _join(where, key))
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in values:
            raise ConfigError(f"the key {_join(where, name)!r} is missing and has no default; please set it.")
    try:
        return kind(**values)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}" if where else str(error)) from None


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _convert(hint: Any, value: Any, where: str) -> Any:
    """`value`, as YAML gave it, as the annotated kind."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _convert(next(argument for argument in arguments if argument is not type(None)), value, where)
    if origin is Literal:
        if value not in arguments:
            known = [str(argument) for argument in arguments]
            hint = nearest(str(value), known) or "."
            raise ConfigError(f"{where} is {value!r}{hint} Expected one of: {', '.join(known)}.")
        return value
    if origin is tuple:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ConfigError(f"{where} is {value!r}; expected a list.")
        return tuple(_convert(arguments[0], item, f"{where}.{index}") for index, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} is {value!r}; expected a mapping.")
        entries = {str(key): item for key, item in value.items() if item is not None or _takes_none(arguments[1])}
        return {key: _convert(arguments[1], item, _join(where, key)) for key, item in entries.items()}
    if hint is Any:
        return value
    if origin is list:
        if not isinstance(value, list):
            raise ConfigError(f"{where} is {value!r}; expected a list.")
        return [_convert(arguments[0], item, f"{where}.{index}") for index, item in enumerate(value)]
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} is {value!r}; expected a mapping of keys to values.")
        return from_mapping(hint, value, where)  # type: ignore[arg-type]
    return _scalar(hint, value, where)


def _takes_none(hint: Any) -> bool:
    """Of the entries of a mapping; where it does not, null takes an entry out, as KEY=null does for one of a profile."""
    return hint is Any or type(None) in get_args(hint)


def _scalar(hint: Any, value: Any, where: str) -> Any:
    if isinstance(value, int) and value.bit_length() > LONGEST_INTEGER:
        raise ConfigError(f"{where} is a number of {value.bit_length():,} bits; expected a smaller one.")
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise ConfigError(f"{where} is {value!r}, which is no text: it has half of a surrogate pair.")
    if hint is Path and isinstance(value, str) and "\0" in value:
        raise ConfigError(f"{where} is {value!r}; a path cannot have a NUL.")
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is float and isinstance(value, str):
        # YAML 1.1 reads 5e-4 as text; people write it everywhere.
        try:
            return float(value)
        except ValueError:
            pass
    if hint is Path and isinstance(value, str):
        return Path(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        quotes = " YAML reads no, yes, on and off as true or false: write them in quotes." if isinstance(value, bool) else ""
        raise ConfigError(f"{where} is {value!r}, a {type(value).__name__}; expected {hint.__name__}.{quotes}")
    return value


def check_numbers(config: Any, expected: str, fine: Callable[[float], bool], *names: str) -> None:
    """For `__post_init__`: fields that are out of range are an error that says what was expected; None may stand in any."""
    for name in names:
        value = getattr(config, name)
        if value is not None and not fine(value):
            raise ConfigError(f"{name} is {value}; expected {expected}.")


def check_seed(config: Any) -> None:
    """Those that torch and NumPy both take."""
    check_numbers(config, "a number from 0 to 2⁶³ - 1", lambda value: 0 <= value < 2**63, "seed")


def one_or_more(value: float) -> bool:
    return 1 <= value < math.inf


def zero_or_more(value: float) -> bool:
    return 0 <= value < math.inf


def above_zero(value: float) -> bool:
    return 0 < value < math.inf


def to_mapping(value: Any) -> Any:
    """The plain YAML form of a configuration: the inverse of `from_mapping`."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field for field in dataclasses.fields(value) if field.init and not _left_out(field, value)]
        return {field.name: to_mapping(getattr(value, field.name)) for field in fields}
    if isinstance(value, Mapping):
        return {str(key): to_mapping(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_mapping(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _left_out(field: dataclasses.Field[Any], value: Any) -> bool:
    return "later" in field.metadata and getattr(value, field.name) == field.default


def to_yaml(value: Any) -> str:
    return yaml.safe_dump(to_mapping(value), sort_keys=False, allow_unicode=True)


def _mappings(*lists: list[Any]) -> bool:
    """Whether all that they hold are mappings."""
    return all(isinstance(entry, Mapping) for one in lists for entry in one)


class Change(NamedTuple):
    """Where two plain mappings differ: the dotted key and both values."""

    key: str
    old: Any
    new: Any


def changes(old: Any, new: Any, where: str = "") -> Iterator[Change]:
    """What two plain mappings do not have in common. Lists of mappings are compared entry by entry, whatever their lengths.

    An empty list is the same as a key that is not there yet: what was stored before a setting was thought of had none of it.
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            if key not in old and new[key] == []:
                continue
            yield from changes(old.get(key), new.get(key), _join(where, str(key)))
    elif isinstance(old, list) and isinstance(new, list) and _mappings(old, new):
        for index, pair in enumerate(zip(old, new, strict=False)):
            yield from changes(*pair, f"{where}.{index}")
        if len(old) != len(new):
            yield Change(where, len(old), len(new))
    elif old != new:
        yield Change(where, old, new)


def differences(old: Any, new: Any, where: str = "") -> list[str]:
    """The same in words: the dotted keys, each with both values."""
    return [f"{change.key}: {change.old!r} then, {change.new!r} now" for change in changes(old, new, where)]
