"""Small models of transformers' own classes with random numbers in every parameter, saved with their tokenizers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peers import foreign_tokenizers as made
from torch import Tensor, nn

SHAPE: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 128,
    "dropout": 0.0,
}


@dataclass(frozen=True)
class ForeignModel:
    """A model with its tokenizer, loaded from `folder`."""

    folder: Path
    model: Any
    tokenizer: Any
    source: str
    target: str


def randomise(model: nn.Module, end: int, seed: int = 1) -> None:
    """Every parameter and logit bias is random, norms stay near 1, and the end is likely, so that sentences end."""
    generator = torch.Generator().manual_seed(seed)

    def noise(like: Tensor) -> Tensor:
        return 0.3 * torch.randn(like.shape, generator=generator)

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name and not parameter.requires_grad:
                continue
            parameter.copy_(noise(parameter) + (1.0 if "norm" in name and name.endswith("weight") else 0.0))
        if (bias := getattr(model, "final_logits_bias", None)) is not None:
            bias.copy_(noise(bias))
        output = model.get_output_embeddings().weight
        decoder = model.get_decoder()
        last = getattr(decoder, "layer_norm", None) or decoder.layers[-1].final_layer_norm
        last.bias += 4.0 * output[end] / output[end].square().sum()


def save(model: nn.Module, folder: Path, end: int, **options: Any) -> Any:
    """The model, randomised, saved and loaded again, as it is stored."""
    randomise(model, end)
    model.eval().save_pretrained(folder, **options)  # type: ignore[operator]
    return model


def m2m_100(folder: Path, **options: Any) -> ForeignModel:
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    tokenizer = made.m2m_100(folder)
    rows = max(tokenizer.lang_code_to_id.values()) + 9
    model = M2M100ForConditionalGeneration(M2M100Config(vocab_size=rows, **SHAPE))
    return ForeignModel(folder, save(model, folder, 2, **options), tokenizer, "en", "ru")


def nllb(folder: Path, **options: Any) -> ForeignModel:
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    tokenizer = made.nllb(folder)
    model = M2M100ForConditionalGeneration(M2M100Config(vocab_size=len(tokenizer) + 2, activation_function="gelu", **SHAPE))
    return ForeignModel(folder, save(model, folder, 2, **options), tokenizer, "eng_Latn", "ell_Grek")


MODELS: dict[str, Callable[..., ForeignModel]] = {"m2m-100": m2m_100, "nllb": nllb}
