"""The Transformer, from parts. Layer 1: it knows nothing of text, training or packs."""

from graftmt.model.architecture import SIZES, ModelConfig, architecture_document, named_size
from graftmt.model.transformer import Decoder, DecoderState, Encoder, PackedTokens, Transformer, load_tensors, parameter_shapes

__all__ = [
    "SIZES",
    "Decoder",
    "DecoderState",
    "Encoder",
    "ModelConfig",
    "PackedTokens",
    "Transformer",
    "architecture_document",
    "load_tensors",
    "named_size",
    "parameter_shapes",
]
