"""FSMT, fairseq's models of WMT19: post-norm, two vocabularies, one way. Layer 5."""

from __future__ import annotations

from graftmt.interop.importing.family import Family, ForeignFolder, Names
from graftmt.interop.importing.layer_names import SOURCE, TARGET, layer_names, stacks
from graftmt.interop.importing.weights import Weights
from graftmt.model import ModelConfig
from graftmt.text import BaseText
from graftmt.text.foreign import foreign_text

OUTPUT = "model.decoder.output_projection.weight"


class FSMT(Family):
    name = "fsmt"
    title = "FSMT (fairseq's WMT19 models)"

    def recognises(self, folder: ForeignFolder) -> bool:
        return folder.model_type == "fsmt"

    def architecture(self, folder: ForeignFolder, weights: Weights) -> ModelConfig:
        config = folder.config
        own_output = {TARGET, OUTPUT} <= weights.found.keys()  # one that is the target's matrix may be stored once
        return ModelConfig(
            **stacks(config),
            norm="post",
            activation=config.activation("activation_function", "relu"),
            embeddings="tied" if config.flag("tie_word_embeddings", False) else "separate" if own_output else "tied-target",
            scale_embeddings=config.flag("scale_embedding", True),
            position_offset=2,
        )

    def names(self, config: ModelConfig, weights: Weights) -> Names:
        if config.embeddings == "tied":
            return {**layer_names(config, "model."), "source_embedding.weight": (SOURCE, TARGET, OUTPUT)}
        matrices = {"source_embedding.weight": (SOURCE,), "target_embedding.weight": (TARGET, OUTPUT)}
        if config.embeddings == "separate":
            matrices |= {"target_embedding.weight": (TARGET,), "projection.weight": (OUTPUT,)}
        return {**layer_names(config, "model."), **matrices}

    def unused(self) -> tuple[str, ...]:
        return ("model.*.embed_positions.weight",)

    def text(self, folder: ForeignFolder, weights: Weights, rows: tuple[int, int]) -> BaseText:
        return foreign_text(
            "fsmt",
            folder.path,
            folder.settings,
            rows,
            source_languages=folder.source_languages,
            target_languages=folder.target_languages,
        )
