"""The card of a pack: what programs read of it is checked by name, the rest may be anything and decides nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.base import Base
from graftmt.errors import CheckpointError
from graftmt.packs import Pack, load_pack, read_pack_document, save_pack
from graftmt.packs.card import pack_card

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
