"""What cannot be imported is refused by name with the reason, before memory is taken, and nothing is written."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from graftmt import GraftError, import_model
from graftmt.interop.importing.weights import read_index


@pytest.fixture
def copied(imported: Callable[[str], Any], tmp_path: Path) -> Path:
    """A folder of M2M-100 to be damaged."""
    shutil.copytree(imported("m2m-100").theirs.folder, tmp_path / "model")
    return tmp_path / "model"


def change(folder: Path, **values: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def refuse(folder: Path, *words: str, **options: Any) -> None:
    output = folder.parent / "base"
    with pytest.raises(GraftError) as error:
        import_model(folder, output, **options)
    for word in words:
        assert word in str(error.value), str(error.value)
    assert not output.exists()
    assert not list(folder.parent.glob(".*tmp*"))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"model_type": "nllb-moe"}, ["NLLB-MoE", "experts"]),
        ({"model_type": "t5"}, ["MADLAD", "relative position"]),
        ({"model_type": "llama"}, ["decoder-only"]),
        ({"model_type": "bert"}, ["encoder alone"]),
        ({"model_type": "something-new"}, ["something-new", "M2M-100"]),
        ({"activation_function": "gelu_new"}, ["gelu_new", "relu"]),
        ({"d_model": "wide"}, ["d_model", "wide"]),
        ({"encoder_layers": 3}, ["model.encoder.layers.2"]),
        ({"encoder_layers": 1}, ["model.encoder.layers.1", "do not have"]),
        ({"encoder_ffn_dim": 47}, ["(48, 32)", "(47, 32)"]),
        ({"encoder_layers": 10**9}, ["encoder_layers", "at most"]),
        ({"d_model": 16384, "encoder_ffn_dim": 2**18, "encoder_layers": 256}, ["16384"]),
        ({"quantization_config": {"bits": 4}}, ["quantised"]),
    ],
)
def test_another_architecture_is_refused_by_name(values: dict[str, Any], words: list[str], copied: Path) -> None:
    change(copied, **values)
    refuse(copied, *words)


def test_a_folder_without_anything_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refuse(tmp_path / "empty", "type", "NLLB-200")
    refuse(tmp_path / "missing", "no folder")


def test_missing_damaged_and_swapped_weights_are_refused(copied: Path) -> None:
    path = copied / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-100])
    refuse(copied, "model.safetensors", "truncated or damaged")
    path.unlink()
    refuse(copied, "model.safetensors", "none of the files")
    (copied / "tf_model.h5").write_bytes(b"x")
    refuse(copied, "TensorFlow")
    path.write_bytes(content)
    tensors = load_file(path)
    tensors["model.decoder.layers.0.fc1.bias"][0] = float("nan")
    save_file(tensors, path)
    refuse(copied, "model.decoder.layers.0.fc1.bias", "not finite")
    tensors["model.decoder.layers.0.fc1.bias"] = torch.zeros(64, dtype=torch.int8)
    save_file(tensors, path)
    refuse(copied, "int8")


def shard(folder: Path, names: tuple[str, str] = ("model-1.safetensors", "model-2.safetensors")) -> dict[str, str]:
    """The weights in two files with an index."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    places = {name: names[number % 2] for number, name in enumerate(sorted(tensors))}
    for file in names:
        save_file({name: tensors[name] for name, place in places.items() if place == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return places


def test_shards_that_lack_something_are_refused(copied: Path) -> None:
    places = shard(copied)
    import_model(copied, copied.parent / "whole")
    (copied / "model-2.safetensors").rename(copied.parent / "away")
    refuse(copied, "model-2.safetensors")
    (copied.parent / "away").rename(copied / "model-2.safetensors")
    (copied / "model-2.safetensors").write_bytes((copied / "model-2.safetensors").read_bytes()[:-8])
    refuse(copied, "model-2.safetensors", "truncated")
    del places["model.shared.weight"]
    (copied / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    refuse(copied, "model.shared.weight")


@pytest.mark.parametrize("name", ["../model.safetensors", "/etc/passwd", "a/b.safetensors", "..", "", 5, "a\\b"])
def test_an_index_leads_nowhere_else(name: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": {"model.shared.weight": name}}))
    with pytest.raises(GraftError, match="not the name of a file"):
        read_index(path)


class Payload:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return Path.touch, (self.path,)  # type: ignore[return-value]


@pytest.mark.parametrize("legacy", [False, True])
def test_nothing_in_a_pickle_is_run(legacy: bool, copied: Path, tmp_path: Path) -> None:
    tensors: dict[str, Any] = load_file(copied / "model.safetensors")
    (copied / "model.safetensors").unlink()
    path = copied / "pytorch_model.bin"
    zipped = {"_use_new_zipfile_serialization": not legacy}
    torch.save({**tensors, "extra": Payload(tmp_path / "ran")}, path, **zipped)
    refuse(copied, "pytorch_model.bin", "nothing of it was run")
    path.write_bytes(pickle.dumps(Payload(tmp_path / "ran")))
    refuse(copied, "pytorch_model.bin")
    assert not (tmp_path / "ran").exists()
    torch.save(tensors, path, **zipped)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    refuse(copied, "pytorch_model.bin", "truncated or damaged")
    path.write_bytes(content)
    import_model(copied, tmp_path / "base")


def test_a_tensor_that_is_larger_than_its_file_is_refused(copied: Path) -> None:
    """A view can repeat one number as often as a configuration says."""
    tensors = load_file(copied / "model.safetensors")
    (copied / "model.safetensors").unlink()
    tensors["model.encoder.layers.0.fc1.weight"] = torch.zeros(1).expand(2**18, 2**14)
    torch.save(tensors, copied / "pytorch_model.bin")
    refuse(copied, "model.encoder.layers.0.fc1.weight", "no plain block")


def test_matrices_that_should_be_one_and_differ_are_refused(copied: Path) -> None:
    tensors = load_file(copied / "model.safetensors")
    save_file({**tensors, "lm_head.weight": tensors["model.shared.weight"] + 1}, copied / "model.safetensors")
    refuse(copied, "lm_head.weight", "should be one matrix")
    save_file({**tensors, "lm_head.weight": tensors["model.shared.weight"].clone()}, copied / "model.safetensors")
    import_model(copied, copied.parent / "base")


def test_the_name_of_a_family_and_a_base_of_ours(copied: Path, tmp_path: Path, imported: Callable[[str], Any]) -> None:
    refuse(copied, "nllb", family="nlb")
    with pytest.raises(GraftError, match="base of graftmt already"):
        import_model(imported("m2m-100").folder, tmp_path / "base")
    with pytest.raises(GraftError, match="tokenizer"):
        (copied / "sentencepiece.bpe.model").unlink()
        import_model(copied, tmp_path / "base")
