from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from graftmt.base import Base, read_base_text
from graftmt.errors import CheckpointError, DataError
from graftmt.model import ModelConfig
from graftmt.packs import Pack, load_pack, save_pack
from graftmt.text import Layout
from graftmt.text.kinds import text_kind
from graftmt.text.stored import check_text, files_to_store


def document(folder: Path, name: str = "base.json") -> dict[str, Any]:
    return dict(json.loads((folder / name).read_text(encoding="utf-8")))


def test_a_base_is_stored_and_read_with_the_files_of_its_kind(any_base: Base, tmp_path: Path) -> None:
    mark = any_base.save(tmp_path / "base")
    found = document(tmp_path / "base")
    assert found["text"]["kind"] == any_base.tokenizer.kind
    assert found["text"]["files"] == sorted(any_base.tokenizer.files())
    names = {path.name for path in (tmp_path / "base").iterdir()}
    assert names == {"base.json", "model.safetensors", "README.md", *any_base.tokenizer.files()}
    again = Base.load(tmp_path / "base")
    assert (again.fingerprint, again.tokenizer, again.languages) == (mark, any_base.tokenizer, any_base.languages)
    assert read_base_text(tmp_path / "base") == any_base.tokenizer
    for name, tensor in any_base.model.state_dict().items():
        assert torch.equal(tensor, again.model.state_dict()[name]), name
    assert again.save(tmp_path / "base") == mark  # takes its own place, whose files are known by the document


def test_ours_says_nothing_of_its_text(graft_base: Callable[..., Path]) -> None:
    assert "text" not in document(graft_base())


@pytest.mark.parametrize("suffix", ["", ".graftpack"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_pack_is_stored_and_read(
    any_base: Base, make_pack: Callable[..., Pack], tmp_path: Path, side: str, suffix: str
) -> None:
    pack = make_pack(any_base, side, "el", "characters")
    path = tmp_path / f"pack{suffix}"
    mark = save_pack(pack, path, any_base.model.config)
    again = load_pack(path)
    assert (again.fingerprint, again.tokenizer) == (mark, pack.tokenizer)
    assert all(torch.equal(again.parameters[name], parameter) for name, parameter in pack.parameters.items())
    assert save_pack(again, path, any_base.model.config) == mark


def test_a_damaged_text_is_noticed_before_it_is_read(make_base: Callable[..., Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(make_base("marian"), tmp_path / "base"))
    (folder / "alphabet.json").write_text("[")
    with pytest.raises(CheckpointError, match=r"alphabet\.json"):
        Base.load(folder)
    with pytest.raises(DataError, match="damaged"):
        Base.load(folder, verify=False)
    (folder / "alphabet.json").unlink()
    with pytest.raises(DataError, match=r"alphabet\.json"):
        Base.load(folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [("languages", ["en", "fr"]), ("code_placement", "decoder"), ("rows", 30), ("target_rows", 30)],
)
def test_a_document_that_says_other_things_than_the_text_is_refused(
    make_base: Callable[..., Path], tmp_path: Path, field: str, value: Any
) -> None:
    folder = Path(shutil.copytree(make_base("marian"), tmp_path / "base"))
    changed = document(folder) | {field: value}
    (folder / "base.json").write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(CheckpointError):
        Base.load(folder, verify=False)


@pytest.mark.parametrize("kind", ["broken", "missing", "no-such-kind"])
def test_a_kind_that_is_not_there_is_named_and_the_others_work(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(CheckpointError, match=rf"{kind}.*inline-cased-bpe.*, characters, two-alphabets"):
        text_kind(kind)
    assert text_kind("characters").name == "characters"


def test_what_would_not_come_back_is_not_stored(characters: Any, text_of: Callable[..., Any], tmp_path: Path) -> None:
    class Renamed(characters.CharacterText):  # type: ignore[misc, name-defined]
        def files(self) -> dict[str, bytes]:
            return {"../alphabet.json": b"[]"}

    text = Renamed(text_of("en").alphabet, ("en", "fr"), Layout())
    with pytest.raises(DataError, match=r"\.\./alphabet\.json"):
        files_to_store(text)
    base = Base.create(ModelConfig(model_dim=8, ffn_dim=8, heads=1, encoder_layers=1, decoder_layers=1), text)
    with pytest.raises(DataError):
        base.save(tmp_path / "base")
    assert not (tmp_path / "base").exists()


def test_a_text_that_breaks_its_promises_is_refused(characters: Any) -> None:
    class Twice(characters.CharacterText):  # type: ignore[misc, name-defined]
        padding_id = 0

    check_text(characters.CharacterText(("▁", "a"), ("en",), Layout()), "here")
    with pytest.raises(DataError, match=r"here.*characters.*<pad>"):
        check_text(Twice(("▁", "a"), ("en",), Layout()), "here")
    with pytest.raises(DataError, match="symbols"):
        check_text(characters.CharacterText(("a", "a"), ("en",), Layout()), "here")
