"""What is pulled is what was shared, or nothing: over a web server, from a folder, in parts, and from servers that lie."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.base import Base
from graftmt.errors import CheckpointError, GraftError
from graftmt.packs import load_pack
from graftmt.sharing import connections, transfer
from graftmt.sharing.connections import Patience, Refused, SharingError
from graftmt.sharing.index import INDEX, index_document, make_listing, parse_index
from graftmt.sharing.offers import Offer
from graftmt.sharing.pull_options import PullOptions
from graftmt.sharing.pulling import PullResult, pull
from graftmt.sharing.stores.folder import write_index
from graftmt.sharing.stores.web import WebStore
from sharing.web_server import Handler, WebFolder

SHORT = Patience(connect=3.0, window=0.6, least=64, document=2.0)


def take(source: str | Path, name: str | None = None, **options: Any) -> PullResult:
    return pull(PullOptions(source=str(source), name=name, **options))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that stalls is given up in a second rather than in half a minute."""
    monkeypatch.setattr(WebStore.__init__, "__defaults__", (None, SHORT))


def left(folder: Path) -> list[str]:
    """What is in a folder, hidden files included."""
    return sorted(os.listdir(folder)) if folder.exists() else []


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Where things are pulled to: must be empty after a refusal."""
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


def rewrite(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes an index as an attacker would, who can make its revision fit."""
    document = json.loads((folder / INDEX).read_text())
    change(document)
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
        document["revision"] = make_listing([Offer.parse(entry) for entry in document["offers"]]).revision
    (folder / INDEX).write_text(json.dumps(document))


# What works


def test_a_folder_a_file_and_a_base_come_over_the_web_as_they_were(web: WebFolder, packs: Path, base: Path, here: Path) -> None:
    folder = take(web.address, "greek/el-source", output=here / "el").path
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in (packs / "el-source").iterdir()
    }
    assert (
        take(web.address + "/", "uk-target", output=here / "uk.graftpack").path.read_bytes()
        == (web.folder / "uk-target.graftpack").read_bytes()
    )
    pulled = take(f"{web.address}/{INDEX}", "base", output=here / "base")
    assert Base.load(pulled.path).fingerprint == Base.load(base).fingerprint
    assert left(here) == ["base", "el", "uk.graftpack"]


def test_a_pack_changes_its_form_on_the_way_and_stays_the_same(web: WebFolder, packs: Path, here: Path) -> None:
    unpacked = take(web.address, "uk-target", output=here / "uk").path
    packed = take(web.address, "greek/el-source", output=here / "el.graftpack").path
    assert load_pack(unpacked).fingerprint == load_pack(packs / "uk-target").fingerprint
    assert load_pack(packed).fingerprint == load_pack(packs / "el-source").fingerprint


def test_a_folder_without_an_index_is_looked_at(packs: Path, here: Path) -> None:
    result = take(packs, "el-source", output=here / "el")
    assert load_pack(result.path).fingerprint == result.offer.fingerprint
    assert result.offer.licence == "cc-by-4.0" and result.offer.chrf == pytest.approx(46.13)


def test_what_is_there_is_not_downloaded_again(web: WebFolder, here: Path) -> None:
    assert not take(web.address, "greek/el-source", output=here / "el").there
    before = len(web.asked)
    assert take(web.address, "greek/el-source", output=here / "el").there
    assert web.paths()[before:] == [f"/{INDEX}"]


def test_the_revision_and_the_fingerprint_can_be_pinned(web: WebFolder, here: Path) -> None:
    found = take(web.address, "greek/el-source", output=here / "one")
    again = {"revision": found.revision[:12], "fingerprint": found.offer.fingerprint[:12]}
    take(web.address, "greek/el-source", output=here / "two", **again)
    for wrong in ({"revision": "0" * 12}, {"fingerprint": "0" * 12}, {"fingerprint": found.offer.fingerprint[:4]}):
        with pytest.raises(SharingError, match=r"revision|fingerprint"):
            take(web.address, "greek/el-source", output=here / "three", **wrong)
    assert left(here) == ["one", "two"]


# Resume


def cut_after(size: int) -> Callable[[Handler, bytes], None]:
    """The connection breaks after so many bytes of each answer."""

    def misbehave(handler: Handler, content: bytes) -> None:
        asked = handler.headers.get("Range")
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        handler.send_response(206 if asked else 200)
        handler.send_header("Content-Length", str(len(content) - start))
        if asked:
            handler.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        handler.end_headers()
        handler.wfile.write(content[start : start + size])

    return misbehave


def test_a_connection_that_breaks_is_resumed_within_a_command(web: WebFolder, here: Path) -> None:
    size = (web.folder / "base" / "model.safetensors").stat().st_size
    web.odd["model.safetensors"] = cut_after(size // 3)
    take(web.address, "base", output=here / "base")
    ranges = [asked for path, asked, _ in web.asked if path.endswith("model.safetensors")]
    assert ranges[0] is None and len(ranges) >= 3
    assert [int(asked[6:-1]) for asked in ranges[1:] if asked] == [n * (size // 3) for n in range(1, len(ranges))]


def test_the_next_command_resumes_what_the_last_one_had(web: WebFolder, here: Path, downloads: Path) -> None:
    def gone(handler: Handler, content: bytes) -> None:
        if handler.headers.get("Range"):
            handler.send_error(503)
        else:
            cut_after(1000)(handler, content)

    web.odd["pack.safetensors"] = gone
    with pytest.raises(SharingError, match="503"):
        take(web.address, "greek/el-source", output=here / "el")
    assert left(here) == []
    partial = next(downloads.glob("*.partial"))
    assert partial.stat().st_size == 1000
    web.odd.clear()
    take(web.address, "greek/el-source", output=here / "el")
    assert ("/greek/el-source/pack.safetensors", "bytes=1000-") in [asked[:2] for asked in web.asked]
    assert not list(downloads.glob("*.partial"))


def test_a_part_of_something_else_is_not_kept(web: WebFolder, here: Path, downloads: Path) -> None:
    checksum = next(
        file.checksum
        for offer in parse_index((web.folder / INDEX).read_bytes(), "x").offers
        for file in offer.files
        if file.name == "pack.safetensors"
    )
    downloads.mkdir(parents=True)
    (downloads / f"{checksum.algorithm}-{checksum.value}.partial").write_bytes(b"something else")
    take(web.address, "greek/el-source", output=here / "el")
    load_pack(here / "el")


def test_a_server_without_ranges_gives_all_again(web: WebFolder, here: Path, downloads: Path) -> None:
    calls: list[int] = []

    def no_ranges(handler: Handler, content: bytes) -> None:
        calls.append(len(content))
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[: 1000 if len(calls) == 1 else len(content)])

    web.odd["pack.safetensors"] = no_ranges
    take(web.address, "greek/el-source", output=here / "el")
    assert len(calls) == 2 and load_pack(here / "el")


def test_old_leavings_are_removed(web: WebFolder, here: Path, downloads: Path) -> None:
    downloads.mkdir(parents=True)
    old, young = downloads / "sha256-old.partial", downloads / "sha256-young.partial"
    scratch = downloads / "scratch-killed"
    scratch.mkdir()
    (scratch / "copy").write_bytes(b"x")
    old.write_bytes(b"x"), young.write_bytes(b"x")
    long_ago = time.time() - 30 * 86_400
    for path in (old, scratch):
        os.utime(path, (long_ago, long_ago))
    take(web.address, "greek/el-source", output=here / "el")
    assert not old.exists() and not scratch.exists() and young.exists()


# What is refused before the download


def test_limits_bases_and_places_are_checked_first(web: WebFolder, here: Path, graft_base: Callable[..., Path]) -> None:
    other = graft_base("post")
    (here / "taken").mkdir()
    (here / "taken" / "letter.txt").write_text("keep me")
    refused: list[dict[str, Any]] = [
        {"max_size": "1000"},
        {"base": other},
        {"output": here / "taken"},
        {"output": web.folder / "base" / "inside"},
    ]
    for options in refused:
        with pytest.raises(GraftError):
            take(web.address, "greek/el-source", **{"output": here / "el", **options})
    with pytest.raises(GraftError, match="--base is for packs"):
        take(web.address, "base", output=here / "b", base=other)
    with pytest.raises(GraftError, match="graftpack"):
        take(web.address, "base", output=here / "b.graftpack")
    with pytest.raises(GraftError, match="did you mean 'greek/el-source'"):
        take(web.address, "el-source", output=here / "el")
    assert set(web.paths()) == {f"/{INDEX}"}
    assert left(here) == ["taken"] and left(here / "taken") == ["letter.txt"]


def test_another_pack_is_not_replaced_unasked(web: WebFolder, packs: Path, here: Path) -> None:
    shutil.copytree(packs / "uk-target", here / "pack")
    with pytest.raises(GraftError, match="--replace"):
        take(web.address, "greek/el-source", output=here / "pack")
    assert load_pack(here / "pack").languages == ("uk",)
    take(web.address, "greek/el-source", output=here / "pack", replace=True)
    assert load_pack(here / "pack").languages == ("el",)


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/packs",
        "data://x",
        "http://user:secret@127.0.0.1/packs",
        "http:///packs",
        "http://127.0.0.1:99999999/",
        "http://127.0.0.1/a b",
        "http://[::1/",
        "hf:only-a-name",
        "hf:../../x",
        "hf:a/b@c@d",
    ],
)
def test_addresses_that_are_none(address: str, here: Path) -> None:
    with pytest.raises(GraftError) as refused:
        take(address, output=here / "x")
    assert "secret" not in str(refused.value)
    assert left(here) == []


# Hostile indexes

PATHS = [
    "../../../etc/passwd",
    "/etc/passwd",
    "greek/../../pack.json",
    "a\\..\\b",
    "C:/x",
    "greek//pack.json",
    "./pack.json",
    "greek/.hidden",
    "-rf",
    "pack.json\u0000",
    "pack\u202e.json",
    "CON/pack.json",
    "greek/pack.json.",
    "a/b/c/d/e/f",
    "x" * 300,
    "",
    "..",
    "%2e%2e/pack.json?x#y",
]


def test_paths_that_lead_elsewhere(public: Path, here: Path) -> None:
    original = (public / INDEX).read_bytes()
    for path in PATHS:
        for change in (set_file("path", path), set_field("name", path)):
            (public / INDEX).write_bytes(original)
            rewrite(public, change)
            with pytest.raises(CheckpointError, match="index"):
                take(public, "greek/el-source", output=here / "el")
    assert left(here) == []


def set_field(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        document["offers"][1][key] = value

    return change


def set_file(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        document["offers"][1]["files"][1][key] = value

    return change


DAMAGE: dict[str, Callable[[dict[str, Any]], None]] = {
    "kind": lambda document: document.update(kind="pack"),
    "format": lambda document: document.update(format=99),
    "no offers": lambda document: document.pop("offers"),
    "offers": lambda document: document.update(offers={"a": 1}),
    "twice": lambda document: document["offers"].append(document["offers"][1]),
    "side": set_field("side", "both"),
    "base": set_field("base", "short"),
    "no base": set_field("base", None),
    "fingerprint": set_field("fingerprint", "z" * 64),
    "languages": set_field("languages", []),
    "long recipe": set_field("recipe", "x" * 100_000),
    "licence": set_field("licence", "mit\x1b[2J"),
    "no files": set_field("files", []),
    "many files": set_field("files", [{"path": f"a/f{n}", "size": 1, "checksum": "sha256:" + "0" * 64} for n in range(100)]),
    "size": set_file("size", -1),
    "huge size": set_file("size", 10**30),
    "checksum": set_file("checksum", "md5:" + "0" * 32),
    "no tensors": lambda document: document["offers"][1]["files"].pop(1),
    "two folders": set_file("path", "other/pack.safetensors"),
    "same name": set_file("path", "greek/el-source/PACK.JSON"),
}


def test_indexes_that_cannot_be_meant(public: Path, web: WebFolder, here: Path) -> None:
    original = (public / INDEX).read_bytes()
    for name, damage in DAMAGE.items():
        (public / INDEX).write_bytes(original)
        rewrite(public, damage)
        with pytest.raises(CheckpointError):
            take(web.address, "greek/el-source", output=here / name)
    assert left(here) == [] and set(web.paths()) == {f"/{INDEX}"}


def test_what_is_no_index(public: Path, web: WebFolder, here: Path) -> None:
    for content in (b"", b"{", b"[]", b"<html>", b'{"a":' * 100_000, b"\xff\xfe", b"[" + b"1," * 500_000 + b"1]"):
        (public / INDEX).write_bytes(content)
        for source in (web.address, public):
            with pytest.raises(CheckpointError, match="cannot be used"):
                take(source, "greek/el-source", output=here / "el")


def test_an_index_whose_revision_is_not_its_content(public: Path, web: WebFolder, here: Path) -> None:
    document = json.loads((public / INDEX).read_text())
    document["offers"][0]["licence"] = "other"
    (public / INDEX).write_text(json.dumps(document))
    with pytest.raises(CheckpointError, match="revision"):
        take(web.address, "base", output=here / "base")


# Files that are not what the index says


def damage_file(folder: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    path = folder / name
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize("change", [lambda c: c[:-1] + b"\xfe", lambda c: c + b"more", lambda c: c[:-10], lambda c: b""])
@pytest.mark.parametrize("over_web", [True, False])
def test_files_that_were_changed(
    public: Path, web: WebFolder, here: Path, downloads: Path, change: Callable[[bytes], bytes], over_web: bool
) -> None:
    damage_file(public, "greek/el-source/subwords.model", change)
    with pytest.raises(SharingError):
        take(web.address if over_web else public, "greek/el-source", output=here / "el")
    assert left(here) == []


def test_a_consistent_lie_is_found_by_the_fingerprint(public: Path, web: WebFolder, here: Path, packs: Path) -> None:
    """Whoever makes the index can make its checksums fit anything; not the fingerprint."""
    content = bytearray((packs / "el-source" / "pack.safetensors").read_bytes())
    content[-1] ^= 1
    path = public / "greek" / "el-source" / "pack.safetensors"
    path.write_bytes(content)
    from graftmt.sharing.checksums import checksum_of

    def fit(document: dict[str, Any]) -> None:
        entry = next(file for file in document["offers"][1]["files"] if file["path"].endswith("safetensors"))
        entry["checksum"] = str(checksum_of(path))

    rewrite(public, fit)
    with pytest.raises(Refused, match="fingerprint"):
        take(web.address, "greek/el-source", output=here / "el")
    assert left(here) == []


def test_an_offer_that_names_another_base_is_found(public: Path, web: WebFolder, here: Path) -> None:
    rewrite(public, set_field("base", "0" * 64))
    with pytest.raises(Refused, match="base"):
        take(web.address, "greek/el-source", output=here / "el")
    assert left(here) == []


def test_a_link_out_of_the_folder_is_not_followed(public: Path, packs: Path, here: Path) -> None:
    shutil.rmtree(public / "greek")
    (public / "greek").symlink_to(packs)
    with pytest.raises(SharingError, match="leads out"):
        take(public, "greek/el-source", output=here / "el")


# Servers that misbehave


def endless_headers(handler: Handler, content: bytes) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for _ in range(100_000):
        handler.wfile.write(b"X: y\r\n")


def endless_continue(handler: Handler, content: bytes) -> None:
    for _ in range(100):
        handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.05)


def endless_content(handler: Handler, content: bytes) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(5000):
        handler.wfile.write(b" " * 65536)


def endless_chunks(handler: Handler, content: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for _ in range(5000):
        handler.wfile.write(b"10000\r\n" + b" " * 65536 + b"\r\n")


def endless_trailers(handler: Handler, content: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"1\r\n{\r\n0\r\n")
    for _ in range(100):
        handler.wfile.write(b"X: y\r\n")
        time.sleep(0.05)


def dripping(handler: Handler, content: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    for place in range(100):
        handler.wfile.write(content[place : place + 1])
        time.sleep(0.05)


def silent(handler: Handler, content: bytes) -> None:
    time.sleep(2.5)


def huge_length(handler: Handler, content: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(10**15))
    handler.end_headers()
    handler.wfile.write(content)


def wrong_range(handler: Handler, content: bytes) -> None:
    handler.send_response(206)
    handler.send_header("Content-Range", f"bytes 5-{len(content)}/{len(content)}")
    handler.end_headers()
    handler.wfile.write(content)


def compressed(handler: Handler, content: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Content-Encoding", "gzip")
    handler.end_headers()
    handler.wfile.write(b"\x1f\x8b" + b"\0" * 1000)


def not_http(handler: Handler, content: bytes) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")


def to(location: str) -> Callable[[Handler, bytes], None]:
    def redirect(handler: Handler, content: bytes) -> None:
        handler.send_response(302)
        handler.send_header("Location", location)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return redirect


def in_circles(handler: Handler, content: bytes) -> None:
    to(handler.path)(handler, content)


MISBEHAVIOURS = [
    endless_headers,
    endless_continue,
    endless_content,
    endless_chunks,
    endless_trailers,
    dripping,
    silent,
    huge_length,
    wrong_range,
    compressed,
    not_http,
    in_circles,
    to("file:///etc/passwd"),
    to("ftp://127.0.0.1/x"),
    to("data:text/plain,{}"),
    to("javascript:1"),
    to("http://user:secret@127.0.0.1/x"),
    to("//"),
]
NAMES = [f"{one.__name__}-{place}" for place, one in enumerate(MISBEHAVIOURS)]


@pytest.mark.parametrize("ending", [INDEX, "pack.safetensors"])
@pytest.mark.parametrize("misbehave", MISBEHAVIOURS, ids=NAMES)
def test_servers_that_misbehave(
    web: WebFolder, here: Path, misbehave: Any, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "TRIES", 1)
    web.odd[ending] = misbehave
    if misbehave in (endless_content, endless_chunks) and ending != INDEX:
        # All that was promised came first or nothing did: either way what is kept has its checksum.
        with pytest.raises(SharingError, match="checksum"):
            take(web.address, "greek/el-source", output=here / "el")
    else:
        with pytest.raises(GraftError) as refused:
            take(web.address, "greek/el-source", output=here / "el")
        assert "secret" not in str(refused.value)
    assert left(here) == []


def test_a_redirect_within_the_web_is_followed_without_secrets(web: WebFolder, here: Path) -> None:
    from sharing.web_server import serve

    with serve(web.folder) as other:
        web.odd["pack.safetensors"] = to(f"{other.address}/greek/el-source/pack.safetensors")
        with connections.request(f"{web.address}/pack.safetensors", {"Authorization": "Bearer secret"}) as reply:
            assert reply.read(10)
        assert "Authorization" in web.asked[-1][2]
        assert "Authorization" not in other.asked[-1][2]
        take(web.address, "greek/el-source", output=here / "el")


def test_nobody_answers(here: Path) -> None:
    with pytest.raises(SharingError, match="connection"):
        take("http://127.0.0.1:9/packs", output=here / "x")


def test_an_index_is_the_same_every_time(public: Path) -> None:
    first = (public / INDEX).read_bytes()
    write_index(public)
    assert (public / INDEX).read_bytes() == first
    listing = parse_index(first, "x")
    assert index_document(listing) == json.loads(first)
    assert [offer.name for offer in listing.offers] == ["base", "greek/el-source", "uk-target"]
    assert dataclasses.replace(listing.offers[1]) == listing.offers[1]
