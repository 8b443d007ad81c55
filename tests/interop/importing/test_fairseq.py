"""fairseq checkpoints in their documented layout, written here: the scores of the same weights in transformers."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from peers import foreign_tokenizers as made

from graftmt import Base, GraftError, import_model

ARGUMENTS: dict[str, Any] = {
    "encoder_embed_dim": 32,
    "decoder_embed_dim": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_embed_dim": 48,
    "decoder_ffn_embed_dim": 64,
    "encoder_normalize_before": True,
    "decoder_normalize_before": True,
    "activation_fn": "relu",
    "share_all_embeddings": True,
    "max_source_positions": 128,
    "adaptive_softmax_cutoff": None,
}
TASK: dict[str, Any] = {
    "langs": "en,fr,ru",
    "encoder_langtok": "src",
    "decoder_langtok": True,
    "lang_tok_style": "multilingual",
}


class DictConfig:
    """As omegaconf stores one; its own class is not installed here."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._content, self._metadata, self._parent = {key: AnyNode(value) for key, value in content.items()}, None, None


class AnyNode:
    def __init__(self, value: Any) -> None:
        self._val, self._metadata = value, None


@pytest.fixture
def omegaconf(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, kind in (("dictconfig", DictConfig), ("nodes", AnyNode)):
        module = ModuleType(f"omegaconf.{name}")
        setattr(module, kind.__name__, kind)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(kind, "__module__", module.__name__)
    monkeypatch.setitem(sys.modules, "omegaconf", ModuleType("omegaconf"))


@pytest.fixture
def theirs(imported: Callable[[str], Any], tmp_path: Path) -> Any:
    """The model of M2M-100, and a folder with a dictionary for its rows."""
    (tmp_path / "sentencepiece.bpe.model").write_bytes(made.model_bytes("bpe"))
    pieces = made.pieces_of(made.model_bytes("bpe"))[3:]
    (tmp_path / "dict.txt").write_text("".join(f"{piece} 1\n" for piece in pieces), encoding="utf-8")
    model = imported("m2m-100").theirs.model
    assert model.config.vocab_size > len(pieces) + 7
    return model


def write(path: Path, model: Any, **entries: Any) -> None:
    weights = {name.removeprefix("model."): tensor for name, tensor in model.state_dict().items()}
    weights["decoder.output_projection.weight"] = weights.pop("lm_head.weight")
    del weights["shared.weight"]
    weights |= {"encoder.version": torch.tensor([3.0]), "encoder.embed_positions._float_tensor": torch.zeros(1)}
    torch.save({"model": weights, "optimizer_history": [], "extra_state": {"epoch": 1}, **entries}, path)


@pytest.mark.parametrize("how", ["args", "cfg", "omegaconf"])
def test_every_score_is_that_of_the_same_weights(how: str, theirs: Any, tmp_path: Path, omegaconf: None) -> None:
    path = tmp_path / "checkpoint_best.pt"
    if how == "args":
        write(path, theirs, args=Namespace(**ARGUMENTS, **TASK, task="translation_multi_simple_epoch"), cfg=None)
    else:
        task = {**TASK, "_name": "translation_multi_simple_epoch"}
        cfg = {"model": Namespace(**ARGUMENTS), "task": task}
        write(
            path,
            theirs,
            args=None,
            cfg=DictConfig({"model": DictConfig(ARGUMENTS), "task": task}) if how == "omegaconf" else cfg,
        )
    import_model(path if how == "args" else tmp_path, tmp_path / "base")
    base = Base.load(tmp_path / "base")
    assert base.languages == ("en", "fr", "ru")
    ids = torch.tensor([[5, 9, 14, 2], [8, 2, 1, 1]])
    with torch.inference_mode():
        found = theirs(input_ids=ids, attention_mask=(ids != 1).long(), decoder_input_ids=ids, use_cache=False).logits
        torch.testing.assert_close(base.model(ids, ids)[ids != 1], found[ids != 1], atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"decoder_normalize_before": False}, ["normalize_before"]),
        ({"adaptive_softmax_cutoff": "1000"}, ["adaptive softmax"]),
        ({"activation_fn": "tanh"}, ["tanh"]),
        ({"decoder_embed_dim": 64}, ["decoder_embed_dim"]),
        ({"encoder_layers": 3}, ["encoder.layers.2"]),
        ({"layernorm_embedding": True}, ["layernorm_embedding"]),
    ],
)
def test_what_is_built_otherwise_is_refused(changes: dict[str, Any], words: list[str], theirs: Any, tmp_path: Path) -> None:
    write(tmp_path / "model.pt", theirs, args=Namespace(**{**ARGUMENTS, **TASK, **changes}))
    with pytest.raises(GraftError) as error:
        import_model(tmp_path / "model.pt", tmp_path / "base")
    for word in words:
        assert word in str(error.value)
    assert not (tmp_path / "base").exists()


class Payload:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return Path.touch, (self.path,)


def test_nothing_in_a_checkpoint_is_run(theirs: Any, tmp_path: Path) -> None:
    write(tmp_path / "model.pt", theirs, args=Namespace(**ARGUMENTS, **TASK), extra=Payload(tmp_path / "ran"))
    with pytest.raises(GraftError, match="nothing of it was run"):
        import_model(tmp_path / "model.pt", tmp_path / "base")
    assert not (tmp_path / "ran").exists()
    torch.save({"model": {}}, tmp_path / "model.pt")
    with pytest.raises(GraftError, match="neither args nor cfg"):
        import_model(tmp_path / "model.pt", tmp_path / "base")
