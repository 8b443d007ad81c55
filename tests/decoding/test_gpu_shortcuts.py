"""What searches do on a GPU only, on a CPU: the same results as the plain way."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graftmt.decoding.full_sums import with_full_sums
from graftmt.decoding.search import GROUP, top_by_groups
from graftmt.decoding.weight_layout import MULTIPLE, PaddedProjection
from graftmt.model import Transformer, named_size
from graftmt.model.embeddings import Projection


@given(
    rows=st.integers(1, 4),
    groups=st.integers(1, 5),
    count=st.integers(1, 12),
    seed=st.integers(0, 1000),
    impossible=st.floats(0, 0.9),
)
def test_the_best_by_groups_are_the_best(rows: int, groups: int, count: int, seed: int, impossible: float) -> None:
    width = groups * GROUP
    chance = torch.Generator().manual_seed(seed)
    values = torch.randperm(rows * width, generator=chance).view(rows, width).float()  # no two alike
    allowed = torch.rand(width, generator=chance) >= impossible
    allowed[0] = True  # at least one is possible
    possible = values.masked_fill(~allowed, -torch.inf)
    best, tokens = top_by_groups(values, possible.view(rows, groups, GROUP).amax(dim=2), allowed, count)
    expected = possible.topk(count, dim=1)
    assert torch.equal(best, expected.values)
    real = best > -torch.inf
    assert torch.equal(tokens[real], expected.indices[real])


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("with_bias", [False, True])
def test_a_padded_projection_gives_the_same_scores_and_none_to_padding(rows: int, with_bias: bool) -> None:
    bias = torch.nn.Parameter(torch.randn(rows)) if with_bias else None
    projection = Projection(torch.nn.Parameter(torch.randn(rows, 16)), bias)
    hidden = torch.randn(3, 16)
    scores = PaddedProjection(projection)(hidden)
    assert scores.shape[1] % MULTIPLE == 0
    torch.testing.assert_close(scores[:, :rows], projection(hidden))
    assert (scores[:, rows:] == -torch.inf).all()
    torch.testing.assert_close(scores.log_softmax(1)[:, :rows], projection(hidden).log_softmax(1))


def test_sums_in_full_precision_are_nearer_to_the_model_in_full_precision() -> None:
    torch.manual_seed(1)
    exact = Transformer.build(named_size("tiny", norm="pre"), 200).eval()
    half = copy.deepcopy(exact).to(torch.bfloat16)
    source, target = torch.randint(4, 200, (8, 11)), torch.randint(4, 200, (8, 9))
    with torch.inference_mode():
        expected = exact.decode(target, *exact.encode(source))
        found = [model.decode(target, *model.encode(source)).float() for model in (with_full_sums(half), half)]
        plain = half.decode(target, *half.encode(source))
    errors = [float((one - expected).norm() / expected.norm()) for one in found]
    assert errors[0] < 0.02
    assert errors[0] < 0.8 * errors[1]
    assert torch.equal(plain.float(), found[1])  # the model itself is as it was


def test_a_layer_in_full_precision_fits_among_those_in_half() -> None:
    """As while a pack is trained on a base that is held in bf16."""
    torch.manual_seed(1)
    exact = Transformer.build(named_size("tiny", norm="pre"), 200).eval()
    mixed = copy.deepcopy(exact).to(torch.bfloat16)
    for layers, number in ((mixed.encoder.layers, 0), (mixed.decoder.layers, -1)):
        layers[number].float()
    source, target = torch.randint(4, 200, (8, 11)), torch.randint(4, 200, (8, 9))
    with torch.inference_mode():
        expected = exact.decode(target, *exact.encode(source))
        with torch.autocast("cpu", torch.bfloat16):
            model = with_full_sums(mixed)
            found = model.decode(target, *model.encode(source)).float()
    assert (found - expected).norm() < 0.03 * expected.norm()
