"""Packs that come, go, change and break while requests are served: each change is whole, and what is bad is reported."""

from __future__ import annotations

import shutil
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from patience import until
from server.conftest import DEMO, Live

from graftmt.base import Base
from graftmt.errors import DataError
from graftmt.packs import load_pack
from graftmt.server.shelf import Shelf

GREEK, UKRAINIAN = (DEMO / "packs" / name for name in ("el-source.graftpack", "uk-target.graftpack"))


def test_a_pack_appears_and_disappears_and_earlier_catalogs_stay_as_they_were(demo_base: Base, tmp_path: Path) -> None:
    shelf = Shelf(demo_base, [tmp_path])
    before = shelf.catalog
    assert not shelf.refresh() and "el" not in before.languages
    shutil.copy(GREEK, tmp_path)
    assert not shelf.refresh()  # it has just changed: perhaps it is still being copied
    assert shelf.refresh()
    during = shelf.catalog
    assert during.languages["el"].new and during.languages["el"].reads and not during.languages["el"].writes
    assert during.version > before.version and "el" not in before.languages
    (tmp_path / GREEK.name).unlink()
    assert shelf.refresh() and "el" not in shelf.catalog.languages
    # A request that began with the pack ends with it.
    assert during.translator.translate(["Δευτέρα"], source="el", target="en") == ["Monday"]


def test_compositions_outlive_changes_that_do_not_concern_them(demo_base: Base, pack_folder: Path) -> None:
    shelf = Shelf(demo_base, [pack_folder])
    pairs = [("en", "fr"), ("en", "uk"), ("el", "uk"), ("el", "en")]
    old = {pair: shelf.catalog.translator.composition(*pair) for pair in pairs}
    (pack_folder / GREEK.name).unlink()
    assert shelf.refresh()
    new = shelf.catalog.translator
    assert new.composition("en", "fr") is old["en", "fr"] and new.composition("en", "uk") is old["en", "uk"]
    shutil.copy(GREEK, pack_folder)
    shelf.refresh()
    assert shelf.refresh()
    assert shelf.catalog.translator.composition("el", "uk") is not old["el", "uk"]  # the pack was loaded anew


def test_folders_of_packs_are_packs_too(demo_base: Base, tmp_path: Path) -> None:
    pack = load_pack(GREEK)
    pack.save(tmp_path / "greek")
    (tmp_path / ".hidden.graftpack").write_bytes(b"in the making")
    (tmp_path / "notes.txt").write_text("not a pack")
    catalog = Shelf(demo_base, [tmp_path, UKRAINIAN]).catalog
    assert set(catalog.packs) == {"greek", "uk-target"} and not catalog.problems
    assert catalog.kind_of("el", "uk") == "composed" and catalog.is_zero_shot("el", "uk")
    assert not catalog.is_zero_shot("en", "uk") and catalog.is_zero_shot("fr", "uk") and not catalog.is_zero_shot("en", "fr")


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["garbage", "truncated", "flipped", "empty", "other base", "no base"])
def test_a_bad_pack_is_reported_and_the_rest_is_served(demo_base: Base, tmp_path: Path, how: str) -> None:
    shutil.copy(UKRAINIAN, tmp_path)
    bad = tmp_path / "bad.graftpack"
    shutil.copy(GREEK, bad)
    if how == "garbage":
        bad.write_bytes(b"PK" + b"x" * 1000)
    elif how == "truncated":
        bad.write_bytes(bad.read_bytes()[:300_000])
    elif how == "flipped":
        damage(bad)
    elif how == "empty":
        bad.write_bytes(b"")
    else:
        pack = load_pack(GREEK)
        pack.base = "0" * 64
        bad.unlink()
        pack.save(bad)
    shelf = Shelf(demo_base, [tmp_path])
    assert set(shelf.catalog.packs) == {"uk-target"} and list(shelf.catalog.problems) == [bad.name]
    assert shelf.catalog.translator.translate(["Monday"], source="en", target="uk") == ["понеділок"]
    shutil.copy(GREEK, bad)  # mended
    shelf.refresh()
    assert shelf.refresh() and not shelf.catalog.problems and "el" in shelf.catalog.languages


def test_a_pack_that_is_damaged_in_service_stays_as_it_was_loaded(demo_base: Base, pack_folder: Path) -> None:
    shelf = Shelf(demo_base, [pack_folder])
    damage(pack_folder / GREEK.name)
    shelf.refresh()
    assert shelf.refresh()
    assert "stays in service" in shelf.catalog.problems[GREEK.name]
    assert shelf.catalog.translator.translate(["Δευτέρα"], source="el", target="en") == ["Monday"]


def test_of_two_packs_for_a_language_the_higher_version_is_the_default(demo_base: Base, pack_folder: Path) -> None:
    newer = load_pack(GREEK)
    newer.card["version"] = 2
    newer.save(pack_folder / "zz.graftpack")
    catalog = Shelf(demo_base, [pack_folder]).catalog
    found = catalog.pack_for("el", "source")
    assert found is not None and found.name == "zz"
    assert catalog.chosen_pack("el", "source", "el-source") == "el-source"


def test_two_packs_with_one_name_are_told(demo_base: Base, pack_folder: Path) -> None:
    load_pack(GREEK).save(pack_folder / "el-source")
    catalog = Shelf(demo_base, [pack_folder]).catalog
    assert set(catalog.packs) == {"el-source", "uk-target"} and "rename" in next(iter(catalog.problems.values()))


def test_a_path_that_is_not_there_is_an_error(demo_base: Base, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing"):
        Shelf(demo_base, [tmp_path / "nothing"])


@pytest.mark.slow
def test_a_live_server_gains_and_loses_a_language_while_it_answers(
    start_server: Callable[..., Any], pack_folder: Path, tmp_path: Path
) -> None:
    """Other directions are translated all the while, and every answer is right."""
    aside = tmp_path / "aside.graftpack"
    (pack_folder / GREEK.name).rename(aside)
    with start_server(demo=False, base=DEMO / "base", packs=(pack_folder,)) as live:
        live.world.service.shelf.seconds = 0.05
        stop, wrong = threading.Event(), list[Any]()

        def ask() -> None:
            while not stop.is_set():
                found = live.translate(["Monday", "3 days ago"], "en", "uk")
                wrong.extend([found] if found != ["понеділок", "3 дні тому"] else [])

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        assert live.post("/translate", data={"q": "Δευτέρα", "source": "el", "target": "en"}).status_code == 400
        shutil.copy(aside, pack_folder / GREEK.name)
        wait_until(live, lambda codes: "el" in codes)
        assert live.translate("Δευτέρα", "el", "uk") == "понеділок"
        (pack_folder / "broken.graftpack").write_bytes(b"PK")
        (pack_folder / GREEK.name).unlink()
        wait_until(live, lambda codes: "el" not in codes)
        wait_until(live, lambda _: bool(live.get("/v1/packs").json()["problems"]))
        stop.set()
        for thread in threads:
            thread.join()
        assert wrong == []
        problem = live.get("/v1/packs").json()["problems"][0]
        assert problem["file"] == "broken.graftpack" and str(pack_folder) not in problem["problem"]


def wait_until(live: Live, fine: Callable[[set[str]], bool]) -> None:
    until(lambda: fine({entry["code"] for entry in live.get("/languages").json()}), every=0.025)


def test_the_shipped_packs_are_those_of_the_demo(demo_base: Base) -> None:
    from graftmt.demo.demo_packs import GREEK as greek
    from graftmt.demo.demo_packs import UKRAINIAN as ukrainian

    for plan, path in ((greek, GREEK), (ukrainian, UKRAINIAN)):
        pack = load_pack(path)
        assert (pack.languages, pack.side, str(pack.recipe)) == ((plan.language,), plan.side, plan.recipe)
        assert pack.base == demo_base.fingerprint and pack.card["steps"] == plan.steps
        with zipfile.ZipFile(path) as archive:
            assert "pack.json" in archive.namelist()
