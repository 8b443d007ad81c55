"""What was given for something else is called by its name, with the command it is for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.base import read_base_document
from graftmt.data import Corpus
from graftmt.errors import DataError, GraftError
from graftmt.packs import read_pack_document
from graftmt.places import begin_run
from graftmt.prepare.output_folder import open_splits


def test_a_pack_is_no_base(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "pack.json").write_text(json.dumps({"kind": "pack"}), encoding="utf-8")
    (tmp_path / "el.graftpack").write_bytes(b"PK\5\6" + 18 * b"\0")
    for name in ("pack", "el.graftpack"):
        with pytest.raises(GraftError, match=rf"is a pack.*-p .*{name}"):
            read_base_document(tmp_path / name)


def test_a_model_of_hugging_face_is_to_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nllb").mkdir()
    (tmp_path / "nllb" / "config.json").write_text('{"model_type": "m2m_100"}', encoding="utf-8")
    with pytest.raises(GraftError, match=r"Hugging Face \(m2m_100\).*graftmt import .*nllb -o nllb-base"):
        read_base_document(tmp_path / "nllb")
    with pytest.raises(GraftError, match=r"Hugging Face \(m2m_100\).*graftmt add"):
        read_pack_document(tmp_path / "nllb")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GraftError, match="graftmt import facebook/nllb-200-distilled-600M -o nllb-200-distilled-600M"):
        read_base_document(Path("facebook/nllb-200-distilled-600M"))


def test_an_export_is_neither(tmp_path: Path) -> None:
    """Unless it has a text that the import reads."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "config.json").write_text("{}", encoding="utf-8")
    card = {"kind": "export", "to": "ctranslate2"}
    (tmp_path / "out" / "export.json").write_text(json.dumps(card), encoding="utf-8")
    with pytest.raises(GraftError, match=r"exported for another program \(ctranslate2\).*the base that it was made of"):
        read_base_document(tmp_path / "out")
    with pytest.raises(GraftError, match=r"exported for another program \(ctranslate2\).*the packs that it was made of"):
        read_pack_document(tmp_path / "out")
    (tmp_path / "out" / "export.json").write_text(json.dumps({**card, "text": {}}), encoding="utf-8")
    with pytest.raises(GraftError, match="graftmt import"):
        read_base_document(tmp_path / "out")


def test_a_base_is_found_inside_what_was_given(tmp_path: Path) -> None:
    (tmp_path / "demo" / "base").mkdir(parents=True)
    (tmp_path / "demo" / "base" / "base.json").write_text('{"kind": "base"}', encoding="utf-8")
    with pytest.raises(GraftError, match=r"-b .*demo/base"):
        read_base_document(tmp_path / "demo")
    with pytest.raises(GraftError, match=r"demo/base is a base; give it with -b"):
        read_pack_document(tmp_path / "demo" / "base")


def test_the_base_of_a_training_that_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "runs" / "mine"
    (run / "checkpoints").mkdir(parents=True)
    begin_run(run, "base")
    (run / "log.jsonl").touch()
    for asked in (run, run / "base"):
        with pytest.raises(GraftError, match=r"mine is not finished\. Rerun the command that began it"):
            read_base_document(asked)
    monkeypatch.chdir(run.parent)
    with pytest.raises(GraftError, match=r"mine is not finished\. Rerun the command that began it"):
        read_base_document(Path("mine/base"))
    begin_run(run, "pack")  # which makes no base
    for asked in (run, run / "base"):
        with pytest.raises(GraftError) as error:
            read_base_document(asked)
        assert "not finished" not in str(error.value)


def test_a_table_is_no_corpus(tmp_path: Path) -> None:
    for name, command in (("pairs.tsv", "prepare tsv"), ("memory.tmx", "prepare tmx"), ("text.txt", "a folder with a file")):
        (tmp_path / name).write_text("x\n", encoding="utf-8")
        with pytest.raises(DataError, match=command):
            Corpus.open(tmp_path / name, "test")
        with pytest.raises(DataError, match=command):
            open_splits(tmp_path / name)


def test_packs_are_one_argument(
    graftmt: Callable[..., Any], graft_base: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pack.json").write_text('{"kind": "pack"}', encoding="utf-8")
    result = graftmt("translate", "-b", str(graft_base()), "-p", "a", "b", "-s", "en", "-t", "fr")
    assert result.code == 1 and "with commas between them: -p a,b" in result.stderr


def test_text_is_no_argument_of_translate(graftmt: Callable[..., Any], graft_base: Callable[..., Path]) -> None:
    result = graftmt("translate", "-b", str(graft_base()), "-s", "en", "-t", "fr", "Good morning")
    assert result.code == 1
    assert "echo 'Good morning' | graftmt translate -b " in result.stderr and "-s en -t fr" in result.stderr


def test_a_pack_that_was_forgotten(graftmt: Callable[..., Any], graft_base: Callable[..., Path]) -> None:
    result = graftmt("translate", "-b", str(graft_base()), "-s", "el", "-t", "en", stdin=b"")
    assert result.code == 1 and "--packs PACK" in result.stderr and "graftmt add el" in result.stderr
