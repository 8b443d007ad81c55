"""What comes out of an import: precision, licence, origin, shards, ids of Hugging Face, the command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peers import foreign_models
from typer.testing import CliRunner

from graftmt import Base, GraftError, Translator, import_model
from graftmt.cli.app import app
from graftmt.devices import DTYPES
from graftmt.errors import ConfigError
from graftmt.interop.importing.origin import licence_in
from graftmt.interop.importing.sources import find_source
from graftmt.tensor_files import read_tensors


@pytest.fixture
def model(imported: Callable[[str], Any], tmp_path: Path) -> Path:
    shutil.copytree(imported("m2m-100").theirs.folder, tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_weights_are_kept_as_they_are_stored(dtype: str, tmp_path: Path) -> None:
    from transformers import M2M100ForConditionalGeneration

    made = foreign_models.m2m_100(tmp_path / "full")
    made.model.to(DTYPES[dtype]).save_pretrained(tmp_path / "full")
    import_model(tmp_path / "full", tmp_path / "base")
    tensors = read_tensors(tmp_path / "base" / "model.safetensors", "the base")
    assert {tensor.dtype for tensor in tensors.values()} == {DTYPES[dtype]}
    assert json.loads((tmp_path / "base" / "base.json").read_text())["dtype"] == dtype
    base = Base.load(tmp_path / "base")
    theirs = M2M100ForConditionalGeneration.from_pretrained(tmp_path / "full", dtype=torch.float32).eval()
    ids = torch.tensor([[5, 9, 14, 2]])
    with torch.inference_mode():
        found = theirs(input_ids=ids, decoder_input_ids=ids, use_cache=False).logits
        torch.testing.assert_close(base.model(ids, ids), found, atol=1e-4, rtol=0)
    import_model(tmp_path / "full", tmp_path / "wide", dtype="fp32")
    wide = read_tensors(tmp_path / "wide" / "model.safetensors", "the base")
    assert all(torch.equal(wide[name], tensor.float()) for name, tensor in tensors.items())


def test_shards_and_older_files_give_the_same_base(model: Path, imported: Callable[[str], Any], tmp_path: Path) -> None:
    found = imported("m2m-100")
    found.theirs.model.save_pretrained(tmp_path / "shards", max_shard_size="60KB")
    assert (tmp_path / "shards" / "model.safetensors.index.json").exists()
    (model / "model.safetensors").unlink()
    for path in (tmp_path / "shards").glob("model-*"):
        shutil.copy(path, model)
    shutil.copy(tmp_path / "shards" / "model.safetensors.index.json", model)
    assert import_model(model, tmp_path / "a").fingerprint == found.ours.fingerprint
    for path in model.glob("model*"):
        path.unlink()
    torch.save(found.theirs.model.state_dict(), model / "pytorch_model.bin")  # with every copy of the matrix
    assert import_model(model, tmp_path / "b").fingerprint == found.ours.fingerprint


def test_a_tokenizer_json_is_enough(imported: Callable[[str], Any], tmp_path: Path) -> None:
    theirs = imported("nllb").theirs.folder
    assert not (theirs / "sentencepiece.bpe.model").exists()
    assert (theirs / "tokenizer.json").exists()


def test_licence_and_origin_are_on_the_card(model: Path, tmp_path: Path) -> None:
    (model / "README.md").write_text("---\nlanguage:\n- en\nlicense: cc-by-nc-4.0\n---\n# A model\n", encoding="utf-8")
    import_model(model, tmp_path / "base")
    base = Base.load(tmp_path / "base")
    assert base.card["origin"] == {"name": "model", "family": "M2M-100", "licence": "cc-by-nc-4.0"}
    card = (tmp_path / "base" / "README.md").read_text(encoding="utf-8")
    assert card.startswith('---\nlicense: "cc-by-nc-4.0"\n---\n')
    assert licence_in(tmp_path / "base") == "cc-by-nc-4.0"
    import_model(model, tmp_path / "named", licence="MIT", name="mine | yours")
    named = Base.load(tmp_path / "named")
    assert (named.card["origin"]["licence"], named.card["origin"]["name"]) == ("MIT", "mine | yours")
    assert named.fingerprint == base.fingerprint  # the card decides nothing


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        ("no front matter", None),
        ("---\nlicense: [mit, apache-2.0]\n---\n", "mit, apache-2.0"),
        ("---\nlicense: other\nlicense_name: llama\n---\n", "llama"),
        ("---\nlicense: mit\n", None),
        ("---\n: : [\n---\n", None),
        ("---\nlicense: {a: 1}\n---\n", None),
    ],
)
def test_licences_in_model_cards(text: str, licence: str | None, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    assert licence_in(tmp_path) == licence


def test_small100_is_known_by_its_name_or_said(model: Path, tmp_path: Path) -> None:
    model.rename(tmp_path / "SMaLL-100-mine")
    named = import_model(tmp_path / "SMaLL-100-mine", tmp_path / "a")
    assert named.tokenizer.layout.source_code == "target"
    (tmp_path / "SMaLL-100-mine").rename(model)
    assert import_model(model, tmp_path / "b", family="small100").fingerprint == named.fingerprint
    assert import_model(model, tmp_path / "c").tokenizer.layout.source_code == "source"


def test_a_model_without_a_network_says_how_to_bring_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(GraftError, match="hf download someone/some-model --local-dir some-model"):
        import_model("someone/some-model", tmp_path / "base")


def test_a_model_in_the_cache_is_found_by_its_id(monkeypatch: pytest.MonkeyPatch, model: Path, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "cache" / "models--someone--some-model"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    (repository / "snapshots").mkdir()
    model.rename(repository / "snapshots" / commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    found = find_source("someone/some-model")
    assert (found.name, found.revision) == ("someone/some-model", commit)
    base = import_model("someone/some-model", tmp_path / "base")
    assert base.card["origin"]["revision"] == commit


def test_the_command(model: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["import", str(model), "-o", str(tmp_path / "base"), "--licence", "mit"])
    assert result.exit_code == 0, result.output
    for word in ("M2M-100", "reads 100 languages", "licence: mit", "graftmt add LANG"):
        assert word in result.output, result.output
    result = CliRunner().invoke(app, ["import", str(model), "-o", str(tmp_path / "b"), "--json", "-q"])
    document = json.loads(result.stdout)
    assert document["fingerprint"] == Base.load(tmp_path / "base").fingerprint
    assert (document["family"], document["dtype"]) == ("m2m-100", "fp32")
    assert Translator(tmp_path / "base").translate(["Hello", ""], source="en", target="ru")[1] == ""


def test_languages_of_a_model_of_one_way_may_be_named_in_words(imported: Callable[[str], Any], tmp_path: Path) -> None:
    pytest.importorskip("langcodes")
    folder = str(imported("marian-codes").theirs.folder)
    command = ["import", folder, "-o", str(tmp_path / "base")]
    result = CliRunner().invoke(app, [*command, "--from", "English, German,nl"])
    assert result.exit_code == 0, result.output
    base = Base.load(tmp_path / "base")
    assert base.source_languages == ("en", "de", "nl")
    written = base.target_languages[0]
    assert "reads 3 languages (en, de, nl)" in result.stdout and "If it reads more" not in result.stdout
    assert (
        f"--side source --with {written}; or " in " ".join(result.stdout.split()) and "--side target --with en" in result.stdout
    )
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "base")]).stdout
    assert "reads: en, de, nl" in shown and f"writes: {written}" in shown
    with pytest.raises(ConfigError, match=r"--to: .* has codes of its own for what it writes"):
        import_model(folder, tmp_path / "other", target_languages="xx")
    assert not (tmp_path / "other").exists()


def test_a_model_whose_files_name_one_language_may_read_more(imported: Callable[[str], Any], tmp_path: Path) -> None:
    folder = str(imported("marian-codes").theirs.folder)
    result = CliRunner().invoke(app, ["import", folder, "-o", str(tmp_path / "base")])
    assert result.exit_code == 0 and "reads 1 language (" in result.stdout
    assert "If it reads more, import it again" in " ".join(result.stdout.split())
