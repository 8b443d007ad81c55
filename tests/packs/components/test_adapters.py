"""Adapters compute what the paper says, stack in order, and fold into FFNs without changing what comes out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graftmt.model import ModelConfig
from graftmt.model.layers import ACTIVATIONS, DecoderLayer, EncoderLayer, FeedForward
from graftmt.packs.components.adapters import (
    AdaptedDecoderLayer,
    AdaptedEncoderLayer,
    AdaptedFeedForward,
    Adapter,
    ParallelAdapter,
)

DIM = 8
CONFIG = ModelConfig(model_dim=DIM, ffn_dim=12, heads=2, encoder_layers=1, decoder_layers=1)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(1)


def shaken(module: nn.Module) -> nn.Module:
    """With norms and biases that are neither one nor zero."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return module.eval()


def test_a_serial_adapter_is_a_bottleneck_on_a_residual_path() -> None:
    adapter, x = shaken(Adapter(DIM, 3, epsilon=1e-3)), torch.randn(2, 5, DIM)
    centred = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-3).sqrt()
    hidden = (centred * adapter.norm.weight + adapter.norm.bias) @ adapter.down.weight.T + adapter.down.bias
    expected = x + hidden.clamp(min=0) @ adapter.up.weight.T + adapter.up.bias
    torch.testing.assert_close(adapter(x), expected)


def test_adapters_come_after_the_whole_layer_and_in_order() -> None:
    x, memory = torch.randn(2, 5, DIM), torch.randn(2, 4, DIM)
    first, second = shaken(Adapter(DIM, 3)), shaken(Adapter(DIM, 4))
    encoder, decoder = shaken(EncoderLayer(CONFIG)), shaken(DecoderLayer(CONFIG))
    for layer, wrapper, inputs in (
        (encoder, AdaptedEncoderLayer, (x, None)),
        (decoder, AdaptedDecoderLayer, (x, memory, None)),
    ):
        plain = layer(*inputs)
        assert torch.equal(wrapper(layer, [first, second])(*inputs), second(first(plain)))
        assert not torch.allclose(second(first(plain)), first(second(plain)))  # or the order would not show
        assert torch.equal(wrapper(layer, [])(*inputs), plain)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("count", [1, 2])
def test_parallel_adapters_fold_into_the_ffn(activation: str, count: int) -> None:
    function: Callable[[Tensor], Tensor] = ACTIVATIONS[activation]
    ffn = shaken(FeedForward(DIM, 12, activation))
    adapters = [shaken(ParallelAdapter(DIM, 3 + number, function)) for number in range(count)]
    both = AdaptedFeedForward(ffn, adapters)  # type: ignore[arg-type]
    before = {name: parameter.clone() for name, parameter in both.named_parameters()}
    x = torch.randn(2, 5, DIM)
    by_hand = ffn(x) + sum(
        F.linear(function(F.linear(x, a.down.weight, a.down.bias)), a.up.weight, a.up.bias) for a in adapters
    )
    folded = both.folded()
    torch.testing.assert_close(both(x), by_hand)
    torch.testing.assert_close(folded(x), by_hand)
    assert folded.up.weight.shape[0] == 12 + sum(adapter.down.weight.shape[0] for adapter in adapters)
    # What was folded is a copy: neither the FFN nor the adapters are changed by it or shared with it.
    assert all(torch.equal(parameter, before[name]) for name, parameter in both.named_parameters())
    assert not any(parameter.requires_grad for parameter in folded.parameters())
