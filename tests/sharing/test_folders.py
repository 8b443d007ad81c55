"""Folders that are given out: what is put there, the index, and the commands."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.base import Base
from graftmt.errors import CheckpointError, GraftError
from graftmt.packs import load_pack
from graftmt.places import PlaceError
from graftmt.sharing.index import INDEX
from graftmt.sharing.pushing import PushOptions, push
from graftmt.sharing.stores import open_store
from graftmt.sharing.stores.folder import write_index
from sharing.web_server import WebFolder


def test_what_is_pushed_into_a_folder_is_in_its_index(packs: Path, base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "public"
    for thing, name in ((base, None), (packs / "el-source", "greek/el"), (packs / "uk-target", "uk.graftpack")):
        push(PushOptions(thing=thing, destination=str(folder), name=name, licence="mit"))
    listing = open_store(str(folder)).listing()
    assert [(offer.name, offer.kind, offer.licence) for offer in listing.offers] == [
        ("greek/el", "pack", "mit"),
        (base.name, "base", "mit"),
        ("uk", "pack", "mit"),
    ]
    assert json.loads((folder / INDEX).read_text())["revision"] == listing.revision
    assert load_pack(folder / "greek" / "el").fingerprint == load_pack(packs / "el-source").fingerprint
    assert load_pack(folder / "uk.graftpack").fingerprint == load_pack(packs / "uk-target").fingerprint
    assert Base.load(folder / base.name).fingerprint == Base.load(base).fingerprint


def test_nothing_is_put_where_something_else_is(packs: Path, base: Path, tmp_path: Path) -> None:
    (tmp_path / "public" / "el-source").mkdir(parents=True)
    (tmp_path / "public" / "el-source" / "diary.txt").write_text("mine")
    inside_a_base = Path(shutil.copytree(base, tmp_path / "base"))
    for destination in (tmp_path / "public", inside_a_base):
        with pytest.raises(PlaceError):
            push(PushOptions(thing=packs / "el-source", destination=str(destination)))
    with pytest.raises(PlaceError):
        write_index(inside_a_base)
    assert not (inside_a_base / INDEX).exists()


def test_a_card_without_end_is_not_read(packs: Path, tmp_path: Path) -> None:
    pack = Path(shutil.copytree(packs / "el-source", tmp_path / "el"))
    with (pack / "README.md").open("r+b") as handle:
        handle.truncate(1 << 40)
    with pytest.raises(GraftError, match=r"README\.md has 1,099,511,627,776 bytes"):
        push(PushOptions(thing=pack, destination=str(tmp_path / "public")))
    assert not (tmp_path / "public").exists()


def test_a_damaged_pack_is_not_indexed(public: Path) -> None:
    before = (public / INDEX).read_bytes()
    (public / "greek" / "el-source" / "subwords.model").write_bytes(b"x")
    with pytest.raises(CheckpointError):
        write_index(public)
    assert (public / INDEX).read_bytes() == before


def test_names_that_could_not_be_asked_for_are_refused(public: Path) -> None:
    shutil.copytree(public / "greek" / "el-source", public / "two words")
    with pytest.raises(GraftError, match="two words"):
        write_index(public)


def test_the_commands_tell_one_story(graftmt: Any, packs: Path, base: Path, tmp_path: Path) -> None:
    folder, here = tmp_path / "public", tmp_path / "here"
    for thing, name in ((packs / "el-source", "el"), (packs / "uk-target", "uk.graftpack"), (base, "base")):
        assert graftmt("push", str(thing), str(folder), "--name", name).code == 0
    shown = graftmt("packs", "index", str(folder))
    assert shown.code == 0 and "3 bases and packs" in shown.stdout
    listed = graftmt("packs", "list", str(folder))
    assert "el" in listed.stdout and "cc-by-4.0" in listed.stdout and "46.1 (2)" in listed.stdout
    pulled = graftmt("pull", str(folder), "el", "-o", str(here / "el"), "-b", str(base), "--json", "-q")
    assert pulled.code == 0 and json.loads(pulled.stdout)["languages"] == ["el"] and pulled.stderr == ""
    text = graftmt("translate", "-b", str(base), "-p", str(here / "el"), "-s", "el", "-t", "en", stdin="καλο\n".encode())
    assert text.code == 0


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([], ["base", "greek/el-source", "uk-target"]),
        (["--language", "el"], ["greek/el-source"]),
        (["--language", "fr"], ["base"]),
        (["--side", "target"], ["uk-target"]),
        (["--licence", "CC-BY"], ["greek/el-source"]),
        (["--min-chrf", "40"], ["greek/el-source"]),
        (["--min-chrf", "50"], []),
        (["--base", "0" * 16], []),
    ],
)
def test_a_list_can_be_narrowed(graftmt: Any, public: Path, options: list[str], names: list[str]) -> None:
    found = json.loads(graftmt("packs", "list", str(public), "--json", *options).stdout)
    assert sorted(offer["name"] for offer in found["offers"]) == names


def test_a_list_shows_what_fits_a_base(graftmt: Any, web: WebFolder, base: Path, graft_base: Callable[..., Path]) -> None:
    def names(base: Path) -> set[str]:
        found = graftmt("packs", "list", web.address, "--base", str(base), "--json")
        return {offer["name"] for offer in json.loads(found.stdout)["offers"]}

    assert names(base) == {"base", "greek/el-source", "uk-target"}
    assert names(graft_base("post")) == set()


def test_errors_are_one_paragraph(graftmt: Any, web: WebFolder, tmp_path: Path) -> None:
    refused = graftmt("pull", web.address, "greek/el-source", "-o", str(tmp_path / "x"), "--max-size", "1KB")
    assert refused.code == 1 and "--max-size" in refused.stderr
    assert graftmt("pull", web.address, "x", "--max-size", "much").code == 1
    assert graftmt("pull", f"{web.address}/none", "x").code == 1
    assert "graftmt packs index" in graftmt("packs", "list", f"{web.address}/none").stderr
