"""Batches without padding: the same pairs and the same loss as padded ones, always in the same shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from graftmt.data import (
    BatchMaker,
    Direction,
    PackedBatch,
    PackedMaker,
    PackedPlan,
    PackedShape,
    PairSampler,
    TokenizedCorpus,
    select_directions,
)
from graftmt.model import Transformer, named_size
from graftmt.model.packed_kernels import TILE, tiles_of
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
    return PackedMaker(tokens, codec, plan.shape).make(*plan.pairs(step))


def test_every_batch_has_one_shape_and_little_padding(plan: PackedPlan, tokens: TokenizedCorpus, placed: Tokenizer) -> None:
    batches = [make(plan, tokens, placed, step) for step in range(32)]
    shapes = {
        (*batch.source.ids.shape, *batch.target.ids.shape, *batch.labels.shape, *batch.source.starts.shape) for batch in batches
    }
    assert len(shapes) == 1
    assert {side.longest for batch in batches for side in (batch.source, batch.target)} == {plan.shape.longest}
    for batch in batches:
        for side in (batch.source, batch.target):
            assert side.starts[-1] == len(side.ids) and 0 <= int(side.starts.diff().max()) <= plan.shape.longest
        empty = [side.starts.diff() == 0 for side in (batch.source, batch.target)]
        assert torch.equal(empty[0], empty[1])  # no query without a key, and no key without a query
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


FOREIGN = {"positions": "learned", "most_positions": 400, "embedding_norms": True, "decoder_heads": 2, "decoder_ffn_dim": 96}


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"norm": "pre"}, {"norm": "post"}, {"positions": "sinusoidal-even"}, FOREIGN])
def test_the_loss_and_its_gradients_are_those_of_a_padded_batch(
    plan: PackedPlan, tokens: TokenizedCorpus, placed: Tokenizer, changes: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    model = Transformer.build(named_size("tiny", **changes), len(placed)).double()  # no rounding decides which way a ReLU goes
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


def test_rows_fill_up_together_where_one_side_is_longer() -> None:
    chance = np.random.default_rng(1)
    source = chance.integers(2, 60, 5000)
    shape = PackedShape.expecting(source, source * 2, 32_000, 200)
    assert shape.target == pytest.approx(32_000, abs=128)
    assert shape.source == pytest.approx(16_160, abs=128)
    assert shape.sentences > 32_000 / (2 * source.mean()) + shape.spare


def test_a_line_as_long_as_a_batch_fits() -> None:
    shape = PackedShape.expecting(np.array([3, 300]), np.array([2, 5]), 300, 300)
    assert min(shape.source, shape.target) >= 300 + shape.spare


def test_a_single_pair_and_missing_codes_work(plan: PackedPlan, tokens: TokenizedCorpus, tokenizer: Tokenizer) -> None:
    line = int(np.flatnonzero(tokens.lengths[tokens.languages.index("de")])[0])
    batch = PackedMaker(tokens, tokenizer, plan.shape).make([Direction("en", "de")], np.array([line]))
    assert batch.source.starts[1] == len(tokens.texts["en"].line(line)) + 2
    assert torch.isfinite(packed_loss(Transformer.build(named_size("tiny"), len(tokenizer)), batch, 0.1))


@pytest.mark.parametrize("kind", ["source", "causal", "across"])
def test_tiles_cover_just_what_may_be_attended_to(
    plan: PackedPlan, tokens: TokenizedCorpus, placed: Tokenizer, kind: str
) -> None:
    batch = make(plan, tokens, placed, 2)
    queries = batch.source if kind == "source" else batch.target
    keys = batch.target if kind == "causal" else batch.source
    tiles = tiles_of(queries.starts, keys.starts, len(queries.ids), len(keys.ids), causal=kind == "causal")
    numbers = torch.arange(len(queries.starts) - 1)
    of_query, of_key = (torch.repeat_interleave(numbers, side.starts.diff()) for side in (queries, keys))
    assert torch.equal(tiles.of_query.long(), of_query) and torch.equal(tiles.of_key.long(), of_key)
    seen = of_query[:, None] == of_key[None]
    if kind == "causal":
        seen = seen.tril()
    for ranges, pairs in ((tiles.key_ranges, seen), (tiles.query_ranges, seen.t())):
        assert len(ranges) == -(-len(pairs) // TILE) > 2
        for (first, end), tile in zip(ranges.tolist(), pairs.split(TILE), strict=True):
            places = tile.any(dim=0).nonzero()
            assert (first, end) == (int(places[0]), int(places[-1]) + 1)


@pytest.mark.slow
def test_the_loss_of_a_batch_is_that_of_its_pairs_one_by_one(
    plan: PackedPlan, tokens: TokenizedCorpus, placed: Tokenizer
) -> None:
    """Pairs of any lengths side by side: padding says nothing to them."""
    torch.manual_seed(0)
    model = Transformer.build(named_size("tiny"), len(placed)).double()
    maker, (directions, lines) = BatchMaker(tokens, placed), plan.pairs(2)
    together = maker.make(directions, lines)
    alone = [maker.make([direction], np.array([line])) for direction, line in zip(directions, lines.tolist(), strict=True)]
    assert len({batch.source.shape[1] for batch in alone}) > 3
    with torch.no_grad():
        losses = [float(smoothed_loss(model, one.source, one.decoder_input, one.labels, 0.1)) for one in (together, *alone)]
    assert losses[0] == pytest.approx(sum(losses[1:]), rel=1e-6)
