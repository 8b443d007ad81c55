"""What a class of the transformers library is, as something to export to: its weights by name, and its configuration. Layer 5.

All classes name the parts of a layer alike. FFNs are as wide as the widest one, and an attention that a layer lacks has weights
of zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from graftmt.interop.export.joint_rows import PADDING, JointRows
from graftmt.interop.export.plain_model import PlainModel, PlainStack
from graftmt.interop.export.target import Job
from graftmt.model.plain_layers import AttentionPart, PlainLayer

NEVER = -100.0
"""The score of a row that must not come out: a probability below 1e-40."""
EPSILON = 1e-5
LONGEST = 1024
ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


class LibraryClass(ABC):
    """One class; a subclass is one file."""

    name: ClassVar[str]
    model_type: ClassVar[str]

    @abstractmethod
    def problem(self, job: Job) -> str:
        """Why the class cannot hold a model, and what to do instead; "" where it can."""

    @abstractmethod
    def tensors(self, model: PlainModel, rows: JointRows) -> Iterator[tuple[str, Tensor]]:
        """All weights."""

    def config(self, job: Job, rows: JointRows, *, tied: bool) -> dict[str, Any]:
        """config.json."""
        model, config = job.model, job.model.config
        return {
            "architectures": [self.name],
            "model_type": self.model_type,
            "is_encoder_decoder": True,
            "vocab_size": len(rows.tokens),
            "d_model": config.model_dim,
            "encoder_layers": len(model.encoder.layers),
            "decoder_layers": len(model.decoder.layers),
            "encoder_ffn_dim": model.encoder.widest_ffn,
            "decoder_ffn_dim": model.decoder.widest_ffn,
            "encoder_attention_heads": model.encoder.heads,
            "decoder_attention_heads": model.decoder.heads,
            "activation_function": config.activation,
            "scale_embedding": config.scale_embeddings,
            "max_position_embeddings": LONGEST,
            "tie_word_embeddings": tied,
            "dtype": job.quantization,
            **dict.fromkeys(
                ("dropout", "attention_dropout", "activation_dropout", "encoder_layerdrop", "decoder_layerdrop"), 0.0
            ),
            **special_ids(job, rows),
        }

    def generation(self, job: Job, rows: JointRows) -> dict[str, Any]:
        """generation_config.json."""
        codec, decoder = job.composition.codec, job.directions[0].decoder
        forced = {"forced_bos_token_id": rows.id_of("target", decoder[1])} if len(decoder) > 1 else {}
        return {
            "num_beams": 5,
            "max_length": LONGEST,
            "early_stopping": True,
            "suppress_tokens": sorted(rows.id_of("target", row) for row in codec.forbidden if row not in decoder[1:]),
            **forced,
            **special_ids(job, rows),
        }


def special_ids(job: Job, rows: JointRows) -> dict[str, int]:
    start = rows.id_of("target", job.directions[0].decoder[0])
    return {"bos_token_id": 0, "pad_token_id": PADDING, "eos_token_id": 2, "decoder_start_token_id": start}


def stack_tensors(model: PlainModel) -> Iterator[tuple[str, Tensor]]:
    """The layers of both sides."""
    for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for number, layer in enumerate(stack.layers):
            for leaf, tensor in _layer(layer, stack, decodes=name == "decoder"):
                yield f"model.{name}.layers.{number}.{leaf}", tensor


def _layer(layer: PlainLayer, stack: PlainStack, *, decodes: bool) -> Iterator[tuple[str, Tensor]]:
    width = layer.up.in_features
    yield from _attention("self_attn", "self_attn_layer_norm", layer.self_attention, width)
    if decodes:
        yield from _attention("encoder_attn", "encoder_attn_layer_norm", layer.cross_attention, width)
    missing = stack.widest_ffn - layer.up.out_features
    yield "fc1.weight", torch.cat([layer.up.weight, layer.up.weight.new_zeros(missing, width)])
    yield "fc1.bias", torch.cat([_bias(layer.up), layer.up.weight.new_zeros(missing)])
    yield "fc2.weight", torch.cat([layer.down.weight, layer.down.weight.new_zeros(width, missing)], dim=1)
    yield "fc2.bias", _bias(layer.down)
    yield from norm_tensors("final_layer_norm", layer.ffn_norm)


def _attention(name: str, norm: str, part: AttentionPart | None, width: int) -> Iterator[tuple[str, Tensor]]:
    """One that gives zero where there is none."""
    for ours, theirs in ATTENTION.items():
        linear = None if part is None else getattr(part.attention, ours)
        yield f"{name}.{theirs}.weight", torch.zeros(width, width) if linear is None else linear.weight.detach()
        yield f"{name}.{theirs}.bias", torch.zeros(width) if linear is None else _bias(linear)
    yield from norm_tensors(norm, nn.LayerNorm(width) if part is None else part.norm)


def norm_tensors(name: str, norm: nn.LayerNorm) -> Iterator[tuple[str, Tensor]]:
    yield f"{name}.weight", norm.weight.detach()
    yield f"{name}.bias", norm.bias.detach()


def _bias(linear: nn.Linear) -> Tensor:
    return linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias.detach()
