"""What compiled layers drop: as often as asked, differently each time, the same forwards and backwards."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor, nn

from graftmt.model.layers import Dropout, drop_by_hash

SHAPE = (400, 512)


def dropped(probability: float, *noise: int) -> Tensor:
    return drop_by_hash(torch.ones(SHAPE), probability, torch.tensor(noise, dtype=torch.int32)) == 0


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("noise", [(0, 0), (1, 0), (-5, 7), (2**31 - 1, -(2**31))])
def test_as_much_is_dropped_as_asked_for_everywhere(probability: float, noise: tuple[int, int]) -> None:
    found = dropped(probability, *noise).float()
    spread = (probability * (1 - probability)) ** 0.5
    assert found.mean().item() == pytest.approx(probability, abs=5 * spread / found.numel() ** 0.5)
    for dim in (0, 1):  # no row or column is favoured: means of independent draws differ by this much
        assert found.mean(dim).std().item() == pytest.approx(spread / SHAPE[dim] ** 0.5, rel=0.2)


def test_neighbours_and_draws_know_nothing_of_each_other() -> None:
    draws = [dropped(0.3, *noise).flatten().float() for noise in ((0, 0), (0, 1), (1, 0), (2, 0), (12345, -999))]
    pairs = [*itertools.combinations(draws, 2), *((draws[0][lag:], draws[0][:-lag]) for lag in (1, 2, 3, 64, 512))]
    for one, two in pairs:
        assert torch.corrcoef(torch.stack([one, two]))[0, 1].abs().item() < 5 / len(one) ** 0.5


class Residual(nn.Module):
    """Two places that drop, as in a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = Dropout(0.1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.dropout(x * 2), self.dropout(x * 3)


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_it_keeps_to_the_probability_of_the_moment(dynamic: bool) -> None:
    module = Residual()
    module.compile(dynamic=dynamic)
    torch.manual_seed(1)
    for probability in (0.1, 0.2, 0.3, 0.1):
        module.dropout.p = probability
        x = torch.ones(SHAPE, requires_grad=True)
        first, second = module(x)
        again = module(x)[0]
        for found, factor in ((first, 2), (second, 3)):
            assert (found == 0).float().mean().item() == pytest.approx(probability, abs=0.01)
            torch.testing.assert_close(found[found != 0], torch.full_like(found[found != 0], factor / (1 - probability)))
        assert not torch.equal(first == 0, second == 0) and not torch.equal(first, again)
        (first.sum() + second.sum()).backward()
        assert x.grad is not None
        torch.testing.assert_close(x.grad, (first + second).detach())  # what was dropped gets no gradient


def test_a_seed_repeats_it_and_evaluation_drops_nothing() -> None:
    module = Residual()
    module.compile()
    runs = []
    for _ in range(2):
        torch.manual_seed(3)
        runs.append(module(torch.ones(SHAPE))[0])
    assert torch.equal(*runs)
    assert torch.equal(module.eval()(torch.ones(SHAPE))[0], torch.full(SHAPE, 2.0))
