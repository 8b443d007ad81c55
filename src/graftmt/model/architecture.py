"""The architecture of a Transformer as a checked value, and the sizes that have names. Layer 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from graftmt.configuration import to_mapping
from graftmt.errors import ConfigError, nearest

Stack = Literal["encoder", "decoder"]

LARGEST = {
    "model_dim": 2**14,
    "ffn_dim": 2**18,
    "heads": 2**10,
    "encoder_layers": 256,
    "decoder_layers": 256,
    "position_offset": 2**16,
    "padding_id": 2**24,
    "decoder_ffn_dim": 2**18,
    "decoder_heads": 2**10,
    "most_positions": 2**20,
}
"""Several times what the largest known models have. An architecture may come from a file that anyone has made, and is built
before its weights are looked at."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Every architectural choice. A superset that fairseq, M2M-100, NLLB-200, mBART and Marian models fit into.

    Defaults are for good: a stored base's fingerprint says what differs from them.
    """

    model_dim: int = 512
    ffn_dim: int = 2048
    heads: int = 8
    encoder_layers: int = 6
    decoder_layers: int = 6
    norm: Literal["pre", "post"] = "pre"
    activation: Literal["relu", "gelu", "silu"] = "relu"
    embeddings: Literal["tied", "tied-target", "separate"] = "tied"
    """tied: source, target and output share one matrix; tied-target: target and output do; separate: three matrices."""
    scale_embeddings: bool = True
    position_offset: int = 2
    """Number of the first position: fairseq counts from padding_idx + 1 = 2, Marian from 0."""
    norm_epsilon: float = 1e-5
    output_bias: bool = False
    padding_id: int = 1
    """The source matrix's row of padding; the target matrix may have another one, and so may the matrices of packs."""
    decoder_ffn_dim: int | None = None
    """Where the decoder's is another one than the encoder's."""
    decoder_heads: int | None = None
    """The same for heads."""
    positions: Literal["sinusoidal", "sinusoidal-even", "learned"] = "sinusoidal"
    """sinusoidal: frequencies from 1 to 1/10000, as in fairseq; sinusoidal-even: 10000^(-2i/D), as in Marian; learned: a table
    for each side."""
    most_positions: int = 0
    """Of learned ones: the longest sentence, codes and end counted. 0: there is no limit."""
    embedding_norms: bool = False
    """Whether a norm of each side follows embeddings and positions, as in mBART."""

    def __post_init__(self) -> None:
        for stack in ("ffn_dim", "heads"):  # one value for one architecture, and so one fingerprint
            if getattr(self, f"decoder_{stack}") == getattr(self, stack):
                object.__setattr__(self, f"decoder_{stack}", None)
        for name, most in LARGEST.items():
            least = 0 if name in ("position_offset", "padding_id", "most_positions") else 1
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise ConfigError(f"{name} is {value}; expected at least {least} and at most {most:,}.")
        if (self.positions == "learned") != (self.most_positions > 0):
            raise ConfigError(
                f"positions are {self.positions} and most_positions is {self.most_positions}; learned ones have a limit, "
                "others have none."
            )
        if not 0 < self.norm_epsilon < 1:
            raise ConfigError(f"norm_epsilon is {self.norm_epsilon}; expected a number between 0 and 1, such as 1e-5.")
        for heads in (self.heads, self.heads_of("decoder")):
            if self.model_dim % heads or self.model_dim % 2:
                raise ConfigError(f"model_dim {self.model_dim} must be even and a multiple of heads {heads}.")

    def heads_of(self, stack: Stack) -> int:
        return self.heads if stack == "encoder" or self.decoder_heads is None else self.decoder_heads

    def ffn_dim_of(self, stack: Stack) -> int:
        return self.ffn_dim if stack == "encoder" or self.decoder_ffn_dim is None else self.decoder_ffn_dim


LATER = ("decoder_ffn_dim", "decoder_heads", "positions", "most_positions", "embedding_norms")
"""Fields that earlier versions do not know: documents have them where they differ from the default."""


def architecture_document(config: ModelConfig) -> dict[str, Any]:
    """What base.json and pack.json say of an architecture."""
    plain = to_mapping(ModelConfig())
    return {key: value for key, value in to_mapping(config).items() if key not in LATER or value != plain[key]}


SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"model_dim": 128, "ffn_dim": 512, "heads": 4, "encoder_layers": 2, "decoder_layers": 2},
    "iwslt": {"model_dim": 512, "ffn_dim": 1024, "heads": 4, "encoder_layers": 6, "decoder_layers": 6},
    "base": {"model_dim": 512, "ffn_dim": 2048, "heads": 8, "encoder_layers": 6, "decoder_layers": 6},
    "big": {"model_dim": 1024, "ffn_dim": 4096, "heads": 16, "encoder_layers": 6, "decoder_layers": 6},
    "big-12-2": {"model_dim": 1024, "ffn_dim": 4096, "heads": 16, "encoder_layers": 12, "decoder_layers": 2},
}


def named_size(name: str, **changes: Any) -> ModelConfig:
    """One of `SIZES`, with changes: `named_size("base", norm="post")`."""
    if name not in SIZES:
        raise ConfigError(f"unknown model size {name!r}{nearest(name, SIZES)} Known sizes: {', '.join(SIZES)}.")
    return ModelConfig(**{**SIZES[name], **changes})
