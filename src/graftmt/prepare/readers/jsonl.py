"""JSON Lines: {"translation": {"en": …, "fr": …}} as on the Hugging Face hub, or flat keys. Layer 4."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graftmt.errors import DataError, nearest
from graftmt.prepare.readers.archives import StoredFile
from graftmt.prepare.readers.combination import by_split, split_of
from graftmt.prepare.readers.language_labels import choose_languages
from graftmt.prepare.readers.lines import check_text, read_records
from graftmt.prepare.source import Line, Source


def is_jsonl(name: str) -> bool:
    """In a folder, where .json files say other things; by name any file will do."""
    return name.lower().endswith((".jsonl", ".ndjson"))


def read_jsonl(
    files: Sequence[StoredFile],
    languages: Mapping[str, str] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    field: str = "translation",
) -> dict[str, Source]:
    """By split. `columns`: language → key, for flat records; else `field` holds a text per language.

    The first record says which languages there are, unless they are named; a key that a record lacks, or null, is no text.
    """
    return by_split((split_of(file), _source(file, languages, columns, field)) for file in files)


def keys_of(file: StoredFile) -> list[str]:
    """Of the first record."""
    first = next(_records(file), None)
    return [] if first is None else list(map(str, first[1]))


def _source(file: StoredFile, languages: Mapping[str, str] | None, columns: Mapping[str, str] | None, field: str) -> Source:
    first = next(_records(file), None)
    if first is None:
        raise DataError(f"{file} has no records; expected a JSON object a line.")
    where = str(file)
    texts = first[1] if columns else _translation(first[1], field, where, first[0])
    if columns:
        for key in columns.values():
            if key not in texts:
                keys = [str(name) for name in texts]
                raise DataError(
                    f"{where}, line {first[0]}: no key {key!r}{nearest(key, keys) or ';'} keys there: {', '.join(keys[:40])}."
                )
        chosen = dict(columns)
    else:
        chosen = choose_languages(texts, languages, where)

    def read() -> Iterator[Line]:
        for number, record in _records(file):
            texts = record if columns else _translation(record, field, where, number)
            if not columns and languages is None and (new := [key for key in texts if key not in chosen.values()]):
                raise DataError(
                    f"{where}, line {number}: the language {new[0]!r}, which the first record lacks; name those to be "
                    "taken with --languages."
                )
            yield tuple(_text(texts.get(key), where, f"line {number}, {key!r}") for key in chosen.values())

    return Source(where, tuple(chosen), read)


def _records(file: StoredFile) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in read_records(file):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:  # a number of too many digits is a ValueError, deep nesting the other
            hint = " (one array is no JSON Lines: jq -c '.[]' FILE makes them)" if line.lstrip().startswith("[") else ""
            raise DataError(f"{file}, line {number}: not valid JSON ({error}); expected one object a line{hint}.") from None
        if not isinstance(record, dict):
            raise DataError(f"{file}, line {number}: a {type(record).__name__} where an object was expected.")
        yield number, record


def _translation(record: dict[str, Any], field: str, where: str, number: int) -> dict[str, Any]:
    value = record.get(field)
    if not isinstance(value, dict):
        keys = ", ".join(list(record)[:20])
        raise DataError(
            f"{where}, line {number}: {field!r} is {f'a {type(value).__name__}' if field in record else 'missing'} where an "
            f"object with a text per language was expected; keys there: {keys}. For flat records write --columns en=KEY,fr=KEY."
        )
    return value


def _text(value: Any, where: str, place: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{where}, {place}: a {type(value).__name__} where text was expected.")
    return check_text(value, where, place)
