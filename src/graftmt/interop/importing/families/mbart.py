"""mBART-50: pre-norm, learned positions and a norm of the embeddings on each side, a bias for each token. Layer 5."""

from __future__ import annotations

from graftmt.interop.importing.family import Family, ForeignFolder, Names
from graftmt.interop.importing.layer_names import embedding_norm_names, layer_names, matrix_names, position_names, stacks
from graftmt.interop.importing.weights import Weights
from graftmt.model import ModelConfig
from graftmt.text import BaseText
from graftmt.text.foreign import foreign_text


class MBart(Family):
    name = "mbart"
    title = "mBART-50"

    def recognises(self, folder: ForeignFolder) -> bool:
        return folder.model_type == "mbart"

    def architecture(self, folder: ForeignFolder, weights: Weights) -> ModelConfig:
        config = folder.config
        return ModelConfig(
            **stacks(config),
            norm="pre",
            activation=config.activation("activation_function", "gelu"),
            embeddings="tied" if config.flag("tie_word_embeddings", True) else "separate",
            scale_embeddings=config.flag("scale_embedding", False),
            positions="learned",
            most_positions=config.whole("max_position_embeddings", 1024),
            position_offset=2,
            embedding_norms=True,
            output_bias=True,
        )

    def names(self, config: ModelConfig, weights: Weights) -> Names:
        positions = {**position_names("model."), **embedding_norm_names("model.")}
        return {**layer_names(config, "model."), **matrix_names(config, weights), **positions}

    def unused(self) -> tuple[str, ...]:
        return ("model.shared.weight",)

    def text(self, folder: ForeignFolder, weights: Weights, rows: tuple[int, int]) -> BaseText:
        return foreign_text("mbart", folder.path, folder.settings, rows)
