"""A card says where a pack comes from; packs of before, without any of it, stay readable."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.adding.add_options import AddOptions
from graftmt.base import Base
from graftmt.errors import ConfigError
from graftmt.packs import load_pack, save_pack
from graftmt.packs.provenance import folder_name, provenance

ORIGIN = {"name": "facebook/m2m100_418M", "family": "M2M-100", "revision": "55c2e61", "licence": "mit", "other": "left out"}


@pytest.fixture
def base(graft_base: Callable[..., Path]) -> Base:
    found = Base.load(graft_base())
    found.card["origin"] = ORIGIN
    return found


def stored(base: Base, make_pack: Callable[..., Any], path: Path, **card: Any) -> Path:
    pack = make_pack(base)
    pack.card |= card
    save_pack(pack, path, base.model.config)
    return path


def test_the_base_and_its_licence_are_handed_on(base: Base) -> None:
    assert provenance(base, ("el",))["made_for"] == {key: value for key, value in ORIGIN.items() if key != "other"}


@pytest.mark.parametrize(
    ("code", "words"), [("el", "Greek"), ("kab", "Kabyle"), ("zh_Hant", "Chinese (Traditional)"), ("x-mine", "x-mine")]
)
def test_languages_are_named_in_words(base: Base, code: str, words: str) -> None:
    pytest.importorskip("language_data")
    assert provenance(base, (code,))["language_names"] == {code: words}


def test_without_the_library_the_code_is_the_name(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graftmt.text.languages.is_installed", lambda: False)
    assert provenance(base, ("el",))["language_names"] == {"el": "el"}


def test_a_base_without_an_origin_has_the_name_of_its_folder(graft_base: Callable[..., Path]) -> None:
    base = Base.load(graft_base())
    assert provenance(base, ("el",))["made_for"]["name"] == folder_name(base.folder.parts)  # type: ignore[union-attr]
    assert folder_name(("/", "runs", "demo", "base")) == "demo/base"
    assert folder_name(("models", "nllb")) == "nllb"
    assert folder_name(("base",)) == "base"


def test_the_readme_says_it_and_inspect_shows_it(base: Base, make_pack, tmp_path: Path, graftmt) -> None:
    pytest.importorskip("language_data")
    facts = {"licence": "cc-by-4.0", "author": "Ελένη | Co", "trained_on": ["ted", "text.el"]}
    path = stored(base, make_pack, tmp_path / "pack", **provenance(base, ("el",)), **facts)
    readme = (path / "README.md").read_text(encoding="utf-8")
    assert readme.startswith('---\nlicense: "cc-by-4.0"\n---\n')
    assert "Greek (el) as source" in readme
    assert "| for the base | facebook/m2m100_418M (M2M-100, 55c2e61) |" in readme
    assert "| licence of the base | mit |" in readme and "| trained on | ted, text.el |" in readme
    assert "| author | Ελένη \\| Co |" in readme and readme.count("| licence | cc-by-4.0 |") == 1
    assert load_pack(path).card["author"] == "Ελένη | Co"
    shown = json.loads(graftmt("inspect", str(path), "--json").stdout)
    assert shown["licence"] == "cc-by-4.0" and shown["language_names"] == {"el": "Greek"}
    assert shown["made_for"]["licence"] == "mit"


def test_a_pack_of_before_is_read_and_has_the_same_fingerprint(base: Base, make_pack, tmp_path: Path) -> None:
    before = load_pack(stored(base, make_pack, tmp_path / "before"))
    now = load_pack(stored(base, make_pack, tmp_path / "now", **provenance(base, ("el",)), licence="mit"))
    assert before.fingerprint == now.fingerprint
    assert "# A graftmt language pack: el as source" in (tmp_path / "before" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("value", ["", "  ", "two\nlines", "x" * 201, "red\x1b[31m"])
@pytest.mark.parametrize("name", ["licence", "author"])
def test_what_is_stated_is_one_printable_line(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"--{name}"):
        AddOptions(languages=("el",), base=Path("base"), train=("corpus",), **{name: value})  # type: ignore[arg-type]
