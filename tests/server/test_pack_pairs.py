"""What a front tells from a request: which packs it needs, however the client sent it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from server.conftest import DEMO

from graftmt.errors import ConfigError
from graftmt.server.on_ray.pack_pairs import PackPairs
from graftmt.server.serve_options import ServeOptions
from graftmt.server.shelf import Shelf


@pytest.fixture(scope="module")
def pairs(demo_base: Any) -> PackPairs:
    return PackPairs.of(Shelf(demo_base, [DEMO / "packs"]).catalog)


def scope(path: str = "/translate", query: bytes = b"", kind: bytes = b"application/json") -> dict[str, Any]:
    return {"path": path, "query_string": query, "headers": [(b"content-type", kind)]}


def test_a_pair_is_told_from_json_form_and_query(pairs: PackPairs) -> None:
    fields = {"q": "Δευτέρα", "source": "el", "target": "uk"}
    assert pairs.pair(scope(), json.dumps(fields).encode()) == "el-source+uk-target"
    assert pairs.pair(scope(kind=b"application/x-www-form-urlencoded"), b"q=a&source=en&target=uk") == "+uk-target"
    assert pairs.pair(scope(query=b"q=a&source=el&target=fr", kind=b""), b"") == "el-source+"
    assert pairs.pair(scope("/v1/translate"), json.dumps(fields | {"source_pack": "other"}).encode()) == "other+uk-target"


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"source": 5, "target": ["uk"]}', b"\xff", b"", b'{"source": "auto", "target": "fr"}']
)
def test_what_cannot_be_told_goes_to_any_replica(pairs: PackPairs, body: bytes) -> None:
    assert pairs.pair(scope(), body) == ""


def test_what_needs_no_pack_goes_to_any_replica(pairs: PackPairs) -> None:
    fields = {"q": "a", "source": "en", "target": "fr"}
    assert pairs.pair(scope(), json.dumps(fields).encode()) == ""
    assert pairs.pair(scope("/detect"), json.dumps(fields | {"source": "el"}).encode()) == ""
    assert PackPairs().pair(scope(), json.dumps(fields | {"source": "el"}).encode()) == ""  # before there is news


@pytest.mark.parametrize(("given", "least", "most"), [("", 1, 4), ("2", 2, 2), ("2-8", 2, 8), ("1-1", 1, 1)])
def test_replicas_are_a_number_or_a_range(given: str, least: int, most: int) -> None:
    assert ServeOptions(demo=True, ray=True, replicas=given).replica_range == (least, most)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ray": True, "replicas": "0"}, "at least 1"),
        ({"ray": True, "replicas": "3-2"}, "second number"),
        ({"ray": True, "replicas": "many"}, "a number such as 2"),
        ({"ray": True, "replicas": "-2"}, "a number such as 2"),
        ({"replicas": "2"}, "add --ray"),
        ({"ray_address": "auto"}, "add --ray"),
    ],
)
def test_what_is_no_number_of_replicas_is_said(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ServeOptions(demo=True, **options)
