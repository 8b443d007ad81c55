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
            if "embed_positions" in name and "Learned" not in type(model.get_submodule(name.rpartition(".")[0])).__name__:
                continue  # computed, though FSMT counts them as parameters
            parameter.copy_(noise(parameter) + (1.0 if "norm" in name and name.endswith("weight") else 0.0))
        if (bias := getattr(model, "final_logits_bias", None)) is not None:
            bias.copy_(noise(bias))
        output = model.get_output_embeddings().weight
        decoder = model.get_decoder()
        last = getattr(decoder, "layer_norm", None)
        last = decoder.layers[-1].final_layer_norm if last is None else last
        last.bias += 5.5 * output[end] / output[end].square().sum()


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


def small100(folder: Path, **options: Any) -> ForeignModel:
    """M2M-100's classes; its configuration does not name it."""
    return m2m_100(folder / "small100", **options)


def marian(folder: Path, *, codes: tuple[str, ...] = (), separate: bool = False, **options: Any) -> ForeignModel:
    from transformers import MarianConfig, MarianMTModel

    tokenizer = made.marian(folder, codes=codes, separate=separate)
    rows = len(tokenizer.encoder)
    target_rows = len(tokenizer.target_encoder) if separate else rows
    config = MarianConfig(
        **SHAPE,
        vocab_size=rows,
        decoder_vocab_size=target_rows,
        share_encoder_decoder_embeddings=not separate,
        pad_token_id=rows - 1,
        decoder_start_token_id=target_rows - 1,
        eos_token_id=0,
        activation_function="swish",
        scale_embedding=True,
    )
    return ForeignModel(folder, save(MarianMTModel(config), folder, 0, **options), tokenizer, "en", codes[0] if codes else "ru")


def marian_codes(folder: Path, **options: Any) -> ForeignModel:
    return marian(folder, codes=("fra", "cmn_Hans"), **options)


def marian_separate(folder: Path, **options: Any) -> ForeignModel:
    return marian(folder, separate=True, **options)


def mbart(folder: Path, **options: Any) -> ForeignModel:
    from transformers import MBartConfig, MBartForConditionalGeneration

    tokenizer = made.mbart_50(folder)
    config = MBartConfig(vocab_size=len(tokenizer) + 3, activation_function="gelu", scale_embedding=True, **SHAPE)
    return ForeignModel(folder, save(MBartForConditionalGeneration(config), folder, 2, **options), tokenizer, "ru_RU", "en_XX")


def fsmt(folder: Path, *, tied: bool = False, **options: Any) -> ForeignModel:
    from transformers import FSMTConfig, FSMTForConditionalGeneration

    tokenizer = made.fsmt(folder)
    config = FSMTConfig(
        langs=["en", "ru"],
        src_vocab_size=tokenizer.src_vocab_size,
        tgt_vocab_size=tokenizer.tgt_vocab_size,
        tie_word_embeddings=tied,
        **SHAPE,
    )
    return ForeignModel(folder, save(FSMTForConditionalGeneration(config), folder, 2, **options), tokenizer, "en", "ru")


MODELS: dict[str, Callable[..., ForeignModel]] = {
    "m2m-100": m2m_100,
    "nllb": nllb,
    "small100": small100,
    "marian": marian,
    "marian-codes": marian_codes,
    "marian-separate": marian_separate,
    "mbart": mbart,
    "fsmt": fsmt,
}
