"""fairseq's own checkpoints of Transformers, with `dict.txt` and the SentencePiece model next to them. Layer 5."""

from __future__ import annotations

from pathlib import Path

from graftmt.errors import CheckpointError
from graftmt.interop.importing.fairseq_checkpoint import FairseqWeights
from graftmt.interop.importing.family import Family, ForeignFolder, Names
from graftmt.interop.importing.foreign_settings import Settings
from graftmt.interop.importing.layer_names import embedding_norm_names, layer_names, position_names
from graftmt.interop.importing.weights import Weights
from graftmt.model import ModelConfig
from graftmt.text import BaseText
from graftmt.text.foreign import foreign_text

SOURCE, TARGET, OUTPUT = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight"
CHECKPOINTS = ("checkpoint_best.pt", "model.pt", "checkpoint_last.pt")
BOTH = ("normalize_before", "learned_pos", "embed_dim")
"""Arguments that encoder and decoder have each, and that must be the same here."""
OTHER_PARTS = {
    "adaptive_softmax_cutoff": "an adaptive softmax",
    "no_token_positional_embeddings": "no positions",
    "no_cross_attention": "a decoder without cross-attention",
    "cross_self_attention": "cross-attention joined with self-attention",
    "encoder_layers_to_keep": "layers left out",
    "decoder_layers_to_keep": "layers left out",
    "moe_freq": "layers of experts",
    "scale_heads": "scaled heads",
    "scale_attn": "scaled attention",
    "scale_fc": "scaled feed-forward",
}
"""Arguments that are off in a usual Transformer, and what they mean where they are on."""


class Fairseq(Family):
    name = "fairseq"
    title = "fairseq checkpoints"

    def recognises(self, folder: ForeignFolder) -> bool:
        if folder.path.is_dir():
            return not folder.settings and any((folder.path / name).exists() for name in CHECKPOINTS)
        return folder.path.suffix == ".pt"

    def weights(self, folder: ForeignFolder) -> FairseqWeights:
        return FairseqWeights(_checkpoint(folder.path))

    def architecture(self, folder: ForeignFolder, weights: Weights) -> ModelConfig:
        assert isinstance(weights, FairseqWeights)
        config = Settings({key: value for key, value in weights.arguments.items() if value is not None}, folder.path)
        for key, what in OTHER_PARTS.items():
            if config.values.get(key):
                raise config.error(f"{key} is {config.values[key]!r:.60}: {what}, which graftmt's Transformer does not have")
        for key in BOTH:
            sides = [config.values.get(f"{side}_{key}") for side in ("encoder", "decoder")]
            if None not in sides and sides[0] != sides[1]:
                raise config.error(f"encoder_{key} is {sides[0]!r:.40} and decoder_{key} {sides[1]!r:.40}; expected the same")
        learned = config.flag("encoder_learned_pos", False)
        positions = weights.found.get("encoder.embed_positions.weight")
        if learned and (positions is None or len(positions.shape) != 2):
            raise config.error("encoder_learned_pos is set, and the weights have no encoder.embed_positions.weight")
        shared = config.flag("share_all_embeddings", False)
        tied_output = config.flag("share_decoder_input_output_embed", False)
        return ModelConfig(
            model_dim=config.whole("encoder_embed_dim", 512),
            ffn_dim=config.whole("encoder_ffn_embed_dim", 2048),
            decoder_ffn_dim=config.whole("decoder_ffn_embed_dim", 2048),
            heads=config.whole("encoder_attention_heads", 8),
            decoder_heads=config.whole("decoder_attention_heads", 8),
            encoder_layers=config.whole("encoder_layers", 6),
            decoder_layers=config.whole("decoder_layers", 6),
            norm="pre" if config.flag("encoder_normalize_before", False) else "post",
            activation=config.activation("activation_fn", "relu"),
            embeddings="tied" if shared else "tied-target" if tied_output else "separate",
            scale_embeddings=not config.flag("no_scale_embedding", False),
            positions="learned" if learned else "sinusoidal",
            most_positions=positions.shape[0] - 2 if learned and positions else 0,
            position_offset=2,
            embedding_norms=config.flag("layernorm_embedding", False),
        )

    def names(self, config: ModelConfig, weights: Weights) -> Names:
        names = {**layer_names(config, "")}
        names |= position_names("") if config.positions == "learned" else {}
        names |= embedding_norm_names("") if config.embedding_norms else {}
        if config.embeddings == "tied":
            return {**names, "source_embedding.weight": (SOURCE, TARGET, OUTPUT)}
        if config.embeddings == "tied-target":
            return {**names, "source_embedding.weight": (SOURCE,), "target_embedding.weight": (TARGET, OUTPUT)}
        matrices = {"source_embedding.weight": SOURCE, "target_embedding.weight": TARGET, "projection.weight": OUTPUT}
        return {**names, **{ours: (theirs,) for ours, theirs in matrices.items()}}

    def unused(self) -> tuple[str, ...]:
        return ("*.version", "*.embed_positions._float_tensor", "*.embed_positions.weights")

    def text(self, folder: ForeignFolder, weights: Weights, rows: tuple[int, int]) -> BaseText:
        assert isinstance(weights, FairseqWeights)
        return foreign_text(
            "fairseq",
            _checkpoint(folder.path).parent,
            weights.arguments,
            rows,
            source_languages=folder.source_languages,
            target_languages=folder.target_languages,
        )


def _checkpoint(path: Path) -> Path:
    """The checkpoint itself, of a folder the best one."""
    if not path.is_dir():
        return path
    found = next((path / name for name in CHECKPOINTS if (path / name).exists()), None)
    if found is None:
        raise CheckpointError(f"{path} has none of the checkpoints {', '.join(CHECKPOINTS)}; name the file itself.")
    return found
