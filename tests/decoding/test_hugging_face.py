"""Our beam search finds what Hugging Face's `generate` finds with the same weights."""

from __future__ import annotations

import copy

import pytest
import torch
from peers.hugging_face import our_name, their_shape

from graftmt.decoding import Hypothesis, SearchOptions, search_all
from graftmt.model import Transformer

transformers = pytest.importorskip("transformers")

PADDING, END = 1, 2
FORBIDDEN = [0, PADDING, 3]
MAX_LENGTH = 14


@pytest.fixture(scope="module")
def theirs(model: Transformer) -> transformers.M2M100ForConditionalGeneration:
    config = transformers.M2M100Config(vocab_size=24, **their_shape(model.config))
    result = transformers.M2M100ForConditionalGeneration(config).eval()
    own = dict(model.named_parameters())
    with torch.no_grad():
        for name, parameter in result.named_parameters():
            parameter.copy_(own[our_name(name)])
    return result


def their_outputs(
    theirs: transformers.M2M100ForConditionalGeneration, sources: list[list[int]], prefix: list[int], beam: int, penalty: float
) -> list[list[int]]:
    """Tokens after the prefix, the end among them, as far as there is no padding."""
    longest = max(map(len, sources))
    source = torch.tensor([[*line, *[PADDING] * (longest - len(line))] for line in sources])
    found = theirs.generate(
        input_ids=source,
        attention_mask=(source != PADDING).long(),
        decoder_input_ids=torch.tensor([prefix] * len(sources)),
        do_sample=False,
        num_beams=beam,
        max_new_tokens=MAX_LENGTH,
        suppress_tokens=FORBIDDEN,
        **({"early_stopping": True, "length_penalty": penalty} if beam > 1 else {}),
    )
    return [[token for token in row[len(prefix) :] if token != PADDING] for row in found.tolist()]


def our_outputs(model: Transformer, sources: list[list[int]], prefix: list[int], beam: int, penalty: float) -> list[Hypothesis]:
    options = SearchOptions(
        beam=beam, length_penalty=penalty, max_length=MAX_LENGTH, length_ratio=MAX_LENGTH, batch_tokens=2000
    )
    found = search_all(model, sources, [prefix] * len(sources), options, end=END, forbidden=FORBIDDEN)
    return [hypotheses[0] for hypotheses in found]


@pytest.mark.parametrize(("beam", "penalty"), [(1, 1.0), (5, 1.0), (5, 0.6), (3, 0.0), (8, 1.5)])
@pytest.mark.parametrize("prefix", [[END], [END, 7]])
def test_same_outputs(
    model: Transformer,
    theirs: transformers.M2M100ForConditionalGeneration,
    sources: list[list[int]],
    beam: int,
    penalty: float,
    prefix: list[int],
) -> None:
    ours = our_outputs(model, sources, prefix, beam, penalty)
    outputs = [[*hypothesis.tokens, *([END] if hypothesis.finished else [])] for hypothesis in ours]
    assert len(outputs) >= 200
    assert outputs == their_outputs(theirs, sources, prefix, beam, penalty)
    # That they agree says something: most outputs end by themselves, and they are not all alike.
    assert sum(len(output) < MAX_LENGTH for output in outputs) >= len(outputs) / 2
    assert len({tuple(output) for output in outputs}) > len(outputs) / 2


def test_same_outputs_in_double_precision(
    model: Transformer, theirs: transformers.M2M100ForConditionalGeneration, sources: list[list[int]]
) -> None:
    double, their_double = copy.deepcopy(model).double(), copy.deepcopy(theirs).double()
    ours = our_outputs(double, sources, [END], 5, 1.0)
    outputs = [[*hypothesis.tokens, *([END] if hypothesis.finished else [])] for hypothesis in ours]
    assert outputs == their_outputs(their_double, sources, [END], 5, 1.0)
