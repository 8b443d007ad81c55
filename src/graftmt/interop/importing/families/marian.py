"""Marian and OPUS-MT: post-norm, its own frequencies, a decoder that starts from padding, a bias for each token. Layer 5."""

from __future__ import annotations

from typing import Literal

from graftmt.interop.importing.family import Family, ForeignFolder, Names
from graftmt.interop.importing.layer_names import layer_names, matrix_names, stacks
from graftmt.interop.importing.weights import Weights
from graftmt.model import ModelConfig
from graftmt.places import EXPORT_DOCUMENT
from graftmt.text import BaseText
from graftmt.text.foreign import foreign_text


def marian_architecture(folder: ForeignFolder, embeddings: Literal["tied", "tied-target", "separate"]) -> ModelConfig:
    """Of models that transformers loads as MarianMTModel."""
    config = folder.config
    return ModelConfig(
        **stacks(config),
        norm="post",
        activation=config.activation("activation_function", "gelu"),
        embeddings=embeddings,
        scale_embeddings=config.flag("scale_embedding", False),
        positions="sinusoidal-even",
        position_offset=0,
        output_bias=True,
    )


class Marian(Family):
    name = "marian"
    title = "OPUS-MT (Marian)"

    def recognises(self, folder: ForeignFolder) -> bool:
        return folder.model_type == "marian" and not (folder.path / EXPORT_DOCUMENT).exists()

    def architecture(self, folder: ForeignFolder, weights: Weights) -> ModelConfig:
        config = folder.config
        if not config.flag("tie_word_embeddings", True):
            raise config.error("tie_word_embeddings is false; Marian models whose output has a matrix of its own are not known")
        shared = config.flag("share_encoder_decoder_embeddings", True)
        return marian_architecture(folder, "tied" if shared else "tied-target")

    def names(self, config: ModelConfig, weights: Weights) -> Names:
        return {**layer_names(config, "model."), **matrix_names(config, weights)}

    def unused(self) -> tuple[str, ...]:
        return ("model.*.embed_positions.weight",)

    def text(self, folder: ForeignFolder, weights: Weights, rows: tuple[int, int]) -> BaseText:
        return foreign_text(
            "marian",
            folder.path,
            folder.settings,
            rows,
            source_languages=folder.source_languages,
            target_languages=folder.target_languages,
        )
