"""The loss is the formula, the schedule has the shape it is named after."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from graftmt.model import ModelConfig, Transformer
from graftmt.model.embeddings import Projection
from graftmt.training import fused_loss
from graftmt.training.optimization import StageConfig, learning_rate, smoothed_loss

ROWS = 30


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(1)
    config = ModelConfig(model_dim=16, ffn_dim=32, heads=2, encoder_layers=1, decoder_layers=1)
    return Transformer.build(config, ROWS).double()


@pytest.fixture
def batch(model: Transformer) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Source, decoder input and labels of three lines, two of them padded."""
    torch.manual_seed(2)
    source, decoder_input, labels = torch.randint(4, ROWS, (3, 3, 6)).unbind()
    for line, length in enumerate((6, 4, 1)):
        labels[line, length:] = model.config.padding_id
    return source, decoder_input, labels


def by_the_formula(
    model: Transformer, source: torch.Tensor, decoder_input: torch.Tensor, labels: torch.Tensor, smoothing: float
) -> torch.Tensor:
    """(1 − ε)·nll + (ε / V)·Σ, token by token."""
    log_probabilities = model(source, decoder_input).log_softmax(dim=-1)
    total = torch.zeros((), dtype=log_probabilities.dtype)
    for line in range(labels.shape[0]):
        for position in range(labels.shape[1]):
            label = int(labels[line, position])
            if label != model.config.padding_id:
                row = log_probabilities[line, position]
                total = total - (1 - smoothing) * row[label] - smoothing / len(row) * row.sum()
    return total


@pytest.mark.slow
@pytest.mark.parametrize("way", ["plain", "large", "for a compiler", "compiled"])
@pytest.mark.parametrize("tokens_at_once", [5, 1000])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_loss_is_the_formula_and_so_is_its_gradient(
    model, batch, smoothing: float, tokens_at_once: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "for a compiler":
        monkeypatch.setattr(fused_loss, "_compiled_loss_and_gradient", lambda: fused_loss._loss_and_gradient_in_one)
    if way == "large":  # no copy of the matrix
        monkeypatch.setattr(fused_loss, "LARGE", 0)
    monkeypatch.setattr(fused_loss, "CHUNK_SCORES", tokens_at_once * fused_loss.ALIGNMENT)
    expected = by_the_formula(model, *batch, smoothing)
    expected.backward()
    gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()

    loss = smoothed_loss(model, *batch, smoothing, compiled="compile" in way)
    loss.backward()
    # The loss itself is computed in single precision.
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-5)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(
            parameter.grad, gradients[name], rtol=1e-3, atol=1e-5, msg=lambda text, n=name: f"{n}: {text}"
        )
    with torch.no_grad():
        torch.testing.assert_close(smoothed_loss(model, *batch, smoothing).double(), expected, rtol=1e-5, atol=1e-5)


def test_padding_adds_nothing_to_the_loss(model, batch) -> None:
    source, decoder_input, labels = batch
    padding = torch.full((3, 2), model.config.padding_id)
    longer = [torch.cat([tensor, padding], dim=1) for tensor in (source, decoder_input, labels)]
    torch.testing.assert_close(smoothed_loss(model, *longer, 0.1), smoothed_loss(model, *batch, 0.1))


class Shifted(Projection):
    """With something of its own, which the weight alone does not say."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + torch.arange(ROWS)


def test_a_projection_of_another_class_is_called(model, batch) -> None:
    model.projection = Shifted(model.projection.weight)
    loss = smoothed_loss(model, *batch, 0.1)
    torch.testing.assert_close(loss.double(), by_the_formula(model, *batch, 0.1), rtol=1e-5, atol=1e-5)


def test_warm_up_rises_in_equal_steps_to_the_learning_rate() -> None:
    stage = StageConfig(steps=1000, learning_rate=1.0, warmup=100, warmup_from=0.2)
    rates = [learning_rate(stage, step) for step in range(1, 101)]
    assert rates[-1] == pytest.approx(1.0)
    # Step 0, which never happens, would have `warmup_from`.
    assert rates[0] - 0.2 == pytest.approx(0.8 / 100)
    assert [later - earlier for earlier, later in pairwise(rates)] == pytest.approx([0.8 / 100] * 99)


def test_after_the_warm_up_four_times_the_steps_halve_the_rate() -> None:
    stage = StageConfig(steps=10_000, learning_rate=0.5, warmup=100)
    assert learning_rate(stage, 101) < learning_rate(stage, 100) < 1.01 * learning_rate(stage, 101)
    for step in (100, 250, 1000):
        assert learning_rate(stage, 4 * step) == pytest.approx(learning_rate(stage, step) / 2)


def test_without_warm_up_it_begins_at_the_learning_rate() -> None:
    assert learning_rate(StageConfig(learning_rate=0.5, warmup=0), 1) == pytest.approx(0.5)
    assert learning_rate(StageConfig(learning_rate=0.5, warmup=0), 4) == pytest.approx(0.25)


def test_a_constant_rate_stays() -> None:
    stage = StageConfig(steps=1000, learning_rate=0.5, warmup=10, schedule="constant")
    assert {learning_rate(stage, step) for step in range(10, 1001)} == {0.5}


@pytest.mark.parametrize("schedule", ["inverse-sqrt", "constant"])
def test_the_cool_down_takes_the_rate_linearly_to_zero(schedule) -> None:
    plain = StageConfig(steps=1000, learning_rate=0.5, warmup=10, schedule=schedule)
    cooled = StageConfig(steps=1000, learning_rate=0.5, warmup=10, schedule=schedule, cooldown=0.2)
    shares = [learning_rate(cooled, step) / learning_rate(plain, step) for step in range(1, 1001)]
    assert shares[:801] == [1.0] * 801
    # The update after the last would have none.
    assert [1 - share for share in shares[800:]] == pytest.approx([done / 200 for done in range(200)])
