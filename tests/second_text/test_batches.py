from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from graftmt.base import Base
from graftmt.data import BatchMaker, Corpus, Direction, PackedMaker, PackedPlan, PairSampler, TokenizedCorpus, tokenize_corpus
from graftmt.packs import Composition, Pack, compose
from graftmt.training.optimization import packed_loss, smoothed_loss

KINDS = ("characters", "ours")


def tokens_of(composition: Composition, direction: Direction, corpus: Path, cache: Path) -> TokenizedCorpus:
    """Both languages of a direction, each as its side reads it."""
    codec = composition.codec
    texts = {
        direction.source: codec.source_tokenizer(direction.source),
        direction.target: codec.target_tokenizer(direction.target),
    }
    return tokenize_corpus(Corpus.open(corpus, "train", tuple(direction)), texts, cache)


def codes(text: object, language: str, layout_has: bool) -> list[int]:
    return [text.code(language)] if layout_has else []  # type: ignore[attr-defined]


def test_rows_stand_where_the_layout_says(any_base: Base, graft_corpus: Path, tmp_path: Path) -> None:
    layout, base = any_base.tokenizer.layout, any_base.tokenizer
    direction = Direction(any_base.source_languages[0], any_base.target_languages[-1])
    source_text, target_text = base.side("source"), base.side("target")
    composition = compose(any_base)
    tokens = tokens_of(composition, direction, graft_corpus, tmp_path)
    lines = np.array([3, 0, 7])
    batch = BatchMaker(tokens, composition.codec).make([direction] * 3, lines)
    whose = {"source": direction.source, "target": direction.target}.get(layout.source_code or "")
    code = [] if whose is None else [source_text.code(whose)]
    start = [target_text.padding_id if layout.decoder_start == "padding" else target_text.end_id]
    start += codes(target_text, direction.target, layout.decoder_code)
    for row, line in enumerate(lines.tolist()):
        source, target = tokens.texts[direction.source].line(line), tokens.texts[direction.target].line(line)
        end = source_text.end_id
        around = [*source, end, *code] if layout.code_after_text else [*code, *source, end]
        expected = {
            "source": (around, source_text.padding_id),
            "decoder_input": ([*start, *target], target_text.padding_id),
            "labels": ([*[target_text.padding_id] * (len(start) - 1), *target, target_text.end_id], target_text.padding_id),
        }
        for name, (ids, padding) in expected.items():
            found = getattr(batch, name)[row].tolist()
            assert found == ids + [padding] * (len(found) - len(ids)), name


@pytest.mark.parametrize("target_kind", [*KINDS, None])
@pytest.mark.parametrize("source_kind", [*KINDS, None])
def test_padded_and_packed_batches_have_the_same_loss(
    any_base: Base,
    make_pack: Callable[..., Pack],
    graft_corpus: Path,
    tmp_path: Path,
    source_kind: str | None,
    target_kind: str | None,
) -> None:
    """Whatever kinds of text meet: each side has its own padding, end and codes."""
    source = make_pack(any_base, "source", "el", source_kind) if source_kind else None
    target = make_pack(any_base, "target", "uk", target_kind) if target_kind else None
    direction = Direction("el" if source else any_base.source_languages[0], "uk" if target else any_base.target_languages[-1])
    composition = compose(any_base, source=source, target=target)
    tokens = tokens_of(composition, direction, graft_corpus, tmp_path)
    sampler = PairSampler(tokens, [direction], temperature=1.0, max_length=200, seed=1)
    plan = PackedPlan(sampler, tokens, max_tokens=300)
    pairs = plan.pairs(0)
    padded, packed = (
        BatchMaker(tokens, composition.codec).make(*pairs),
        PackedMaker(tokens, composition.codec, plan.shape).make(*pairs),
    )
    for row in range(len(padded.lines)):
        for ids, other in zip(packed.pair(row), padded.pair(row), strict=True):
            assert other[: len(ids)] == ids
    loss = smoothed_loss(composition.model, padded.source, padded.decoder_input, padded.labels, 0.1)
    torch.testing.assert_close(packed_loss(composition.model, packed, 0.1), loss, rtol=1e-4, atol=1e-3)
    assert (padded.source_tokens, padded.target_tokens) == (packed.source_tokens, packed.target_tokens)
    counted = (
        padded.labels.ne(composition.codec.target_padding_id).sum()
        + padded.source.ne(composition.codec.source_padding_id).sum()
    )
    assert counted == padded.source_tokens + padded.target_tokens


def test_padding_changes_nothing(any_base: Base, make_pack: Callable[..., Pack], graft_corpus: Path, tmp_path: Path) -> None:
    composition = compose(
        any_base, source=make_pack(any_base, "source", "el", "ours"), target=make_pack(any_base, "target", "uk", "ours")
    )
    direction = Direction("el", "uk")
    maker = BatchMaker(tokens_of(composition, direction, graft_corpus, tmp_path), composition.codec)
    together = maker.make([direction] * 8, np.arange(8))
    losses = []
    for line in range(8):
        one = maker.make([direction], np.array([line]))
        losses.append(smoothed_loss(composition.model, one.source, one.decoder_input, one.labels, 0.0))
    whole = smoothed_loss(composition.model, together.source, together.decoder_input, together.labels, 0.0)
    torch.testing.assert_close(whole, torch.stack(losses).sum(), rtol=1e-5, atol=1e-4)
