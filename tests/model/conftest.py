"""Models with random weights everywhere: fresh ones have biases 0 and norms 1, which would hide a swapped parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from graftmt.model import ModelConfig, Transformer

VOCABULARY = 50


@pytest.fixture
def randomise() -> Callable[[nn.Module], None]:
    """Gives every parameter but the positions that FSMT counts as one a random value; norms stay near 1."""

    def randomise(module: nn.Module) -> None:
        torch.manual_seed(1)
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if "embed_positions" not in name:
                    parameter.normal_(std=0.3)
                    if "norm.weight" in name:
                        parameter.add_(1)

    return randomise


@pytest.fixture
def make_model(randomise: Callable[[nn.Module], None]) -> Callable[..., Transformer]:
    """A small random model in evaluation mode; arguments are changes to its configuration."""

    def make_model(**changes: Any) -> Transformer:
        shape = {"model_dim": 32, "ffn_dim": 48, "heads": 4, "encoder_layers": 2, "decoder_layers": 3}
        model = Transformer.build(ModelConfig(**{**shape, **changes}), VOCABULARY)
        randomise(model)
        return model.eval()

    return make_model


@pytest.fixture
def make_batch() -> Callable[..., Tensor]:
    """(B, longest) random ids that are not padding, padded at the end."""

    def make_batch(lengths: list[int], *, rows: int = VOCABULARY, padding: int = 1, seed: int = 1) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        batch = torch.full((len(lengths), max(lengths)), padding)
        for row, length in enumerate(lengths):
            batch[row, :length] = torch.randint(2, rows, (length,), generator=generator)
        return batch

    return make_batch
