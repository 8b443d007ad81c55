"""What fairseq, and with it the models of transformers that descend from BART, calls its parameters. Layer 5."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graftmt.interop.importing.family import Names
from graftmt.interop.importing.foreign_settings import Settings
from graftmt.interop.importing.weights import Weights
from graftmt.model import ModelConfig, parameter_shapes

_IN_LAYER = {
    "self_attention.query": "self_attn.q_proj",
    "self_attention.key": "self_attn.k_proj",
    "self_attention.value": "self_attn.v_proj",
    "self_attention.output": "self_attn.out_proj",
    "self_norm": "self_attn_layer_norm",
    "cross_attention.query": "encoder_attn.q_proj",
    "cross_attention.key": "encoder_attn.k_proj",
    "cross_attention.value": "encoder_attn.v_proj",
    "cross_attention.output": "encoder_attn.out_proj",
    "cross_norm": "encoder_attn_layer_norm",
    "ffn.up": "fc1",
    "ffn.down": "fc2",
    "ffn_norm": "final_layer_norm",
}


def layer_names(config: ModelConfig, prefix: str) -> Names:
    """The tensors of both stacks; `prefix` is what stands before `encoder` and `decoder`, such as "model."."""
    return dict(_stack_names(config, prefix))


def _stack_names(config: ModelConfig, prefix: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name in parameter_shapes(config, 1):
        stack, _, rest = name.partition(".")
        if stack not in ("encoder", "decoder"):
            continue
        if rest.startswith("norm."):
            yield name, (f"{prefix}{stack}.layer_norm.{rest.removeprefix('norm.')}",)
            continue
        number, _, leaf = rest.removeprefix("layers.").partition(".")
        part, _, kind = leaf.rpartition(".")
        yield name, (f"{prefix}{stack}.layers.{number}.{_IN_LAYER[part]}.{kind}",)


SHARED, OUTPUT = "model.shared.weight", "lm_head.weight"
SOURCE, TARGET = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
MATRICES = (SHARED, SOURCE, TARGET, OUTPUT)


def matrix_names(config: ModelConfig, weights: Weights) -> Names:
    """The matrices of a model of transformers, which stores a matrix that is used several times once or as copies."""
    source = SOURCE if SOURCE in weights.found else SHARED
    target = TARGET if TARGET in weights.found else SHARED
    bias = {"projection.bias": ("final_logits_bias",)} if config.output_bias else {}
    if config.embeddings == "tied":
        return {"source_embedding.weight": (SHARED, SOURCE, TARGET, OUTPUT), **bias}
    if config.embeddings == "tied-target":
        return {"source_embedding.weight": (source,), "target_embedding.weight": (target, OUTPUT), **bias}
    matrices = {"source_embedding.weight": source, "target_embedding.weight": target, "projection.weight": OUTPUT}
    return {**{ours: (theirs,) for ours, theirs in matrices.items()}, **bias}


def position_names(prefix: str) -> Names:
    """Learned positions of both sides."""
    return {
        "positions.weight": (f"{prefix}encoder.embed_positions.weight",),
        "target_positions.weight": (f"{prefix}decoder.embed_positions.weight",),
    }


def embedding_norm_names(prefix: str) -> Names:
    """The norms after the embeddings."""
    sides = {"source_norm": "encoder", "target_norm": "decoder"}
    return {
        f"{ours}.{leaf}": (f"{prefix}{stack}.layernorm_embedding.{leaf}",)
        for ours, stack in sides.items()
        for leaf in ("weight", "bias")
    }


def stacks(config: Settings) -> dict[str, Any]:
    """Width, heads and depth, which all configurations of transformers name alike."""
    return {
        "model_dim": config.whole("d_model", 1024),
        "ffn_dim": config.whole("encoder_ffn_dim", 4096),
        "decoder_ffn_dim": config.whole("decoder_ffn_dim", 4096),
        "heads": config.whole("encoder_attention_heads", 16),
        "decoder_heads": config.whole("decoder_attention_heads", 16),
        "encoder_layers": config.whole("encoder_layers", 12),
        "decoder_layers": config.whole("decoder_layers", 12),
    }
