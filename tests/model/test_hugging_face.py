"""The same weights give the same scores as in Hugging Face's implementations: M2M100 (pre-norm) and FSMT (post-norm)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from peers.hugging_face import our_name, their_shape
from torch import Tensor, nn

from graftmt.model import ModelConfig, Transformer

transformers = pytest.importorskip("transformers")

MakeBatch = Callable[..., Tensor]

SHAPES: list[dict[str, int]] = [
    {"model_dim": 32, "heads": 4, "ffn_dim": 48, "encoder_layers": 1, "decoder_layers": 1},
    {"model_dim": 48, "heads": 2, "ffn_dim": 96, "encoder_layers": 3, "decoder_layers": 2},
    {"model_dim": 64, "heads": 8, "ffn_dim": 32, "encoder_layers": 2, "decoder_layers": 4},
]


def copy_weights(theirs: nn.Module, ours: Transformer, embeddings: dict[str, str]) -> None:
    """Every parameter of theirs lands in one of ours, and every one of ours is filled."""
    own, filled = dict(ours.named_parameters()), set()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "embed_positions" in name:
                continue
            translated = embeddings.get(name, our_name(name))
            own[translated].copy_(parameter)
            filled.add(translated)
    assert filled == own.keys()


def assert_same_scores(theirs: nn.Module, ours: Transformer, make_batch: MakeBatch) -> None:
    """Encoder states and scores of a padded batch, where there is no padding."""
    source, target = make_batch([9, 4, 1, 6]), make_batch([3, 8, 5, 1], seed=2)
    with torch.inference_mode():
        found = theirs(input_ids=source, attention_mask=(source != 1).long(), decoder_input_ids=target, use_cache=False)
        memory, mask = ours.encode(source)
        scores = ours.projection(ours.decode(target, memory, mask))
    real = source != 1
    torch.testing.assert_close(memory[real], found.encoder_last_hidden_state[real], atol=1e-4, rtol=0)
    assert found.logits.std() > 1  # large enough for a difference to show
    torch.testing.assert_close(scores[target != 1], found.logits[target != 1], atol=1e-4, rtol=0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("changes", [{}, {"activation": "gelu", "scale_embeddings": False}])
def test_m2m100(
    shape: dict[str, int], changes: dict[str, Any], randomise: Callable[[nn.Module], None], make_batch: MakeBatch
) -> None:
    config = ModelConfig(**shape, **changes, norm="pre")
    theirs = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(vocab_size=50, **their_shape(config))).eval()
    ours = Transformer.build(config, 50).eval()
    randomise(theirs)
    copy_weights(theirs, ours, {})
    assert_same_scores(theirs, ours, make_batch)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("embeddings", ["tied", "separate"])
def test_fsmt(shape: dict[str, int], embeddings: Any, randomise: Callable[[nn.Module], None], make_batch: MakeBatch) -> None:
    config = ModelConfig(**shape, norm="post", embeddings=embeddings)
    tied = embeddings == "tied"
    vocabularies = {"src_vocab_size": 50, "tgt_vocab_size": 50, "tie_word_embeddings": tied}
    theirs = transformers.FSMTForConditionalGeneration(
        transformers.FSMTConfig(**their_shape(config), **vocabularies, max_position_embeddings=64)
    ).eval()
    ours = Transformer.build(config, 50).eval()
    randomise(theirs)
    matrices = {
        "model.encoder.embed_tokens.weight": "source_embedding.weight",
        "model.decoder.embed_tokens.weight": "target_embedding.weight",
        "model.decoder.output_projection.weight": "projection.weight",
    }
    copy_weights(theirs, ours, matrices)
    assert_same_scores(theirs, ours, make_batch)
