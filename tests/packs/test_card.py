"""The card of a pack: what programs read of it is checked by name, the rest may be anything and decides nothing.

It says where a pack comes from; packs of before, without any of that, stay readable.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.adding.add_options import AddOptions
from graftmt.base import Base
from graftmt.errors import CheckpointError, ConfigError
from graftmt.packs import Pack, load_pack, read_pack_document, save_pack
from graftmt.packs.card import folder_name, pack_card, provenance

SCORE = {"bleu": 1.5, "chrf": 2, "lines": 3}
SAMPLE = {"direction": "el-en", "source": "a", "translation": "b", "reference": "c"}


@pytest.fixture(scope="module")
def stored(base: Base, make_pack: Callable[..., Pack], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Read only."""
    folder = tmp_path_factory.mktemp("stored") / "el-source"
    save_pack(make_pack(base, "source"), folder, base.model.config)
    return folder


@pytest.fixture
def with_card(stored: Path, tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    def change(card: dict[str, Any]) -> Path:
        folder = Path(shutil.copytree(stored, tmp_path / "pack"))
        document = json.loads((folder / "pack.json").read_text(encoding="utf-8"))
        (folder / "pack.json").write_text(json.dumps({**document, "card": card}), encoding="utf-8")
        return folder

    return change


@pytest.mark.parametrize(
    ("card", "field"),
    [
        ({"initialisation": "text"}, "card.initialisation"),
        ({"initialisation": {"overlap": "many"}}, "card.initialisation.overlap"),
        ({"version": "1"}, "card.version"),
        ({"version": 10**50}, "card.version"),
        ({"parent": ["a"]}, "card.parent"),
        ({"parent": {}}, "card.parent.fingerprint"),
        ({"parent": {"fingerprint": 7}}, "card.parent.fingerprint"),
        ({"parent": {"fingerprint": "f", "version": []}}, "card.parent.version"),
        ({"parent": {"fingerprint": "f", "scores_here": {"el-en": {"chrf": "high"}}}}, "card.parent.scores_here.el-en.chrf"),
        ({"scores": [SCORE]}, "card.scores"),
        ({"scores": {"el-en": 7}}, "card.scores.el-en"),
        ({"scores": {"el-en": {"bleu": 1}}}, "card.scores.el-en.chrf"),
        ({"scores": {"el-en": {**SCORE, "bleu": None}}}, "card.scores.el-en.bleu"),
        ({"scores": {"el-en": {**SCORE, "bleu": 10**400}}}, "card.scores.el-en.bleu"),
        ({"scores": {"el-en": {**SCORE, "pivot": "en"}}}, "card.scores.el-en.pivot"),
        ({"scores": {"el-en": {**SCORE, "pivot": {"through": "en"}}}}, "card.scores.el-en.pivot.chrf"),
        ({"scores": {"el-en": {**SCORE, "route": 7}}}, "card.scores.el-en.route"),
        ({"samples": {"0": SAMPLE}}, "card.samples"),
        ({"samples": ["a sample"]}, "card.samples.0"),
        ({"samples": [SAMPLE, {**SAMPLE, "source": None}]}, "card.samples.1.source"),
        ({"partners": "en"}, "card.partners"),
        ({"partners": [["en"]]}, "card.partners.0"),
        ({"few": {"en": 1}}, "card.few"),
        ({"training_seconds": "long"}, "card.training_seconds"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(with_card: Callable[..., Path], card: dict[str, Any], field: str) -> None:
    folder = with_card(card)
    for read in (load_pack, read_pack_document):
        with pytest.raises(CheckpointError) as caught:
            read(folder)
        assert field in str(caught.value) and str(folder) in str(caught.value)


@pytest.mark.parametrize(
    "card",
    [
        {},
        {"scores": None, "samples": None, "parent": None, "anything": [{"at": "all"}], "text": 7, "config": "none"},
        {
            "initialisation": {"overlap": 3},
            "version": 2,
            "parent": {"fingerprint": "f", "version": 1, "scores": None, "scores_here": {"el-en": SCORE}},
            "scores": {"el-en": SCORE, "el-fr": {**SCORE, "zero_shot": True, "pivot": {"through": "en", "chrf": 4.0}}},
            "samples": [SAMPLE],
            "partners": ["en"],
            "few": [],
        },
    ],
    ids=["empty", "nothing", "all"],
)
def test_a_sound_card_is_read_and_can_be_written(with_card: Callable[..., Path], base: Base, card: dict[str, Any]) -> None:
    folder = with_card(card)
    pack = load_pack(folder)
    assert pack.card == card
    assert pack_card(read_pack_document(folder))
    save_pack(pack, folder, base.model.config)
    assert load_pack(folder).card == card


def test_a_card_that_could_not_be_read_is_not_written(base: Base, make_pack: Callable[..., Pack], tmp_path: Path) -> None:
    pack = make_pack(base, "source")
    pack.card["version"] = "two"
    with pytest.raises(CheckpointError, match=r"card\.version"):
        save_pack(pack, tmp_path / "pack", base.model.config)
    assert not (tmp_path / "pack").exists()


ORIGIN = {"name": "facebook/m2m100_418M", "family": "M2M-100", "revision": "55c2e61", "licence": "mit", "other": "left out"}


@pytest.fixture
def known_base(graft_base: Callable[..., Path]) -> Base:
    found = Base.load(graft_base())
    found.card["origin"] = ORIGIN
    return found


def stored_with(base: Base, make_pack: Callable[..., Any], path: Path, **card: Any) -> Path:
    pack = make_pack(base)
    pack.card |= card
    save_pack(pack, path, base.model.config)
    return path


def test_the_base_and_its_licence_are_handed_on(known_base: Base) -> None:
    assert provenance(known_base, ("el",))["made_for"] == {key: value for key, value in ORIGIN.items() if key != "other"}


@pytest.mark.parametrize(
    ("code", "words"), [("el", "Greek"), ("kab", "Kabyle"), ("zh_Hant", "Chinese (Traditional)"), ("x-mine", "x-mine")]
)
def test_languages_are_named_in_words(known_base: Base, code: str, words: str) -> None:
    pytest.importorskip("language_data")
    assert provenance(known_base, (code,))["language_names"] == {code: words}


def test_without_the_library_the_code_is_the_name(known_base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graftmt.text.languages.is_installed", lambda: False)
    assert provenance(known_base, ("el",))["language_names"] == {"el": "el"}


def test_a_base_without_an_origin_has_the_name_of_its_folder(graft_base: Callable[..., Path]) -> None:
    base = Base.load(graft_base())
    assert provenance(base, ("el",))["made_for"]["name"] == folder_name(base.folder.parts)  # type: ignore[union-attr]
    assert folder_name(("/", "runs", "demo", "base")) == "demo/base"
    assert folder_name(("models", "nllb")) == "nllb"
    assert folder_name(("base",)) == "base"


def test_the_readme_says_it_and_inspect_shows_it(known_base: Base, make_pack, tmp_path: Path, graftmt) -> None:
    pytest.importorskip("language_data")
    facts = {"licence": "cc-by-4.0", "author": "Ελένη | Co", "trained_on": ["ted", "text.el"]}
    path = stored_with(known_base, make_pack, tmp_path / "pack", **provenance(known_base, ("el",)), **facts)
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


def test_a_pack_of_before_is_read_and_has_the_same_fingerprint(known_base: Base, make_pack, tmp_path: Path) -> None:
    before = load_pack(stored_with(known_base, make_pack, tmp_path / "before"))
    now = load_pack(stored_with(known_base, make_pack, tmp_path / "now", **provenance(known_base, ("el",)), licence="mit"))
    assert before.fingerprint == now.fingerprint
    assert "# A graftmt language pack: el as source" in (tmp_path / "before" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("value", ["", "  ", "two\nlines", "x" * 201, "red\x1b[31m"])
@pytest.mark.parametrize("name", ["licence", "author"])
def test_what_is_stated_is_one_printable_line(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"--{name}"):
        AddOptions(languages=("el",), base=Path("base"), train=("corpus",), **{name: value})  # type: ignore[arg-type]
