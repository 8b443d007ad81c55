"""A tiny model that has half learned to turn lines round, so that its beams differ and most of its outputs end."""

from __future__ import annotations

import random

import pytest
import torch
import torch.nn.functional as F

from graftmt.model import ModelConfig, Transformer

PADDING, END, FIRST_WORD, VOCABULARY = 1, 2, 4, 24


def random_lines(count: int, seed: int) -> list[list[int]]:
    """Lines of 2 to 9 words and the end."""
    chance = random.Random(seed)
    return [[*(chance.randrange(FIRST_WORD, VOCABULARY) for _ in range(chance.randint(2, 9))), END] for _ in range(count)]


def padded(lines: list[list[int]]) -> torch.Tensor:
    longest = max(map(len, lines))
    return torch.tensor([[*line, *[PADDING] * (longest - len(line))] for line in lines])


@pytest.fixture(scope="session")
def sources() -> list[list[int]]:
    """Lines as the encoder reads them, all different."""
    lines = random_lines(220, seed=1)
    assert len({tuple(line) for line in lines}) == len(lines)
    return lines


@pytest.fixture(scope="session")
def model() -> Transformer:
    """Shared by all tests: do not change it."""
    torch.manual_seed(1)
    config = ModelConfig(model_dim=32, ffn_dim=64, heads=4, encoder_layers=2, decoder_layers=2)
    model = Transformer.build(config, VOCABULARY)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(150):
        lines = random_lines(64, seed=100 + step)
        targets = padded([[*line[-2::-1], END] for line in lines])
        decoder_input = torch.cat([torch.full((len(lines), 1), END), targets[:, :-1]], dim=1)
        loss = F.cross_entropy(model(padded(lines), decoder_input).flatten(0, 1), targets.flatten(), ignore_index=PADDING)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert 0.5 < loss.item() < 2.5  # neither sure of everything nor ignorant
    return model.eval().requires_grad_(False)
