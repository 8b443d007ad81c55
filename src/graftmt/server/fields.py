"""What a client sent, however it sent it: JSON, a form, the query string, or several of these. Layer 6."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from fastapi import Request

from graftmt.documents import parse_json
from graftmt.server.refusals import bad_request

MOST_FIELDS = 2000
MOST_VALUES = 20_000


class Fields:
    """Named values with their kinds checked; a mistake is a 400 that names the field."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def texts(self, name: str) -> tuple[list[str], bool]:
        """One text or a list of them, and whether it was a list."""
        value = self.values.get(name)
        if value is None:
            raise bad_request(f"{name} is missing: the text to translate, or a list of texts.")
        several = isinstance(value, list)
        found = value if several else [value]
        if not all(isinstance(text, str) for text in found):
            raise bad_request(f"{name} has to be a text or a list of texts.")
        return found, several

    def text(self, name: str, default: str | None = None, longest: int = 100) -> str:
        value = self.values.get(name, default)
        if value is None or value == "":
            if default is not None:
                return default
            raise bad_request(f"{name} is missing.")
        if not isinstance(value, str) or len(value) > longest:
            raise bad_request(f"{name} has to be a text of at most {longest} characters.")
        return value

    def optional(self, name: str, longest: int = 200) -> str | None:
        """The text, or None where it is missing or empty; clients send both."""
        value = self.values.get(name)
        return None if value is None or value == "" else self.text(name, longest=longest)

    def number(self, name: str, default: int, least: int, most: int) -> int:
        value = self.values.get(name)
        if value is None or value == "":
            return default
        if isinstance(value, str) and value.strip().lstrip("-").isdecimal() and len(value) < 10:
            value = int(value)
        if type(value) is not int or not least <= value <= most:
            raise bad_request(f"{name} has to be a whole number from {least} to {most}.")
        return value


async def fields_of(request: Request) -> Fields:
    """The query string, then the body, which wins. A body of no kind that we know is taken for a form, as clients send it."""
    query = request.url.query.encode("utf-8", errors="replace")
    return read_fields(query, await request.body(), request.headers.get("content-type", ""))


def read_fields(query: bytes, body: bytes, kind: str) -> Fields:
    """The same of a request in parts; `kind` is the body's content type."""
    values = _listed(query)
    if body.strip():
        values |= _of_body(body, kind.partition(";")[0].strip().lower())
    return Fields(values)


def _of_body(body: bytes, kind: str) -> dict[str, Any]:
    if kind.endswith("json"):
        try:
            found = parse_json(body, most=MOST_VALUES)
        except ValueError as error:
            raise bad_request(f"the body is not JSON: {str(error)[:200]}.") from None
        if not isinstance(found, dict):
            raise bad_request('the body has to be a JSON object, such as {"q": …, "source": …, "target": …}.')
        return found
    if kind.startswith("multipart/"):
        raise bad_request("send text as JSON or as a URL-encoded form; only files come as multipart forms.")
    return _listed(body)


def _listed(content: bytes) -> dict[str, Any]:
    """A form's values: a text, or a list where a name comes several times."""
    try:
        text = content.decode("utf-8")
        found = parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise bad_request("the form is not UTF-8, or has too many fields.") from None
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}
