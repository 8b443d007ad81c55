"""Batches without padding: the same pairs and the same loss as padded ones, always in the same shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import torch

from graftmt.data import (
    BatchMaker,
    Direction,
    PackedBatch,
    PackedMaker,
    PackedPlan,
    PairSampler,
    TokenizedCorpus,
    select_directions,
)
from graftmt.model import Transformer, named_size
from graftmt.text import Subwords, Tokenizer
from graftmt.training.optimization import packed_loss, smoothed_loss

MAX_TOKENS, LONGEST = 600, 100


@pytest.fixture(scope="module")
def tokens(random_corpus: Callable[..., TokenizedCorpus]) -> TokenizedCorpus:
    return random_corpus(1500, missing={"de": 0.6})


@pytest.fixture(scope="module", params=["source", "decoder"])
def placed(request: pytest.FixtureRequest, subwords: Subwords, tokenizer: Tokenizer) -> Tokenizer:
    return Tokenizer(subwords, tokenizer.languages, request.param)


@pytest.fixture(scope="module")
def plan(tokens: TokenizedCorpus) -> PackedPlan:
    directions = select_directions("multi-parallel", tokens.languages)
    sampler = PairSampler(tokens, directions, temperature=5, max_length=LONGEST, seed=3)
    return PackedPlan(sampler, tokens, max_tokens=MAX_TOKENS, pool_batches=16)


def make(plan: PackedPlan, tokens: TokenizedCorpus, codec: Tokenizer, step: int) -> PackedBatch:
    return PackedMaker(tokens, codec, MAX_TOKENS, LONGEST + 2).make(*plan.pairs(step))


def test_every_batch_has_one_shape_and_little_padding(plan: PackedPlan, tokens: TokenizedCorpus, placed: Tokenizer) -> None:
    batches = [make(plan, tokens, placed, step) for step in range(32)]
    shapes = {
        (*batch.source.ids.shape, *batch.target.ids.shape, *batch.labels.shape, *batch.source.starts.shape) for batch in batches
    }
    assert len(shapes) == 1
    assert {batch.source.longest for batch in batches} == {LONGEST + 2}
    used = sum(batch.source_tokens + batch.target_tokens for batch in batches) / sum(batch.size for batch in batches)
    assert used > 0.8  # the longest line is a sixth of these small batches


def test_each_pair_stands_in_its_batch_as_in_a_padded_one(plan: PackedPlan, tokens: TokenizedCorpus, placed: Tokenizer) -> None:
    padded = BatchMaker(tokens, placed)
    for step in range(4):
        packed, plain = make(plan, tokens, placed, step), padded.make(*plan.pairs(step))
        assert packed.target_tokens == plain.target_tokens
        assert packed.source_tokens == plain.source_tokens
        for row in range(len(packed.lines)):
            for own, other in zip(packed.pair(row), plain.pair(row), strict=True):
                assert own == other[: len(own)]
                assert set(other[len(own) :]) <= {placed.padding_id}


def test_a_pool_leaves_nothing_out_but_whole_batches(plan: PackedPlan, tokens: TokenizedCorpus) -> None:
    directions, lines = plan.sampler.block(0, plan.block_size)
    cut = plan._cut(directions, lines)
    given = Counter(zip(directions.tolist(), lines.tolist(), strict=True))
    assert Counter(pair for part in cut for pair in zip(part[0].tolist(), part[1].tolist(), strict=True)) == given


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_loss_and_its_gradients_are_those_of_a_padded_batch(
    plan: PackedPlan, tokens: TokenizedCorpus, placed: Tokenizer, norm: str
) -> None:
    torch.manual_seed(0)
    model = Transformer.build(named_size("tiny", norm=norm), len(placed)).double()  # no rounding decides which way a ReLU goes
    packed, plain = make(plan, tokens, placed, 1), BatchMaker(tokens, placed).make(*plan.pairs(1))
    gradients = []
    for loss in (
        packed_loss(model, packed, 0.1),
        smoothed_loss(model, plain.source, plain.decoder_input, plain.labels, 0.1),
    ):
        model.zero_grad()
        (loss / plain.target_tokens).backward()
        gradients.append((loss.item(), [parameter.grad for parameter in model.parameters()]))
    assert gradients[0][0] == pytest.approx(gradients[1][0], rel=1e-5)
    for own, other in zip(gradients[0][1], gradients[1][1], strict=True):
        assert own is not None and other is not None
        torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-7)


def test_a_single_pair_and_missing_codes_work(tokens: TokenizedCorpus, tokenizer: Tokenizer) -> None:
    line = int(np.flatnonzero(tokens.lengths[tokens.languages.index("de")])[0])
    batch = PackedMaker(tokens, tokenizer, MAX_TOKENS, LONGEST + 2).make([Direction("en", "de")], np.array([line]))
    assert batch.source.starts[1] == len(tokens.texts["en"].line(line)) + 2
    assert torch.isfinite(packed_loss(Transformer.build(named_size("tiny"), len(tokenizer)), batch, 0.1))
