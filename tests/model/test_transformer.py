"""Padding, order and shared matrices do what they should; shapes are those of the model that is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from graftmt.model import ModelConfig, Transformer, named_size, parameter_shapes
from graftmt.model.embeddings import Positions, sinusoidal_positions

MakeModel = Callable[..., Transformer]
MakeBatch = Callable[..., Tensor]

VARIANTS: list[dict[str, Any]] = [
    {},
    {"norm": "post"},
    {"norm": "post", "activation": "gelu", "embeddings": "separate", "output_bias": True},
    {"activation": "silu", "embeddings": "tied-target", "scale_embeddings": False, "position_offset": 0},
]


@pytest.mark.parametrize("variant", VARIANTS)
def test_padding_does_not_change_the_output(make_model: MakeModel, make_batch: MakeBatch, variant: dict[str, Any]) -> None:
    model = make_model(**variant)
    sources, targets = [7, 3, 1, 5], [4, 6, 2, 1]
    source, target = make_batch(sources, seed=1), make_batch(targets, seed=2)
    scores = model(source, target)
    assert scores.shape == (4, 6, 50)
    for row, (source_length, target_length) in enumerate(zip(sources, targets, strict=True)):
        alone = model(source[row : row + 1, :source_length], target[row : row + 1, :target_length])
        torch.testing.assert_close(scores[row, :target_length], alone[0], atol=1e-4, rtol=1e-4)


def test_more_padding_changes_nothing_either(make_model: MakeModel, make_batch: MakeBatch) -> None:
    model, source, target = make_model(padding_id=0), make_batch([5, 3], padding=0), make_batch([4, 4], padding=0)
    longer = torch.cat([source, torch.zeros(2, 9, dtype=torch.long)], dim=1)
    torch.testing.assert_close(model(longer, target), model(source, target), atol=1e-4, rtol=1e-4)


def test_the_padding_row_does_not_matter(make_model: MakeModel, make_batch: MakeBatch) -> None:
    model, source, target = make_model(embeddings="separate"), make_batch([5, 3]), make_batch([4, 4])
    before = model(source, target)
    with torch.no_grad():
        model.source_embedding.weight[1] = 100.0
    assert torch.equal(model(source, target), before)


def test_the_decoder_does_not_see_the_future(make_model: MakeModel, make_batch: MakeBatch) -> None:
    model, source, target = make_model(), make_batch([5, 3]), make_batch([6, 6])
    before = model(source, target)
    target[:, 4] = (target[:, 4] + 1) % 40 + 2
    after = model(source, target)
    torch.testing.assert_close(after[:, :4], before[:, :4])
    assert not torch.allclose(after[:, 4:], before[:, 4:])


def test_the_order_of_words_matters(make_model: MakeModel) -> None:
    model, target = make_model(), torch.tensor([[2, 7]])
    assert not torch.allclose(model(torch.tensor([[5, 6, 2]]), target), model(torch.tensor([[6, 5, 2]]), target))


def test_tied_embeddings_are_one_matrix(make_model: MakeModel) -> None:
    model = make_model(embeddings="tied")
    assert model.source_embedding is model.target_embedding
    assert model.projection.weight is model.source_embedding.weight
    assert sum(name.endswith("embedding.weight") or "projection" in name for name, _ in model.named_parameters()) == 1


def test_tied_target_embeddings_are_two_matrices(make_model: MakeModel) -> None:
    model = make_model(embeddings="tied-target")
    assert model.projection.weight is model.target_embedding.weight
    assert model.source_embedding.weight is not model.target_embedding.weight


def test_separate_embeddings_are_three_matrices(make_model: MakeModel, make_batch: MakeBatch) -> None:
    model = make_model(embeddings="separate", output_bias=True)
    weights = [model.source_embedding.weight, model.target_embedding.weight, model.projection.weight]
    assert len({weight.data_ptr() for weight in weights}) == 3
    assert model.projection.bias is not None
    before = model(make_batch([4]), make_batch([3]))
    with torch.no_grad():
        model.projection.bias += 1
    torch.testing.assert_close(model(make_batch([4]), make_batch([3])), before + 1, atol=1e-4, rtol=1e-4)


def test_all_parameters_are_used(make_model: MakeModel, make_batch: MakeBatch) -> None:
    model = make_model(embeddings="separate", output_bias=True)
    model(make_batch([5, 3]), make_batch([4, 4])).logsumexp(dim=-1).sum().backward()
    unused = {name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()}
    # A key's bias adds the same to all scores of a query, so its gradient is zero up to rounding.
    assert {name for name in unused if not name.endswith("key.bias")} == set()


def test_norms_stand_where_their_name_says(make_model: MakeModel, make_batch: MakeBatch) -> None:
    pre, post = make_model(norm="pre"), make_model(norm="post")
    assert isinstance(pre.encoder.norm, nn.LayerNorm) and isinstance(pre.decoder.norm, nn.LayerNorm)
    assert post.encoder.norm is None and post.decoder.norm is None
    for model in (pre, post):
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "norm" in name:
                    parameter.fill_(float(name.endswith("weight")))
        for hidden in (model.encode(make_batch([6]))[0], model.decode(make_batch([6]), *model.encode(make_batch([6])))):
            assert hidden.mean(dim=-1).abs().max() < 1e-4
            assert (hidden.var(dim=-1, unbiased=False) - 1).abs().max() < 1e-3
    # What a pre-norm layer adds to is not normalised: a large input stays large, but not in a post-norm layer.
    x = torch.randn(1, 4, 32) * 100
    assert pre.encoder.layers[0](x, None).std() > 50
    assert post.encoder.layers[0](x, None).std() < 2


def test_positions_grow_beyond_the_table(make_model: MakeModel, make_batch: MakeBatch) -> None:
    model = make_model()
    assert model.positions.table.shape[0] == 512
    source, target = make_batch([700]), make_batch([600], seed=2)
    short = model(source[:, :20], target[:, :10])
    grown = model(source, target)
    assert grown.shape == (1, 600, 50)
    assert model.positions.table.shape[0] >= 700
    torch.testing.assert_close(model(source[:, :20], target[:, :10]), short)
    torch.testing.assert_close(model.positions.table[:512], sinusoidal_positions(512, 32, 2))
    torch.testing.assert_close(model(source, target), grown)


def test_positions_may_grow_under_several_threads_at_once() -> None:
    """A thread that grows the table must not see the shorter one that another puts in its place in between."""

    class Contested(Positions):
        """Each time the table is set, another thread has just set a short one."""

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value[:5] if name == "table" else value)

    positions = Contested(16, 2, length=4)
    x = torch.zeros(1, 40, 16)
    torch.testing.assert_close(positions(x)[0], sinusoidal_positions(40, 16, 2))


def test_positions_start_at_their_offset() -> None:
    from_two, from_zero = sinusoidal_positions(10, 16, 2), sinusoidal_positions(12, 16, 0)
    torch.testing.assert_close(from_two, from_zero[2:])
    torch.testing.assert_close(from_zero[0], torch.cat([torch.zeros(8), torch.ones(8)]))
    torch.testing.assert_close(from_zero[3, 0], torch.tensor(3.0).sin())
    torch.testing.assert_close(from_zero[3, 15], torch.tensor(3.0 / 10_000).cos())


def test_the_narrowest_model_has_positions_too(make_model: MakeModel, make_batch: MakeBatch) -> None:
    assert make_model(model_dim=2, heads=1)(make_batch([3]), make_batch([3])).isfinite().all()


def test_positions_are_not_stored(make_model: MakeModel) -> None:
    assert not any("position" in name for name in make_model().state_dict())


def test_dropout_is_set_everywhere_and_only_in_training(make_model: MakeModel, make_batch: MakeBatch) -> None:
    model, source, target = make_model(), make_batch([5, 3]), make_batch([4, 4])
    before = model(source, target)
    model.set_dropout(0.5)
    dropouts = [module for module in model.modules() if isinstance(module, nn.Dropout)]
    assert len(dropouts) == 1 + 2 + 3
    assert {module.p for module in dropouts} == {0.5}
    assert torch.equal(model(source, target), before)
    model.train()
    assert not torch.allclose(model(source, target), model(source, target))
    model.set_dropout(0.0)
    torch.testing.assert_close(model(source, target), before)


def test_fresh_weights_are_as_fairseqs() -> None:
    torch.manual_seed(1)
    model = Transformer.build(named_size("tiny"), 2000)
    assert not model.source_embedding.weight[1].any()
    assert abs(model.source_embedding.weight.std().item() - 128**-0.5) < 0.002
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        if "norm.weight" in name:
            assert (parameter == 1).all(), name


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("embeddings", ["tied", "tied-target", "separate"])
@pytest.mark.parametrize("layers", [(1, 1), (3, 2), (1, 12)])
def test_shapes_are_those_of_the_model(norm: Any, embeddings: Any, layers: tuple[int, int]) -> None:
    config = ModelConfig(
        model_dim=8,
        ffn_dim=12,
        heads=2,
        norm=norm,
        embeddings=embeddings,
        encoder_layers=layers[0],
        decoder_layers=layers[1],
        output_bias=norm == "pre",
    )
    with torch.device("meta"):
        model = Transformer.build(config, 20)
    assert parameter_shapes(config, 20) == {name: tuple(value.shape) for name, value in model.named_parameters()}
