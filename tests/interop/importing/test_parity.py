"""An imported model gives what it gave in transformers: ids, scores of every token, translations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from peers import foreign_tokenizers as made
from peers.foreign_models import MODELS
from torch import Tensor

from graftmt import Translator
from graftmt.decoding import SearchOptions
from graftmt.text import TextCodec
from graftmt.translation_requests import Request, source_rows

TIE = 1e-5
SEARCH = SearchOptions(beam=5, max_length=24, length_ratio=50)


def lines_of(count: int) -> list[str]:
    """Lines in many scripts that are not too long for a quick search."""
    lines = [line for line in made.sample_lines() if line.strip() and len(line) < 60]
    return lines[:: max(1, len(lines) // count)][:count]


def batch_of(rows: list[list[int]], padding: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[padding] * (longest - len(row))] for row in rows])


def encoded(found: Any, lines: list[str]) -> tuple[list[list[int]], TextCodec]:
    codec = TextCodec(found.ours.tokenizer)
    requests = [Request(line, found.theirs.source, found.theirs.target) for line in lines]
    text = codec.source_tokenizer(found.theirs.source)
    return [source_rows(codec, request, text.encode(request.line)) for request in requests], codec


@pytest.mark.parametrize("name", MODELS)
def test_every_score_is_that_of_transformers(name: str, imported: Callable[[str], Any]) -> None:
    found = imported(name)
    sources, codec = encoded(found, lines_of(12))
    targets = [[*codec.decoder_prefix(found.theirs.target), *reversed(row[1:-1])] for row in sources]
    source, target = batch_of(sources, codec.source_padding_id), batch_of(targets, codec.target_padding_id)
    model = found.ours.model
    with torch.inference_mode():
        ours = model(source, target)
        theirs = found.theirs.model(
            input_ids=source,
            attention_mask=(source != codec.source_padding_id).long(),
            decoder_input_ids=target,
            use_cache=False,
        ).logits
    real = target != codec.target_padding_id
    real[:, 0] = True  # a decoder may start from padding
    assert theirs[real].std() > 1  # large enough for a difference to show
    torch.testing.assert_close(ours[real], theirs[real], atol=1e-4, rtol=0)


def smallest_gap(found: Any, codec: TextCodec, source: list[int]) -> float:
    """How near the last hypothesis that a beam keeps and the first that it drops come to each other, by transformers' scores.

    Where that is no more than rounding, another processor or another order of sums finds another translation.
    """
    prefix, width = codec.decoder_prefix(found.theirs.target), SEARCH.beam
    beam: list[tuple[float, list[int]]] = [(0.0, [])]
    gap = float("inf")
    for _ in range(SEARCH.max_length):
        with torch.inference_mode():
            logits = found.theirs.model(
                input_ids=torch.tensor([source] * len(beam)),
                decoder_input_ids=torch.tensor([[*prefix, *ids] for _, ids in beam]),
                use_cache=False,
            ).logits[:, -1]
            scores = logits.log_softmax(-1).clone()
            scores[:, list(codec.forbidden)] = float("-inf")
        best = [scores[row].topk(2 * width) for row in range(len(beam))]
        longer = sorted(
            (
                (score + more, [*ids, token])
                for (score, ids), top in zip(beam, best, strict=True)
                for more, token in zip(top.values.tolist(), top.indices.tolist(), strict=True)
            ),
            reverse=True,
        )
        gap = min(gap, longer[width - 1][0] - longer[width][0])
        beam = [each for each in longer[: 2 * width] if each[1][-1] != codec.end_id][:width]
    return gap


def assert_same_translations(found: Any, lines: list[str]) -> None:
    sources, codec = encoded(found, lines)
    source = batch_of(sources, codec.source_padding_id)
    prefix = codec.decoder_prefix(found.theirs.target)
    with torch.inference_mode():
        theirs = found.theirs.model.generate(
            input_ids=source,
            attention_mask=(source != codec.source_padding_id).long(),
            decoder_input_ids=torch.tensor([prefix] * len(lines)),
            decoder_start_token_id=prefix[0],  # or another one is put before the prefix
            num_beams=5,
            early_stopping=True,
            max_new_tokens=24,
            length_penalty=1.0,
            suppress_tokens=list(codec.forbidden),
            forced_bos_token_id=None,
            forced_eos_token_id=None,
            bad_words_ids=None,
            do_sample=False,
        )
    translated = Translator(found.ours).translate(lines, source=found.theirs.source, target=found.theirs.target, options=SEARCH)
    text = codec.target_tokenizer(found.theirs.target)
    expected = [" ".join(text.decode(row[len(prefix) :]).split()) for row in theirs.tolist()]
    others = [number for number, line in enumerate(expected) if translated[number] != line]
    assert len(others) <= len(lines) // 100, [(translated[number], expected[number]) for number in others]
    for number in others:
        assert smallest_gap(found, codec, sources[number]) < TIE, (translated[number], expected[number])
    assert sum(map(bool, expected)) > len(lines) // 4
    assert len(set(expected)) > min(8, len(lines) // 8)


@pytest.mark.parametrize("name", MODELS)
def test_beam_search_finds_what_transformers_finds(name: str, imported: Callable[[str], Any]) -> None:
    assert_same_translations(imported(name), lines_of(16))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_two_hundred_translations_are_those_of_transformers(name: str, imported: Callable[[str], Any]) -> None:
    assert_same_translations(imported(name), lines_of(200))
