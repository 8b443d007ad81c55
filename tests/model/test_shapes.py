"""The shapes of an architecture are those of the model it builds, and take no time however many layers there are."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from graftmt.model import ModelConfig, Transformer, parameter_shapes


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("embeddings", ["tied", "tied-target", "separate"])
@pytest.mark.parametrize("layers", [(1, 1), (3, 2), (1, 12)])
def test_they_are_those_of_the_model(norm: Any, embeddings: Any, layers: tuple[int, int]) -> None:
    config = ModelConfig(
        model_dim=8,
        ffn_dim=12,
        heads=2,
        norm=norm,
        embeddings=embeddings,
        encoder_layers=layers[0],
        decoder_layers=layers[1],
        output_bias=norm == "pre",
    )
    with torch.device("meta"):
        model = Transformer.build(config, 20)
    assert parameter_shapes(config, 20) == {name: tuple(value.shape) for name, value in model.named_parameters()}
