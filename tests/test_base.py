"""A base folder gives back what was saved, knows itself by its fingerprint, and refuses what is not whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import graftmt.base
import graftmt.devices
from graftmt.base import FORMAT, Base, read_base_document
from graftmt.devices import choose_device
from graftmt.errors import CheckpointError, ConfigError, DataError, GraftError
from graftmt.model import ModelConfig
from graftmt.text import Tokenizer


@pytest.fixture(scope="module")
def base(toy_base: Path) -> Base:
    return Base.load(toy_base)


@pytest.fixture
def random_base(base: Base) -> Base:
    """Fresh weights, which a test may change."""
    torch.manual_seed(1)
    return Base.create(base.model.config, base.tokenizer)


def scores(base: Base) -> torch.Tensor:
    torch.manual_seed(2)
    source, target = torch.randint(4, len(base.tokenizer), (2, 3, 7)).unbind()
    with torch.inference_mode():
        return base.model(source, target)


def change_document(folder: Path, **changes: Any) -> None:
    """Sets keys of base.json, or removes those that are None."""
    path = folder / "base.json"
    document = {**json.loads(path.read_text(encoding="utf-8")), **changes}
    path.write_text(json.dumps({key: value for key, value in document.items() if value is not None}), encoding="utf-8")


def change_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


def flip_one_bit(tensor: torch.Tensor) -> None:
    tensor.view(torch.uint8).view(-1)[3] ^= 1


def test_a_saved_base_is_the_same_when_loaded(random_base: Base, tmp_path: Path) -> None:
    mark = random_base.save(tmp_path / "base", card={"seed": 7})
    loaded = Base.load(tmp_path / "base")
    assert torch.equal(scores(loaded), scores(random_base))
    assert loaded.languages == random_base.languages
    assert loaded.tokenizer.fingerprint == random_base.tokenizer.fingerprint
    assert loaded.model.config == random_base.model.config
    assert loaded.card == {"seed": 7}
    assert loaded.fingerprint == mark == random_base.fingerprint
    # Tied matrices are still one.
    assert loaded.model.projection.weight is loaded.model.source_embedding.weight


@pytest.mark.parametrize("embeddings", ["tied", "tied-target", "separate"])
def test_each_tensor_is_stored_once_and_tied_ones_stay_tied(base: Base, tmp_path: Path, embeddings: Any) -> None:
    made = Base.create(replace(base.model.config, embeddings=embeddings), base.tokenizer)
    made.save(tmp_path / "base")
    loaded = Base.load(tmp_path / "base")
    matrices = [loaded.model.source_embedding.weight, loaded.model.target_embedding.weight, loaded.model.projection.weight]
    assert len({id(matrix) for matrix in matrices}) == {"tied": 1, "tied-target": 2, "separate": 3}[embeddings]
    stored = load_file(tmp_path / "base" / "model.safetensors")
    vocabulary = [tensor for tensor in stored.values() if tensor.shape[0] == len(base.tokenizer)]
    assert len(vocabulary) == len({id(matrix) for matrix in matrices})
    assert torch.equal(scores(loaded), scores(made))


def test_a_base_stored_in_half_the_bytes_loads_in_any_precision(random_base: Base, tmp_path: Path) -> None:
    mark = random_base.save(tmp_path / "base", dtype="bf16")
    full = random_base.save(tmp_path / "full")
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("base", "full")]
    assert sizes[0] < 0.6 * sizes[1]
    assert mark != full
    loaded = Base.load(tmp_path / "base")
    assert loaded.model.source_embedding.weight.dtype == torch.float32
    rounded = {name: tensor.bfloat16().float() for name, tensor in random_base.model.named_parameters()}
    assert all(torch.equal(tensor, rounded[name]) for name, tensor in loaded.model.named_parameters())
    # What was rounded once is stored again as it is.
    assert loaded.save(tmp_path / "again", dtype="bf16") == mark


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_the_fingerprint_is_that_of_the_folder_whatever_precision_runs(toy_base: Path, base: Base, dtype: str) -> None:
    loaded = Base.load(toy_base, dtype=dtype)
    assert loaded.fingerprint == base.fingerprint
    assert loaded.model.source_embedding.weight.dtype == graftmt.devices.DTYPES[dtype]


def test_the_fingerprint_changes_with_one_bit_of_any_tensor_a_name_or_the_vocabulary(base: Base) -> None:
    config, tokenizer = base.model.config, base.tokenizer
    tensors = {name: tensor.clone() for name, tensor in graftmt.base.parameters(base.model).items()}

    def mark() -> str:
        return graftmt.base.fingerprint(tensors, config, tokenizer)

    seen = {mark()}
    for name in tensors:
        flip_one_bit(tensors[name])
        assert mark() not in seen, name
        flip_one_bit(tensors[name])
        assert mark() in seen
    first = next(iter(tensors))
    renamed = {("other" if name == first else name): tensor for name, tensor in tensors.items()}
    seen.add(graftmt.base.fingerprint(renamed, config, tokenizer))
    reordered = dict(reversed(tensors.items()))
    assert graftmt.base.fingerprint(reordered, config, tokenizer) == mark()
    others = Tokenizer(tokenizer.subwords, tuple(reversed(tokenizer.languages)), tokenizer.code_placement)
    seen.add(graftmt.base.fingerprint(tensors, config, others))
    assert len(seen) == 3


def test_the_card_is_a_readme_for_people(toy_base: Path, base: Base) -> None:
    text = (toy_base / "README.md").read_text(encoding="utf-8")
    assert base.fingerprint in text
    assert "en, xa, xb, xc" in text
    assert f"{sum(tensor.numel() for tensor in base.model.parameters()):,}" in text
    assert "graftmt translate --base" in text


def test_saving_replaces_a_base_whole(random_base: Base, base_copy: Path) -> None:
    mark = random_base.save(base_copy)
    assert Base.load(base_copy).fingerprint == mark
    assert sorted(path.name for path in base_copy.iterdir()) == [
        "README.md",
        "base.json",
        "model.safetensors",
        "subwords.model",
    ]
    assert [path.name for path in base_copy.parent.iterdir()] == [base_copy.name]


def test_saving_leaves_what_is_no_base_as_it_is(random_base: Base, base_copy: Path, tmp_path: Path) -> None:
    thesis = tmp_path / "keep" / "sub" / "thesis.txt"
    thesis.parent.mkdir(parents=True)
    thesis.write_text("all of it", encoding="utf-8")
    with pytest.raises(GraftError, match=r"keep is not empty and not a base \(sub\)"):
        random_base.save(tmp_path / "keep")
    with pytest.raises(GraftError, match=r"thesis\.txt is a file\b"):
        random_base.save(thesis)
    assert thesis.read_text(encoding="utf-8") == "all of it"
    (base_copy / "notes.txt").write_text("mine", encoding="utf-8")
    before = {path.name: path.read_bytes() for path in base_copy.iterdir()}
    with pytest.raises(GraftError, match=r"a base with other things in it \(notes\.txt\)"):
        random_base.save(base_copy)
    assert {path.name: path.read_bytes() for path in base_copy.iterdir()} == before
    (tmp_path / "empty").mkdir()
    random_base.save(tmp_path / "empty")


def test_one_changed_bit_is_noticed(base_copy: Path) -> None:
    path = base_copy / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(CheckpointError, match=r"fingerprint .*damaged"):
        Base.load(base_copy)
    Base.load(base_copy, verify=False)


@pytest.mark.parametrize(("change", "words"), [({"norm": "post"}, "encoder.norm"), ({"activation": "gelu"}, "fingerprint")])
def test_a_changed_architecture_is_noticed(base_copy: Path, change: dict[str, str], words: str) -> None:
    architecture = json.loads((base_copy / "base.json").read_text(encoding="utf-8"))["architecture"]
    change_document(base_copy, architecture={**architecture, **change})
    with pytest.raises(CheckpointError, match=words):
        Base.load(base_copy)


@pytest.mark.parametrize(
    ("file", "error", "words"),
    [
        ("base.json", GraftError, r"no file \S+base\.json"),
        ("model.safetensors", CheckpointError, r"no file \S+model\.safetensors; the folder is incomplete"),
        ("subwords.model", DataError, r"cannot read \S+subwords\.model"),
    ],
)
def test_a_missing_file_is_named(base_copy: Path, file: str, error: type[GraftError], words: str) -> None:
    (base_copy / file).unlink()
    with pytest.raises(error, match=words):
        Base.load(base_copy)


@pytest.mark.parametrize("file", ["base.json", "model.safetensors", "subwords.model"])
def test_a_truncated_file_is_named(base_copy: Path, file: str) -> None:
    path = base_copy / file
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(GraftError, match=rf"{file} .*damaged"):
        Base.load(base_copy)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": FORMAT + 1}, f"has format {FORMAT + 1}; this version of graftmt reads up to {FORMAT}. Upgrade"),
        ({"format": None}, "has format None"),
        ({"kind": "pack"}, "is of kind 'pack', not a base"),
        ({"rows": 17}, "with 17 rows"),
        ({"rows": 2**62}, "rows"),
        ({"rows": "many"}, "rows"),
        ({"rows": True}, "rows"),
        ({"languages": ["en", "xa"]}, "fingerprint"),
        ({"languages": ["en", 7]}, "languages.1 is 7"),
        ({"languages": "en"}, "languages"),
        ({"languages": {"en": 1}}, "languages"),
        ({"languages": []}, "languages"),
        ({"languages": ["en", "en"]}, "languages"),
        ({"languages": ["en", "../../evil"]}, "'../../evil' cannot name a language"),
        ({"languages": ["/etc/en"]}, "cannot name a language"),
        ({"languages": ["en\u001b[31m"]}, "cannot name a language"),
        ({"card": None, "languages": None}, "languages, card missing"),
        ({"fingerprint": ["a"]}, "fingerprint"),
        ({"fingerprint": "a" * 63}, "fingerprint"),
        ({"dtype": "fp64"}, "dtype"),
        ({"parameters": "a few"}, "parameters"),
        ({"card": {"config": []}}, "card.config is []"),
        ({"card": {"config": {"subwords": "many"}}}, "card.config.subwords is 'many'"),
        ({"card": {"training_seconds": "an hour"}}, "card.training_seconds"),
        ({"card": {"curve": [1]}}, "card.curve.0"),
        ({"architecture": "large"}, "architecture is 'large'"),
        ({"architecture": {"encoder_layers": 200_000_000}}, "encoder_layers is 200000000"),
        ({"architecture": {"padding_id": 100_000}}, "padding_id is 100000"),
        ({"architecture": {"padding_id": -1}}, "padding_id is -1"),
        ({"architecture": {"norm_epsilon": float("nan")}}, "norm_epsilon is nan"),
        ({"architecture": {"norm_epsilon": 10**400}}, "norm_epsilon"),
        ({"architecture": {"activation": ["relu"]}}, "activation"),
        ({"code_placement": "nowhere"}, "code_placement"),
        ({"architecture": {"heads": "four"}}, "base.json is damaged (architecture.heads is 'four', a str; expected int)"),
        ({"architecture": {"model_dim": 130, "heads": 4}}, "base.json is damaged (architecture: model_dim"),
    ],
)
def test_a_document_that_does_not_fit_is_refused(base_copy: Path, changes: dict[str, Any], words: str) -> None:
    change_document(base_copy, **changes)
    with pytest.raises(GraftError) as caught:
        Base.load(base_copy)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tensors: tensors.pop("encoder.norm.weight"), "encoder.norm.weight"),
        (lambda tensors: tensors.update(stray=torch.ones(1)), "stray"),
        (lambda tensors: tensors.update({"encoder.norm.weight": torch.ones(33)}), "encoder.norm.weight has shape (33,)"),
        (lambda tensors: tensors.update({"encoder.norm.weight": torch.ones(32).double()}), "encoder.norm.weight is of"),
        (lambda tensors: tensors["encoder.norm.weight"].fill_(float("nan")), "encoder.norm.weight has numbers that are not"),
        (lambda tensors: tensors["encoder.norm.bias"][5:6].fill_(float("-inf")), "encoder.norm.bias has numbers that are not"),
    ],
    ids=["missing", "extra", "misshapen", "double", "nan", "inf"],
)
@pytest.mark.parametrize("verify", [True, False])
def test_tensors_that_do_not_fit_are_named(base_copy: Path, change: Callable[..., Any], words: str, verify: bool) -> None:
    change_tensors(base_copy, change)
    with pytest.raises(CheckpointError) as caught:
        Base.load(base_copy, verify=verify)
    assert words in str(caught.value)


def test_files_of_two_bases_are_noticed_without_the_fingerprint_too(base_copy: Path) -> None:
    languages = json.loads((base_copy / "base.json").read_text(encoding="utf-8"))["languages"]
    change_document(base_copy, languages=languages[:-1])
    with pytest.raises(CheckpointError, match="the files are not of one base"):
        Base.load(base_copy, verify=False)


def test_no_folder_and_no_such_precision_are_errors(tmp_path: Path, toy_base: Path) -> None:
    with pytest.raises(GraftError, match=r"no base folder \S+nowhere; make one with"):
        Base.load(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="unknown precision 'fp23'; did you mean 'fp32'"):
        Base.load(toy_base, dtype="fp23")


def test_a_damaged_architecture_says_what_to_do_also_where_no_tensor_is_read(base_copy: Path) -> None:
    change_document(base_copy, architecture={"heads": "four"})
    with pytest.raises(CheckpointError, match=rf"{base_copy.name}/base\.json is damaged "):
        read_base_document(base_copy)


@pytest.mark.parametrize("name", ["tpu", "", "gpu0"])
def test_a_device_that_there_is_not_is_one_sentence(name: str) -> None:
    with pytest.raises(GraftError) as caught:
        choose_device(name)
    message = f"device {name!r} cannot be used, for torch knows none of this name; use cpu, cuda, cuda:1 or auto."
    assert str(caught.value) == message


def test_a_device_that_torch_cannot_use_here_says_why() -> None:
    with pytest.raises(GraftError, match=r"^device 'hpu' .*\(.*[^.]\).*cpu, cuda or auto\.$"):
        choose_device("hpu")


def test_a_field_that_a_later_version_adds_does_not_change_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    from graftmt import base as module

    config = ModelConfig(model_dim=16, ffn_dim=16, heads=2, encoder_layers=1, decoder_layers=1)

    class Vocabulary:
        fingerprint = "of some tokenizer"

    before = module.fingerprint({}, config, Vocabulary())
    plain = module.to_mapping
    monkeypatch.setattr(module, "to_mapping", lambda value: {**plain(value), "added_later": "its default"})
    assert module.fingerprint({}, config, Vocabulary()) == before
    monkeypatch.undo()
    other = ModelConfig(model_dim=16, ffn_dim=16, heads=2, encoder_layers=1, decoder_layers=1, norm="post")
    assert module.fingerprint({}, other, Vocabulary()) != before


@pytest.mark.parametrize("name", ["meta", "cpu:7", "cpu:0"])
def test_devices_that_hold_no_numbers_or_are_no_other_are_refused(name: str) -> None:
    with pytest.raises(GraftError, match=name):
        choose_device(name)
