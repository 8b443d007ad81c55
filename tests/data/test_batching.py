"""Batches: what is in a row, the bound on tokens, that steps decide everything, and the thread that works ahead."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from patience import PATIENCE, until

from graftmt.data import Batch, BatchMaker, BatchPlan, BatchStream, Direction, PairSampler, TokenizedCorpus, select_directions
from graftmt.data.cache import TokenizedText
from graftmt.errors import ConfigError
from graftmt.text import Subwords, Tokenizer

RandomCorpus = Callable[..., TokenizedCorpus]
MISSING = {"de": 0.6, "ru": 0.3}
MAX_TOKENS = 1000
POOL = 32


@pytest.fixture(scope="module")
def tokens(random_corpus: RandomCorpus) -> TokenizedCorpus:
    return random_corpus(3000, missing=MISSING)


@pytest.fixture(scope="module", params=["source", "decoder"])
def placed(request: pytest.FixtureRequest, subwords: Subwords, tokenizer: Tokenizer) -> Tokenizer:
    """A tokenizer for each place of the language code."""
    return Tokenizer(subwords, tokenizer.languages, request.param)


def make_plan(corpus: TokenizedCorpus, *, seed: int = 1, max_tokens: int = MAX_TOKENS, pool_batches: int = POOL) -> BatchPlan:
    directions = select_directions("multi-parallel", corpus.languages)
    sampler = PairSampler(corpus, directions, temperature=5, max_length=100, seed=seed)
    return BatchPlan(sampler, corpus, max_tokens=max_tokens, pool_batches=pool_batches)


def pairs_of(batch: Batch) -> list[tuple[Direction, int]]:
    return list(zip(batch.directions, batch.lines, strict=True))


def same(one: Batch, other: Batch) -> bool:
    parts = ("source", "decoder_input", "labels")
    return pairs_of(one) == pairs_of(other) and all(torch.equal(getattr(one, part), getattr(other, part)) for part in parts)


def test_rows_are_prefix_tokens_end_and_padding(tokens: TokenizedCorpus, placed: Tokenizer) -> None:
    vocabulary = placed.vocabulary
    plan, maker = make_plan(tokens), BatchMaker(tokens, placed)
    for step in range(3):
        batch = maker.make(*plan.pairs(step))
        assert batch.decoder_input.shape == batch.labels.shape
        for row, (direction, line) in enumerate(pairs_of(batch)):
            source, target = (tokens.texts[language].line(line) for language in direction)
            prefix = placed.decoder_prefix(direction.target)
            code = vocabulary.code(direction.target if placed.code_placement == "source" else direction.source)
            expected = {
                "source": [code, *source, vocabulary.end_id],
                "decoder_input": [*prefix, *target],
                "labels": [*[vocabulary.padding_id] * (len(prefix) - 1), *target, vocabulary.end_id],
            }
            for part, ids in expected.items():
                found = getattr(batch, part)[row].tolist()
                assert found == ids + [vocabulary.padding_id] * (len(found) - len(ids))


def test_codes_stand_where_the_placement_says(tokens: TokenizedCorpus, placed: Tokenizer) -> None:
    code, end = placed.vocabulary.code, placed.vocabulary.end_id
    batch = BatchMaker(tokens, placed).make(*make_plan(tokens).pairs(0))
    first = batch.source[:, 0].tolist()
    assert batch.decoder_input[:, 0].tolist() == [end] * len(first)
    if placed.code_placement == "source":
        assert first == [code(direction.target) for direction in batch.directions]
        assert not any(batch.decoder_input[:, 1].eq(code(language)).any() for language in placed.languages)
    else:
        assert first == [code(direction.source) for direction in batch.directions]
        assert batch.decoder_input[:, 1].tolist() == [code(direction.target) for direction in batch.directions]


def test_labels_are_the_next_input(tokens: TokenizedCorpus, placed: Tokenizer) -> None:
    vocabulary = placed.vocabulary
    batch = BatchMaker(tokens, placed).make(*make_plan(tokens).pairs(5))
    # Wherever a label is a token, not the end, the decoder reads it one step later; forced prefixes have no label.
    labels, following = batch.labels[:, :-1], batch.decoder_input[:, 1:]
    token = labels.ne(vocabulary.end_id) & labels.ne(vocabulary.padding_id)
    assert torch.equal(labels[token], following[token])
    assert batch.labels.eq(vocabulary.end_id).sum(1).eq(1).all()


def test_no_column_is_padding_alone_and_counts_are_of_real_tokens(tokens: TokenizedCorpus, placed: Tokenizer) -> None:
    padding = placed.vocabulary.padding_id
    plan, maker = make_plan(tokens), BatchMaker(tokens, placed)
    for step in range(5):
        batch = maker.make(*plan.pairs(step))
        assert batch.source.ne(padding).any(0).all()
        assert batch.decoder_input.ne(padding).any(0).all()
        assert batch.source_tokens == batch.source.ne(padding).sum()
        assert batch.target_tokens == batch.labels.ne(padding).sum()
        real = batch.source_tokens + batch.target_tokens
        assert batch.padding_share == pytest.approx(1 - real / (batch.source.numel() + batch.labels.numel()))


def test_one_pair_alone_has_no_padding(tokens: TokenizedCorpus, tokenizer: Tokenizer) -> None:
    line = int(np.flatnonzero(tokens.lengths.min(0))[0])
    batch = BatchMaker(tokens, tokenizer).make([Direction("en", "fr")], np.array([line]))
    assert batch.padding_share == 0
    assert batch.to(torch.device("cpu")) is batch


def test_padded_tokens_stay_within_the_bound(tokens: TokenizedCorpus, placed: Tokenizer) -> None:
    maker = BatchMaker(tokens, placed)
    for max_tokens in (102, 500, 4000):
        plan = make_plan(tokens, max_tokens=max_tokens)
        sizes = []
        for step in range(2 * POOL):
            batch = maker.make(*plan.pairs(step))
            sizes.append(len(batch.lines) * max(batch.source.shape[1], batch.labels.shape[1]))
        assert max(sizes) <= max_tokens
        assert np.mean(sizes) > (0.6 if max_tokens < 500 else 0.85) * max_tokens


def test_the_widest_line_may_fill_a_batch_and_a_wider_one_is_an_error(random_corpus: RandomCorpus) -> None:
    corpus = random_corpus(20)  # so few that each pool has all of them
    widest = make_plan(corpus).sampler.longest + 2
    plan = make_plan(corpus, max_tokens=widest, pool_batches=400)
    pairs = {pair for step in range(400) for pair in zip(*(list(part) for part in plan.pairs(step)), strict=True)}
    assert len(pairs) == plan.sampler.pairs
    with pytest.raises(ConfigError, match=rf"batch_tokens is {widest - 1}, .* line of {widest} tokens.* lower max_length"):
        make_plan(corpus, max_tokens=widest - 1)


def test_every_kept_pair_appears_once_in_its_pool_and_few_are_left_out(tokens: TokenizedCorpus) -> None:
    plan = make_plan(tokens, max_tokens=4000, pool_batches=64)
    for pool in range(3):
        directions, lines = plan.sampler.block(pool, plan.block_size)
        block = Counter(zip((plan.sampler.directions[k] for k in directions), lines.tolist(), strict=True))
        batches: Counter[tuple[Direction, int]] = Counter()
        for step in range(pool * 64, (pool + 1) * 64):
            batches.update(zip(*(list(part) for part in plan.pairs(step)), strict=True))
        assert batches <= block
        assert batches.total() > 0.9 * block.total()


def test_what_is_left_out_is_of_no_special_length(tokens: TokenizedCorpus) -> None:
    plan = make_plan(tokens)
    # A block twice as long as needed: half of it is left out of each pool.
    plan.block_size *= 2
    kept, drawn = [], []
    for pool in range(20):
        directions, lines = plan.sampler.block(pool, plan.block_size)
        drawn.append(np.maximum(*plan._lengths(directions, lines)))
        for directions, lines in plan._pool(pool):
            kept.append(np.maximum(*plan._lengths(directions, lines)))
    assert np.concatenate(kept).mean() == pytest.approx(np.concatenate(drawn).mean(), rel=0.05)


def test_a_block_too_short_for_its_pool_makes_smaller_batches(tokens: TokenizedCorpus) -> None:
    plan = make_plan(tokens)
    plan.block_size = POOL + 3
    _, lines = plan.sampler.block(4, plan.block_size)
    pool = plan._pool(4)
    assert len(pool) == POOL
    assert all(len(lines) for _, lines in pool)
    assert sorted(line for _, lines in pool for line in lines.tolist()) == sorted(lines.tolist())


def test_a_pool_larger_than_the_corpus_goes_through_it_several_times(random_corpus: RandomCorpus, tokenizer: Tokenizer) -> None:
    corpus = random_corpus(3)
    plan, maker = make_plan(corpus), BatchMaker(corpus, tokenizer)
    seen = {pair for step in range(POOL) for pair in pairs_of(maker.make(*plan.pairs(step)))}
    assert len(seen) == plan.sampler.pairs == 3 * 12


def test_batches_mix_directions(tokens: TokenizedCorpus) -> None:
    plan = make_plan(tokens, max_tokens=4000)
    shares = []
    for step in range(POOL):
        directions, _ = plan.pairs(step)
        shares.append(max(Counter(directions).values()) / len(directions))
    assert np.mean(shares) < 0.25  # of 12 directions


def test_short_and_long_batches_come_in_no_order(tokens: TokenizedCorpus) -> None:
    plan = make_plan(tokens, pool_batches=128)
    rows = np.array([len(plan.pairs(step)[1]) for step in range(128)])
    assert abs(np.corrcoef(rows, np.arange(128))[0, 1]) < 0.3


def test_little_is_padding(random_corpus: RandomCorpus, tokenizer: Tokenizer) -> None:
    corpus = random_corpus(20_000)
    directions = select_directions("multi-parallel", corpus.languages)
    plan = BatchPlan(PairSampler(corpus, directions, temperature=5, max_length=200, seed=1), corpus, max_tokens=4096)
    maker = BatchMaker(corpus, tokenizer)
    batches = [maker.make(*plan.pairs(step)) for step in range(plan.pool_batches)]
    padded = sum(batch.source.numel() + batch.labels.numel() for batch in batches)
    assert 1 - sum(batch.source_tokens + batch.target_tokens for batch in batches) / padded < 0.06


def test_a_batch_is_a_function_of_seed_and_step(tokens: TokenizedCorpus, tokenizer: Tokenizer) -> None:
    maker = BatchMaker(tokens, tokenizer)
    plan, again, other = make_plan(tokens), make_plan(tokens), make_plan(tokens, seed=2)
    in_order = [maker.make(*plan.pairs(step)) for step in range(3 * POOL)]
    for step in (3 * POOL - 1, 0, POOL, POOL - 1, POOL, 7):
        assert same(maker.make(*again.pairs(step)), in_order[step])
    assert not same(maker.make(*other.pairs(0)), in_order[0])
    assert not same(in_order[0], in_order[1])
    assert not same(in_order[0], in_order[POOL])


def digest(plan: BatchPlan, maker: BatchMaker, steps: list[int]) -> str:
    total = hashlib.sha256()
    for step in steps:
        batch = maker.make(*plan.pairs(step))
        for part in (batch.source, batch.decoder_input, batch.labels):
            total.update(part.numpy().tobytes())
    return total.hexdigest()


@pytest.mark.slow
def test_a_fresh_process_makes_the_same_batches(tokens: TokenizedCorpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    steps = [5, 0, 2 * POOL + 1]
    (tmp_path / "corpus").write_bytes(pickle.dumps((tokens, tokenizer)))
    program = f"""
import importlib.util, pathlib, pickle
spec = importlib.util.spec_from_file_location("batching_tests", {__file__!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
corpus, tokenizer = pickle.loads(pathlib.Path({str(tmp_path / "corpus")!r}).read_bytes())
print(module.digest(module.make_plan(corpus), module.BatchMaker(corpus, tokenizer), {steps}))
"""
    # Another seed of Python's hashes: the order of sets and dictionaries of strings must not matter.
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=PATIENCE)
    assert run.stdout.strip() == digest(make_plan(tokens), BatchMaker(tokens, tokenizer), steps)


class Interrupted(BatchPlan):
    """A plan that another thread asks for another pool at the worst moment: when this one has just been kept."""

    @property
    def cached(self) -> Any:  # type: ignore[override]
        return self.kept

    @cached.setter
    def cached(self, value: Any) -> None:
        self.kept = value
        if value is not None and value[0] != 9:
            self.pairs(9 * self.pool_batches)


def test_threads_at_different_pools_do_not_disturb_each_other(tokens: TokenizedCorpus) -> None:
    plan = make_plan(tokens)
    interrupted = Interrupted(plan.sampler, tokens, max_tokens=MAX_TOKENS, pool_batches=POOL)
    for step in (0, POOL, 1):
        for found, expected in zip(interrupted.pairs(step), plan.pairs(step), strict=True):
            assert list(found) == list(expected)


def stopped(stream: BatchStream) -> bool:
    stream.thread.join(timeout=PATIENCE)
    return not stream.thread.is_alive()


def test_a_stream_gives_the_batches_of_its_steps(tokens: TokenizedCorpus, tokenizer: Tokenizer) -> None:
    plan, maker = make_plan(tokens), BatchMaker(tokens, tokenizer)
    stream = BatchStream(make_plan(tokens), maker, 10, 2 * POOL + 3)
    batches = list(stream)
    assert len(batches) == 2 * POOL + 3 - 10
    for step, batch in enumerate(batches, 10):
        assert same(batch, maker.make(*plan.pairs(step)))
    assert stopped(stream)


def test_a_stream_without_steps_ends_at_once(tokens: TokenizedCorpus, tokenizer: Tokenizer) -> None:
    assert list(BatchStream(make_plan(tokens), BatchMaker(tokens, tokenizer), 5, 5)) == []


def test_a_stream_works_a_bounded_number_of_batches_ahead(tokens: TokenizedCorpus, tokenizer: Tokenizer) -> None:
    plan = make_plan(tokens)
    asked: list[int] = []
    pairs = plan.pairs
    plan.pairs = lambda step: (asked.append(step), pairs(step))[1]  # type: ignore[method-assign]
    stream = BatchStream(plan, BatchMaker(tokens, tokenizer), 0, 1000, ahead=3)
    batches = iter(stream)
    next(batches)
    until(lambda: len(asked) >= 5)
    time.sleep(0.05)
    assert len(asked) == 5  # one taken, three waiting, one in hand
    stream.close()
    assert stopped(stream)


def test_an_error_in_the_thread_is_raised_to_the_reader(tokens: TokenizedCorpus, tokenizer: Tokenizer) -> None:
    plan = make_plan(tokens)
    pairs = plan.pairs

    def fail_at_three(step: int) -> tuple[list[Direction], np.ndarray]:
        if step == 3:
            raise RuntimeError("the disk is gone")
        return pairs(step)

    plan.pairs = fail_at_three  # type: ignore[method-assign]
    stream = BatchStream(plan, BatchMaker(tokens, tokenizer), 0, 10)
    received = []
    with pytest.raises(RuntimeError, match="the disk is gone"):
        for batch in stream:
            received.append(batch)
    assert len(received) == 3
    assert stopped(stream)


def test_a_stream_abandoned_early_stops_its_thread(tokens: TokenizedCorpus, tokenizer: Tokenizer) -> None:
    plan, maker = make_plan(tokens), BatchMaker(tokens, tokenizer)
    by_break = BatchStream(plan, maker, 0, 10_000)
    for _ in by_break:
        break
    assert stopped(by_break)
    by_exception = BatchStream(plan, maker, 0, 10_000)
    with pytest.raises(KeyboardInterrupt):
        for _ in by_exception:
            raise KeyboardInterrupt
    assert stopped(by_exception)


def test_a_closed_stream_stops_its_thread_and_has_no_more_batches(tokens: TokenizedCorpus, tokenizer: Tokenizer) -> None:
    stream = BatchStream(make_plan(tokens), BatchMaker(tokens, tokenizer), 0, 10_000)
    batches = iter(stream)
    next(batches)
    stream.close()
    assert not stream.thread.is_alive()
    assert list(batches) == []


def test_a_reader_that_waits_is_released_by_close(tokens: TokenizedCorpus, tokenizer: Tokenizer) -> None:
    plan = make_plan(tokens)
    release = threading.Event()
    pairs = plan.pairs
    plan.pairs = lambda step: (release.wait(PATIENCE), pairs(step))[1]  # type: ignore[method-assign]
    stream = BatchStream(plan, BatchMaker(tokens, tokenizer), 0, 10)
    found: list[Batch] = []
    reader = threading.Thread(target=lambda: found.extend(stream), daemon=True)
    reader.start()
    until(stream.thread.is_alive)
    time.sleep(0.05)  # now it waits for the first batch
    threading.Timer(0.5, release.set).start()
    stream.close()
    assert not stream.thread.is_alive()
    reader.join(timeout=PATIENCE)
    assert not reader.is_alive()
    assert found == []


def test_batches_of_one_line_in_many_directions_are_never_empty(tokenizer: Tokenizer) -> None:
    """A block holds its size give or take one draw per direction; a short pool must not be filled with nothing."""
    random = np.random.default_rng(0)
    texts = {}
    for number in range(20):
        lengths = random.integers(36, 50, 200)
        starts = np.append(0, np.cumsum(lengths))
        texts[f"l{number}"] = TokenizedText(f"l{number}", np.full(starts[-1], 10, dtype=np.uint16), starts, 0.0)
    corpus = TokenizedCorpus("train", texts)
    directions = [Direction(a, b) for a in texts for b in texts if a != b]
    sampler = PairSampler(corpus, directions, temperature=5, max_length=100, seed=1)
    plan = BatchPlan(sampler, corpus, max_tokens=60)
    for step in range(30 * plan.pool_batches):
        assert len(plan.pairs(step)[1]) == 1
