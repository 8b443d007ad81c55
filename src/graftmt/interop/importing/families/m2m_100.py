"""M2M-100: pre-norm, one matrix for all, the code of each language before the text that it is of. Layer 5."""

from __future__ import annotations

from graftmt.interop.importing.family import Family, ForeignFolder, Names
from graftmt.interop.importing.layer_names import layer_names, matrix_names, stacks
from graftmt.interop.importing.weights import Weights
from graftmt.model import ModelConfig
from graftmt.text import BaseText
from graftmt.text.foreign import foreign_text


class M2M100Layout(Family):
    """Models that transformers loads as M2M100ForConditionalGeneration; their texts differ."""

    text_family: str

    def architecture(self, folder: ForeignFolder, weights: Weights) -> ModelConfig:
        config = folder.config
        return ModelConfig(
            **stacks(config),
            norm="pre",
            activation=config.activation("activation_function", "relu"),
            embeddings="tied" if config.flag("tie_word_embeddings", True) else "separate",
            scale_embeddings=config.flag("scale_embedding", True),
            position_offset=2,
        )

    def names(self, config: ModelConfig, weights: Weights) -> Names:
        return {**layer_names(config, "model."), **matrix_names(config, weights)}

    def unused(self) -> tuple[str, ...]:
        return ("model.*.embed_positions.weights", "model.shared.weight")

    def text(self, folder: ForeignFolder, weights: Weights, rows: tuple[int, int]) -> BaseText:
        return foreign_text(self.text_family, folder.path, folder.settings, rows)


def tokenizer_class(folder: ForeignFolder) -> str:
    found = folder.tokenizer_settings.get("tokenizer_class")
    return found.removesuffix("Fast") if isinstance(found, str) else ""


class M2M100(M2M100Layout):
    name = "m2m-100"
    title = "M2M-100"
    text_family = "m2m_100"

    def recognises(self, folder: ForeignFolder) -> bool:
        if folder.model_type != "m2m_100" or "small100" in folder.name.lower().replace("-", ""):
            return False
        return tokenizer_class(folder) in ("", "M2M100Tokenizer") and (folder.path / "vocab.json").exists()
