"""Files from anywhere: no pipe is waited for, no limit is passed, and a field of the wrong type is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest

from graftmt.documents import LARGEST_DOCUMENT, check_fields, parse_document, read_document
from graftmt.errors import GraftError
from graftmt.reading import open_regular, read_limited


class Inner(TypedDict):
    name: str


class Document(Inner, total=False):
    count: int
    share: float
    flag: bool
    kind: Literal["a", "b"]
    names: list[str]
    scores: dict[str, Inner]
    note: str | None
    rest: Any


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "device", "folder"):
        with pytest.raises(OSError, match=name):
            open_regular(tmp_path / name)
        with pytest.raises(GraftError, match=name):
            read_document(tmp_path / name, "the document")
    (tmp_path / "file").write_bytes(b"{}")
    (tmp_path / "link").symlink_to("file")
    assert read_document(tmp_path / "link", "the document") == {}


def test_more_than_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_limited(path, 5) == b"12345"
    with pytest.raises(ValueError, match="more than 4 bytes"):
        read_limited(path, 4)
    os.truncate(path, 2**40)
    with pytest.raises(ValueError, match="more than 5 bytes"):
        read_limited(path, 5)
    assert read_limited(Path("/proc/self/stat"), 100_000)  # which says that it has 0 bytes


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"7",
        b'{"a": ' + b"[" * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": "\\ud800"}',
        b'{"\\udfff": 1}',
        b'{"a": "\xff"}',
        b'{"a": [' + b"{}," * 400_000 + b"1]}",
        b'{"a": "' + b"b" * LARGEST_DOCUMENT + b'"}',
    ],
    ids=["empty", "list", "number", "deep", "digits", "surrogate", "surrogate key", "bytes", "values", "long"],
)
def test_what_is_no_document_is_a_short_value_error(content: bytes) -> None:
    with pytest.raises(ValueError) as caught:
        parse_document(content)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "value",
    [
        {"name": "x"},
        {"name": "x", "count": 3, "share": 2, "flag": True, "kind": "b", "names": [], "note": None, "rest": [{}]},
        {"name": "x", "share": float("inf"), "names": ["a", "b"], "scores": {"one": {"name": "y", "more": 1}}, "other": 1},
    ],
)
def test_fields_of_their_kind_pass(value: dict[str, Any]) -> None:
    check_fields(value, Document)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ([], "it"),
        ({}, "name"),
        ({"name": None}, "name"),
        ({"name": "x", "count": 1.5}, "count"),
        ({"name": "x", "count": True}, "count"),
        ({"name": "x", "count": 10**100}, "count"),
        ({"name": "x", "share": "1"}, "share"),
        ({"name": "x", "share": 10**400}, "share"),
        ({"name": "x", "flag": 1}, "flag"),
        ({"name": "x", "kind": "c"}, "kind"),
        ({"name": "x", "kind": ["a"]}, "kind"),
        ({"name": "x", "names": "abc"}, "names"),
        ({"name": "x", "names": ["a", 7]}, "names.1"),
        ({"name": "x", "scores": []}, "scores"),
        ({"name": "x", "scores": {"one": {}}}, "scores.one.name"),
        ({"name": "x", "note": 1}, "note"),
    ],
)
def test_a_field_of_another_kind_is_named(value: Any, field: str) -> None:
    with pytest.raises(ValueError, match=rf"^{field} "):
        check_fields(value, Document)
