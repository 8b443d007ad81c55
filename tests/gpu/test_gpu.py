"""What CUDA adds: the same numbers as the CPU, in training and in search. Needs a GPU: `make test ARGS='-m gpu'`."""

from __future__ import annotations

import pytest
import torch

from graftmt.decoding import SearchOptions, search_all
from graftmt.model import PackedTokens, Transformer, named_size
from graftmt.training.optimization import smoothed_loss

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")]


def pair_of_models() -> tuple[Transformer, Transformer]:
    torch.manual_seed(0)
    model = Transformer.build(named_size("tiny"), 997).eval()
    twin = Transformer.build(named_size("tiny"), 997).eval()
    twin.load_state_dict(model.state_dict())
    return model, twin.cuda()


def test_loss_and_gradients_are_those_of_the_cpu() -> None:
    models = pair_of_models()
    source, target = torch.randint(4, 997, (9, 13)), torch.randint(4, 997, (9, 11))
    losses = []
    for model in models:
        loss = smoothed_loss(model, source.to(model.device), target.to(model.device), target.to(model.device), 0.1)
        loss.backward()
        losses.append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    for ours, theirs in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.allclose(ours.grad, theirs.grad.cpu(), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("beam", [1, 5])
def test_search_finds_the_same_tokens(beam: int) -> None:
    models = [model.double() for model in pair_of_models()]
    sources = [[*torch.randint(4, 997, (length,)).tolist(), 2] for length in range(3, 20)]
    options = SearchOptions(beam=beam, max_length=30)
    found = [search_all(model, sources, [[2]] * len(sources), options, end=2) for model in models]
    assert [best[0].tokens for best in found[0]] == [best[0].tokens for best in found[1]]


def test_packed_sentences_give_the_loss_of_padded_ones_in_bf16() -> None:
    """The only place where the kernel for packed attention runs."""
    torch.manual_seed(0)
    model = Transformer.build(named_size("tiny", heads=2), 997).cuda().eval()
    lines = [
        (torch.randint(4, 997, (s,)).tolist(), torch.randint(4, 997, (t,)).tolist()) for s, t in ((5, 9), (30, 21), (12, 12))
    ]

    def packed(sentences: list[list[int]]) -> PackedTokens:
        starts = [0]
        for sentence in sentences:
            starts.append(starts[-1] + len(sentence))
        positions = [number for sentence in sentences for number in range(len(sentence))]
        table = torch.tensor([*starts, starts[-1], starts[-1]], dtype=torch.int32)
        ids = torch.tensor([token for sentence in sentences for token in sentence])
        return PackedTokens(ids.cuda(), torch.tensor(positions).cuda(), table.cuda(), max(map(len, sentences)))

    sources, targets = ([pair[side] for pair in lines] for side in (0, 1))
    with torch.autocast("cuda", torch.bfloat16):
        together = model.hidden_of_packed(packed(sources), packed(targets))[0]
        apart = []
        for source, target in lines:
            memory, mask = model.encode(torch.tensor([source]).cuda())
            apart.append(model.decode(torch.tensor([target]).cuda(), memory, mask)[0])
    difference = (together - torch.cat(apart)).float()
    assert difference.norm() / torch.cat(apart).float().norm() < 0.02
