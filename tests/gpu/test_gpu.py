"""What CUDA adds: the same numbers as the CPU, in training and in search. Needs a GPU: `make test ARGS='-m gpu'`."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from graftmt.base import Base
from graftmt.configuration import from_mapping
from graftmt.data import PackedBatch
from graftmt.decoding import SearchOptions, search_all
from graftmt.model import PackedTokens, Transformer, named_size, packed_kernels
from graftmt.packs.alignment import translation_table
from graftmt.text import Vocabulary
from graftmt.training import Stopped, TrainConfig, train_base
from graftmt.training.capture import CapturedStep
from graftmt.training.optimization import compile_layers, packed_loss, smoothed_loss

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


def packed_batch(rows: int = 997) -> PackedBatch:
    """Twenty pairs and some padding, in rows of 512 tokens."""
    chance = torch.Generator().manual_seed(3)
    lengths = torch.randint(3, 24, (2, 20), generator=chance).tolist()
    sides = []
    for side in lengths:
        full = [*side, 512 - sum(side) - 3, 3]
        starts = torch.tensor([0, *torch.tensor(full).cumsum(0).tolist(), 512], dtype=torch.int32)
        positions = torch.cat([torch.arange(length) for length in full])
        ids = torch.randint(4, rows, (512,), generator=chance)
        sides.append(PackedTokens(ids, positions, starts, 256))
    labels = torch.randint(4, rows, (512,), generator=chance)
    labels[sum(lengths[1]) :] = 1
    return PackedBatch(sides[0], sides[1], labels, [], [], target_tokens=sum(lengths[1]), source_tokens=sum(lengths[0]))


def gradients_of(model: Transformer, run: Callable[[], object]) -> tuple[list[torch.Tensor], object]:
    for parameter in model.parameters():
        parameter.grad = None
    loss = run()
    torch.cuda.synchronize()
    return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None], loss


@pytest.mark.parametrize("adding", [False, True])
def test_a_recorded_step_gives_the_gradients_of_a_plain_one(adding: bool) -> None:
    torch.manual_seed(0)
    model = Transformer.build(named_size("tiny", heads=2), 997).cuda()
    batch = packed_batch()

    def loss(batch: PackedBatch) -> torch.Tensor:
        with torch.autocast("cuda", torch.bfloat16):
            return packed_loss(model, batch, 0.1)

    def plain() -> float:
        result = loss(batch.to(torch.device("cuda"))) / batch.target_tokens
        result.backward()
        return float(result)

    expected, loss_then = gradients_of(model, plain)
    other = packed_batch()
    other.labels[:5] = 7  # recorded with one batch, replayed with another
    step = CapturedStep(loss, model.parameters(), other, torch.device("cuda"), adding=adding)
    for _ in range(2):  # the second replay starts from what the first one left
        step.clear()
        found = float(step(batch.pinned(), batch.target_tokens))
        assert found == pytest.approx(loss_then, rel=1e-4)
        own = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        for one, two in zip(own, expected, strict=True):
            assert (one - two).norm() <= 0.02 * two.norm() + 1e-6


@pytest.mark.parametrize("tiles", [False, True])
def test_compiled_packed_layers_give_the_gradients_of_plain_ones(tiles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_kernels, "BY_TILES", False)
    torch.manual_seed(0)
    model = Transformer.build(named_size("tiny", heads=2), 997).cuda()
    batch = packed_batch().to(torch.device("cuda"))

    def run(compiled: bool) -> float:
        with torch.autocast("cuda", torch.bfloat16):
            result = packed_loss(model, batch, 0.1, compiled=compiled) / batch.target_tokens
        result.backward()
        return float(result)

    expected, loss_then = gradients_of(model, lambda: run(False))
    monkeypatch.setattr(packed_kernels, "BY_TILES", tiles)
    compile_layers(model, one_shape=True)
    found, loss_now = gradients_of(model, lambda: run(True))
    assert loss_now == pytest.approx(loss_then, rel=2e-3)
    # A key bias adds the same to all scores of a query: its gradient is zero, and rounding noise of 1e-5 in practice. So a part
    # of the tolerance goes by the largest gradient; the smallest that is not zero is twenty times that part.
    largest = max(float(gradient.norm()) for gradient in expected)
    for one, two in zip(found, expected, strict=True):
        assert (one - two).norm() <= 0.08 * two.norm() + 3e-4 * largest


def test_padded_compiled_layers_take_the_dropout_of_the_moment() -> None:
    torch.manual_seed(0)
    model = Transformer.build(named_size("tiny"), 997).cuda()
    source, target = (torch.randint(8, 997, (16, 24), device="cuda") for _ in range(2))

    def loss() -> float:
        with torch.autocast("cuda", torch.bfloat16):
            result = smoothed_loss(model, source, target, target, 0.1, compiled=True)
        result.backward()
        return result.item()

    plain = loss()
    compile_layers(model)
    for probability in (0.1, 0.3, 0.2, 0.0):
        model.set_dropout(probability)
        losses = [loss() for _ in range(4)]
        assert (len(set(losses)) > 1) == (probability > 0)
        assert losses == pytest.approx([plain] * 4, rel=0.02 + probability)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_run_of_recorded_steps_goes_on_exactly(tmp_path: Path, compiled: bool) -> None:
    """Dropout is a function of the step there too."""
    chance = random.Random(1)
    words = [["".join(chance.choices("abcdefgh", k=3)) for _ in range(40)] for _ in range(2)]
    lines = [[chance.randrange(40) for _ in range(chance.randint(2, 12))] for _ in range(300)]
    for split in ("train", "valid"):
        for language, own in zip(("en", "fr"), words, strict=True):
            text = "".join(" ".join(own[word] for word in line) + "\n" for line in lines)
            (tmp_path / f"{split}.{language}.txt").write_text(text, encoding="utf-8")

    def config(run: str) -> TrainConfig:
        stage = {"steps": 12, "batch_tokens": 1024, "packed": True, "dropout": 0.1, "warmup": 2, "learning_rate": 1e-3}
        return from_mapping(
            TrainConfig,
            {
                "run": str(tmp_path / run),
                "data": {"corpus": str(tmp_path), "cache": str(tmp_path / "cache")},
                "subwords": {"merges": 50, "min_character_count": 1},
                "model": {"size": "tiny"},
                "stages": [stage],
                "validation": {"lines": 5, "every": 6},
                "checkpoint_every": 5,
                "device": "cuda",
                "precision": "bf16",
                "compile": compiled,
                "tensorboard": False,
            },
        )

    whole = train_base(config("whole"))
    with pytest.raises(Stopped):
        train_base(config("cut"), minutes=0.0)
    cut = train_base(config("cut"))
    ours, theirs = (Base.load(folder).model.state_dict() for folder in (whole, cut))
    # Atomic additions in attention's backward pass come in any order: nearly, not to the bit.
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=0.02, atol=2e-3)


def test_an_alignment_is_that_of_the_cpu() -> None:
    draw = random.Random(1)
    lines = [[draw.randint(8, 300) for _ in range(draw.randint(2, 30))] for _ in range(2000)]
    pairs = [(line, [word * 7 % 400 + 8 for word in line[::-1]]) for line in lines]
    text, base = (Vocabulary([f"▁{number}" for number in range(count)], []) for count in (393, 493))
    found, expected = (translation_table(pairs, text, base, device=torch.device(device)) for device in ("cuda", "cpu"))
    assert found.keys() == expected.keys()
    for row, weights in expected.items():
        assert found[row] == pytest.approx(weights, abs=2e-6)
