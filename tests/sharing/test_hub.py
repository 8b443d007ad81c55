"""The Hugging Face Hub, as huggingface_hub and a local server speak of it: what is pushed comes back, from one commit."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from graftmt.base import Base
from graftmt.errors import CheckpointError, ConfigError, GraftError
from graftmt.packs import load_pack, save_pack
from graftmt.progress import heard_by
from graftmt.sharing.connections import Refused, SharingError
from graftmt.sharing.pull_options import PullOptions
from graftmt.sharing.pulling import PullResult, pull
from graftmt.sharing.pushing import PushOptions, PushResult, push
from graftmt.sharing.stores import open_store
from graftmt.sharing.stores.folder import write_index
from sharing.hub_server import LARGE, Hub
from sharing.web_server import serve


def put(thing: Path, destination: str, said: list[str] | None = None, **options: Any) -> PushResult:
    heard: list[str] = [] if said is None else said
    with heard_by(heard.append):
        return push(PushOptions(thing=thing, destination=destination, **options))


def take(source: str, name: str | None = None, **options: Any) -> PullResult:
    return pull(PullOptions(source=source, name=name, **options))


def test_a_pack_comes_back_as_it_was(hub: Hub, packs: Path, tmp_path: Path) -> None:
    pushed = put(packs / "el-source", "hf:me/greek", message="first")
    result = take("hf:me/greek", output=tmp_path / "el")
    assert result.revision == pushed.revision == hub.branches["me/greek", "main"]
    assert result.offer.name == "greek" and result.offer.scores == {"el-en": 51.26, "el-fr": 41.0}
    assert load_pack(result.path).fingerprint == load_pack(packs / "el-source").fingerprint
    assert hub.messages == ["first"]
    for name in ("pack.json", "pack.safetensors", "subwords.model"):
        assert (tmp_path / "el" / name).read_bytes() == (packs / "el-source" / name).read_bytes()


def test_the_card_says_what_the_hubs_search_reads(hub: Hub, packs: Path) -> None:
    put(packs / "el-source", "hf:me/greek")
    card = hub.repositories["me/greek"][-1][1]["README.md"].decode()
    header = yaml.safe_load(card.split("---\n")[1])
    assert header["license"] == "cc-by-4.0" and header["language"] == ["el"] and header["library_name"] == "graftmt"
    assert f"graftmt-base-{load_pack(packs / 'el-source').base[:16]}" in header["tags"]
    own = (packs / "el-source" / "README.md").read_text(encoding="utf-8")
    assert own.startswith("---\nlicense:"), "which the fuller header replaces"
    assert card.count("\n---\n") == 1 and card.endswith(own.partition("\n---\n")[2])


def test_a_base_and_several_packs_share_a_repository(hub: Hub, packs: Path, base: Path, tmp_path: Path) -> None:
    put(base, "hf:me/all", name="base")
    put(packs / "el-source", "hf:me/all", name="packs/el")
    archive = tmp_path / "uk.graftpack"
    save_pack(load_pack(packs / "uk-target"), archive, Base.load(base).model.config)
    put(archive, "hf:me/all", name="packs/uk")
    names = [offer.name for offer in open_store("hf:me/all").listing().offers]
    assert names == ["base", "packs/el", "packs/uk"]
    with pytest.raises(GraftError, match="Say which one"):
        take("hf:me/all", output=tmp_path / "x")
    assert load_pack(take("hf:me/all", "packs/uk", output=tmp_path / "uk").path).languages == ("uk",)
    stored = take("hf:me/all", "base", output=tmp_path / "base").path
    assert Base.load(stored).fingerprint == Base.load(base).fingerprint
    assert any(len(content) >= LARGE for content in hub.repositories["me/all"][-1][1].values())  # went through LFS


def test_a_new_version_replaces_the_old_one_and_revisions_stay(hub: Hub, packs: Path, tmp_path: Path) -> None:
    first = put(packs / "el-source", "hf:me/pack")
    hub.repositories["me/pack"][-1][1].update({"old.model": b"x", "notes.md": b"x", "other/file": b"x"})
    second = put(packs / "uk-target", "hf:me/pack")
    files = hub.repositories["me/pack"][-1][1]
    assert "old.model" not in files and "other/file" in files and ".gitattributes" in files
    assert take("hf:me/pack", output=tmp_path / "new").offer.languages == ("uk",)
    for source, options in ((f"hf:me/pack@{first.revision}", {}), ("hf:me/pack", {"revision": first.revision})):
        old = take(source, output=tmp_path / "old", replace=True, **options)
        assert old.offer.languages == ("el",) and old.revision == first.revision != second.revision
    with pytest.raises(SharingError, match="no revision 'v9'"):
        take("hf:me/pack@v9", output=tmp_path / "x")
    with pytest.raises(ConfigError, match="once"):
        take("hf:me/pack@a", revision="b")


def test_a_licence_is_stated_without_touching_the_pack(hub: Hub, packs: Path, base: Path, tmp_path: Path) -> None:
    said: list[str] = []
    put(base, "hf:me/base", said, private=True)
    assert any("licence" in line for line in said) and hub.private == {"me/base"}
    put(packs / "el-source", "hf:me/greek", licence="cc0-1.0")
    assert load_pack(packs / "el-source").card["licence"] == "cc-by-4.0"
    pulled = load_pack(take("hf:me/greek", output=tmp_path / "el").path)
    assert pulled.card["licence"] == "cc0-1.0" and pulled.fingerprint == load_pack(packs / "el-source").fingerprint


def test_large_files_come_from_storage_elsewhere_without_the_token(
    hub: Hub, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.token = "hf_secret"
    with pytest.raises(SharingError, match="log"):
        put(base, "hf:me/base")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    put(base, "hf:me/base")
    storage = tmp_path / "storage"
    storage.mkdir()
    for oid, content in hub.large.items():
        (storage / oid).write_bytes(content)
    with serve(storage) as web:
        hub.storage = web.address
        take("hf:me/base", output=tmp_path / "base")
        assert web.asked and not any("Authorization" in headers for _, _, headers in web.asked)
    hub.storage = "file:///etc"
    with pytest.raises(Refused, match="not followed"):
        take("hf:me/base", output=tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_files_that_the_hubs_own_cache_has_are_not_downloaded(hub: Hub, base: Path, tmp_path: Path) -> None:
    from huggingface_hub import hf_hub_download

    commit = put(base, "hf:me/base").revision
    assert commit is not None
    folder = tmp_path / "hub-cache" / "models--me--base" / "snapshots" / commit
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes((base / "model.safetensors").read_bytes())
    (folder / "base.json").write_bytes(b"something else")
    assert hf_hub_download("me/base", "model.safetensors", revision=commit, local_files_only=True) == str(
        folder / "model.safetensors"
    )
    take("hf:me/base", output=tmp_path / "base")
    fetched = [path for _, path, _ in hub.asked if "/resolve/" in path]
    assert any(path.endswith("base.json") for path in fetched)  # that one in the cache does not have the checksum
    assert not any(path.endswith("model.safetensors") for path in fetched)


def test_single_files_in_a_repository_need_an_index(hub: Hub, public: Path, tmp_path: Path) -> None:
    archive = (public / "uk-target.graftpack").read_bytes()
    hub.commit("me/files", {"uk-target.graftpack": archive})
    assert open_store("hf:me/files").listing().offers == ()
    for path in ("greek", "base"):
        shutil.rmtree(public / path)
    write_index(public)
    hub.commit("me/files", {"uk-target.graftpack": archive, "graftmt-index.json": (public / "graftmt-index.json").read_bytes()})
    assert take("hf:me/files", output=tmp_path / "uk.graftpack").path.read_bytes() == archive


def files_of(pack: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in pack.iterdir()}


def test_damaged_and_hostile_repositories(hub: Hub, packs: Path, tmp_path: Path) -> None:
    good = files_of(packs / "el-source")
    document = json.loads(good["pack.json"])

    def changed(**fields: Any) -> dict[str, bytes]:
        return {**good, "pack.json": json.dumps({**document, **fields}).encode()}

    hostile: dict[str, dict[str, bytes]] = {
        "no pack.json": {name: content for name, content in good.items() if name != "pack.json"},
        "no tensors": {name: content for name, content in good.items() if name != "pack.safetensors"},
        "no vocabulary": {name: content for name, content in good.items() if name != "subwords.model"},
        "not json": {**good, "pack.json": b"<html>"},
        "large document": {**good, "pack.json": b" " * (9 * 2**20)},
        "another kind": changed(kind="base"),
        "path in text": changed(text={"kind": "sentencepiece", "options": {}, "files": ["../../x"]}),
        "fingerprint": changed(fingerprint="0" * 64),
        "base": changed(base="0" * 64),
        "tensors": {**good, "pack.safetensors": good["pack.safetensors"][:-4] + b"\1\2\3\4"},
        "nothing": {},
        "only odd names": {"../pack.json": good["pack.json"], "/etc/passwd": b"x"},
    }
    here = tmp_path / "here"
    here.mkdir()
    for number, files in enumerate(hostile.values()):
        hub.commit(f"them/h{number}", files)
        with pytest.raises(GraftError):
            take(f"hf:them/h{number}", output=here / "pack")
    assert os.listdir(here) == []


def test_what_cannot_be_pushed(hub: Hub, packs: Path, base: Path, tmp_path: Path) -> None:
    base_copy = Path(shutil.copytree(base, tmp_path / "copy"))
    (base_copy / "subwords.model").write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match="fingerprint"):
        put(base_copy, "hf:me/base")
    with pytest.raises(GraftError, match="neither"):
        put(tmp_path, "hf:me/base")
    with pytest.raises(ConfigError, match="does not take files"):
        put(packs / "el-source", "https://127.0.0.1/packs")
    for name in ("../x", "/x", "a/../b", "x.graftpack"):
        with pytest.raises(GraftError):
            put(packs / "el-source", "hf:me/x", name=name)
    assert put(packs / "el-source", "hf:me/x", dry_run=True).revision is None
    assert hub.repositories == {}


def test_no_repository_and_no_server(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SharingError, match="no repository me/none"):
        take("hf:me/none", output=tmp_path / "x")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(SharingError, match="could not be used"):
        take("hf:me/none", output=tmp_path / "x")
