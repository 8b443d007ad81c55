"""Decoding step by step with caches gives what the full forward gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from graftmt.model import Transformer

MakeModel = Callable[..., Transformer]
MakeBatch = Callable[..., Tensor]

VARIANTS: list[dict[str, Any]] = [{}, {"norm": "post", "embeddings": "separate", "output_bias": True}]
LENGTH = 7


def assert_equal(stepped: Tensor, full: Tensor) -> None:
    torch.testing.assert_close(stepped, full, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("prefix", [1, 2, 3])
@pytest.mark.parametrize("beam", [1, 4, 20])
def test_cached_steps_equal_the_full_forward(
    make_model: MakeModel, make_batch: MakeBatch, variant: dict[str, Any], prefix: int, beam: int
) -> None:
    model = make_model(**variant)
    source = make_batch([6, 2, 4])
    target = make_batch([LENGTH] * 3 * beam, seed=2)  # every hypothesis of every sentence is another text
    full = model(source.repeat_interleave(beam, dim=0), target)
    state = model.start(*model.encode(source), beam=beam, capacity=LENGTH)
    assert_equal(model.step(target[:, :prefix], state), full[:, prefix - 1])
    for position in range(prefix, LENGTH):
        assert state.position == position
        assert_equal(model.step(target[:, position : position + 1], state), full[:, position])


@pytest.mark.parametrize("variant", VARIANTS)
def test_hypotheses_follow_their_reordering(make_model: MakeModel, make_batch: MakeBatch, variant: dict[str, Any]) -> None:
    model, beam = make_model(**variant), 3
    source, target = make_batch([6, 2]), make_batch([LENGTH] * 6, seed=2)
    generator = torch.Generator().manual_seed(3)
    state = model.start(*model.encode(source), beam=beam, capacity=LENGTH)
    model.step(target[:, :1], state)
    for position in range(1, LENGTH):
        # Within each sentence some hypotheses die and others go on twice.
        rows = (torch.randint(0, beam, (2, beam), generator=generator) + torch.tensor([[0], [beam]])).flatten()
        state.reorder(rows)
        target = torch.cat([target[rows, :position], target[:, position:]], dim=1)
        full = model(source.repeat_interleave(beam, dim=0), target)
        assert_equal(model.step(target[:, position : position + 1], state), full[:, position])


def test_two_reorderings_are_one_after_the_other(make_model: MakeModel, make_batch: MakeBatch) -> None:
    model, source, target = make_model(), make_batch([5]), make_batch([2] * 4)
    state = model.start(*model.encode(source), beam=4, capacity=2)
    model.step(target[:, :1], state)
    state.reorder(torch.tensor([1, 2, 3, 3]))
    state.reorder(torch.tensor([0, 0, 1, 3]))
    target[:, 0] = target[torch.tensor([1, 1, 2, 3]), 0]
    assert_equal(model.step(target[:, 1:], state), model(source.expand(4, -1), target)[:, 1])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("beam", [1, 3])
def test_sentences_leave_one_after_the_other(
    make_model: MakeModel, make_batch: MakeBatch, variant: dict[str, Any], beam: int
) -> None:
    model = make_model(**variant)
    source, target = make_batch([6, 2, 5, 3]), make_batch([LENGTH] * 4 * beam, seed=2)
    full = model(source.repeat_interleave(beam, dim=0), target)
    state = model.start(*model.encode(source), beam=beam, capacity=LENGTH)
    active = torch.arange(4)
    model.step(target[:, :2], state)
    for position, kept in ((2, [0, 2, 3]), (3, [0, 1, 2]), (4, [2]), (5, [0])):
        sentences = torch.tensor(kept)
        state.keep_sentences(sentences)
        rows = (sentences[:, None] * beam + torch.arange(beam)).flatten()
        state.reorder(rows)
        active = active[sentences]
        all_rows = (active[:, None] * beam + torch.arange(beam)).flatten()
        assert_equal(model.step(target[all_rows, position : position + 1], state), full[all_rows, position])
    assert active.tolist() == [3]


@pytest.mark.slow
def test_steps_run_past_the_table_of_positions(make_model: MakeModel, make_batch: MakeBatch) -> None:
    model, source, target = make_model(), make_batch([4]), make_batch([515])
    full = model(source, target)
    model = make_model()
    state = model.start(*model.encode(source), beam=1, capacity=515)
    for position in range(515):
        scores = model.step(target[:, position : position + 1], state)
    assert_equal(scores, full[:, -1])
