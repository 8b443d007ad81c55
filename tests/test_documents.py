"""JSON comes back as it was; from anywhere, no pipe is waited for, no limit is passed, a field of the wrong type is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graftmt.documents import LARGEST_DOCUMENT, check_fields, parse_document, read_document, read_json, write_json
from graftmt.errors import GraftError
from graftmt.files import open_regular, read_limited

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


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


@given(value=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), VALUES, max_size=5))
def test_json_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, value: dict[str, object]) -> None:
    path = tmp_path_factory.mktemp("json") / "value.json"
    write_json(path, value)
    assert read_json(path, "a test") == value


def test_json_is_for_people_too(tmp_path: Path) -> None:
    write_json(tmp_path / "value.json", {"language": "Ελληνικά"})
    assert "Ελληνικά" in (tmp_path / "value.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (None, r"the card: there is no file .*value\.json"),
        (b"", r"the card: .*value\.json is damaged"),
        (b'{"half": ', r"the card: .*value\.json is damaged"),
        (b"\xff\xfe", r"the card: .*value\.json is damaged"),
        (b"[1, 2]", r"holds a list where an object was expected"),
    ],
)
def test_json_that_is_missing_or_damaged_is_named(tmp_path: Path, damaged: bytes | None, message: str) -> None:
    path = tmp_path / "value.json"
    if damaged is not None:
        path.write_bytes(damaged)
    with pytest.raises(GraftError, match=message):
        read_json(path, "the card")


@pytest.mark.parametrize(
    "hostile",
    [
        b"[" * 100_000,
        b'{"a": ' * 100_000,
        b'{"n": ' + b"9" * 5_000 + b"}",
        b'{"a": "\\ud800"}',
        b'{"\\uDFFF": 1}',
        b"\xff\xfe\x00",
    ],
)
def test_hostile_json_is_an_error_that_names_the_file(tmp_path: Path, hostile: bytes) -> None:
    (tmp_path / "hostile.json").write_bytes(hostile)
    with pytest.raises(GraftError, match=r"hostile\.json"):
        read_json(tmp_path / "hostile.json", "the card")


def test_whole_surrogate_pairs_are_text(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_bytes(b'{"a": "\\ud83d\\ude00"}')
    assert read_json(tmp_path / "card.json", "the card") == {"a": "😀"}


def test_a_folder_in_place_of_json_is_named(tmp_path: Path) -> None:
    with pytest.raises(GraftError, match="the card: cannot read"):
        read_json(tmp_path, "the card")
