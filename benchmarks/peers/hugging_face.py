"""What Hugging Face's M2M-100 calls our sizes and weights: for benchmarks that measure it and tests that compare with it."""

from __future__ import annotations

from typing import Any

from graftmt.model import ModelConfig

# Their names → ours, part by part; what is not here has the same name.
NAMES = {
    "shared": "source_embedding",
    "self_attn": "self_attention",
    "encoder_attn": "cross_attention",
    "self_attn_layer_norm": "self_norm",
    "encoder_attn_layer_norm": "cross_norm",
    "final_layer_norm": "ffn_norm",
    "layer_norm": "norm",
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "out_proj": "output",
    "fc1": "ffn.up",
    "fc2": "ffn.down",
}


def our_name(name: str) -> str:
    """Of a parameter of theirs: `model.encoder.layers.0.fc1.bias` is our `encoder.layers.0.ffn.up.bias`."""
    return ".".join(NAMES.get(part, part) for part in name.removeprefix("model.").split("."))


def their_shape(config: ModelConfig) -> dict[str, Any]:
    """The arguments of an `M2M100Config`, or an `FSMTConfig`, of the same shape."""
    return {
        "d_model": config.model_dim,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.heads,
        "decoder_attention_heads": config.heads,
        "encoder_ffn_dim": config.ffn_dim,
        "decoder_ffn_dim": config.ffn_dim,
        "activation_function": config.activation,
        "scale_embedding": config.scale_embeddings,
    }
