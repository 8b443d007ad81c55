"""The training loop: what moves, what a step is, what is kept, and what stops it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from graftmt.errors import TrainingError
from graftmt.training import TrainConfig
from graftmt.training.checkpoints import Checkpoints, RunState
from graftmt.training.journal import read_log
from graftmt.training.loop import Trainer
from graftmt.training.optimization import learning_rate, make_optimizer, smoothed_loss


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def checkpoint(config: TrainConfig, stage: int, step: int) -> Path:
    return config.run / "checkpoints" / f"stage{stage}-step{step:08d}"


def test_only_the_given_parameters_move(tmp_path: Path, one_stage, train, customise_trainer) -> None:
    before: dict[str, torch.Tensor] = {}

    def train_the_encoder_only(trainer: Trainer) -> None:
        before.update({name: parameter.detach().clone() for name, parameter in trainer.model.named_parameters()})
        trainer.parameters = {name: trainer.parameters[name] for name in trainer.parameters if name.startswith("encoder.")}

    customise_trainer(train_the_encoder_only)
    config = one_stage(tmp_path / "run", "validation.lines=0", "stages.0.steps=3")
    train(config)
    after = weights(config.run / "base")
    moved = {name for name in after if not torch.equal(after[name], before[name])}
    encoder = {name for name in before if name.startswith("encoder.")}
    # An attention's key bias adds the same to all scores of a query: its gradient is zero but for rounding.
    assert {name for name in encoder if not name.endswith("key.bias")} <= moved <= encoder
    assert set(weights(checkpoint(config, 1, 3))) == encoder


def test_a_run_goes_on_with_a_parameter_that_has_had_no_gradient_yet(
    tmp_path: Path, one_stage, train, customise_trainer
) -> None:
    """Such as the source embedding of a language that is only translated into."""
    unused = torch.nn.Parameter(torch.ones(3))
    trainers: list[Trainer] = []

    def with_unused_parameter(trainer: Trainer) -> None:
        trainer.parameters = {**trainer.parameters, "unused": unused}
        trainers.append(trainer)

    customise_trainer(with_unused_parameter)
    config = one_stage(tmp_path / "run", "validation.lines=0")
    train(config, minutes=0)
    parameters = trainers[0].parameters
    optimizer = make_optimizer(parameters.values(), config.stages[0])
    trainers[0].checkpoints.load_optimizer(checkpoint(config, 1, 1), parameters, optimizer)
    assert [name for name, parameter in parameters.items() if not optimizer.state[parameter]] == ["unused"]


@pytest.fixture
def trainer(tmp_path: Path, one_stage, train, customise_trainer) -> Trainer:
    """One that has done a single update, without dropout, to be asked for more."""
    found: list[Trainer] = []
    customise_trainer(found.append)
    train(one_stage(tmp_path / "run", "validation.lines=0", "stages.0.steps=1", "stages.0.dropout=0"))
    return found[0]


def test_two_accumulated_batches_are_one_larger_batch(trainer: Trainer) -> None:
    pairs = [trainer.plan.pairs(number) for number in (0, 1)]
    first, second = (trainer.maker.make(*pair) for pair in pairs)
    both = trainer.maker.make([*pairs[0][0], *pairs[1][0]], np.concatenate([pairs[0][1], pairs[1][1]]))
    assert both.target_tokens == first.target_tokens + second.target_tokens
    assert first.target_tokens != second.target_tokens  # or a mean of means would do

    def change(update: list[Any]) -> tuple[float, dict[str, torch.Tensor]]:
        """What plain gradient descent makes of an update, the weights left as they were."""
        before = {name: parameter.detach().clone() for name, parameter in trainer.parameters.items()}
        optimizer = torch.optim.SGD(trainer.parameters.values(), lr=1.0)
        loss = float(trainer._update(update, optimizer, 0))
        after = {name: parameter.detach().clone() for name, parameter in trainer.parameters.items()}
        with torch.no_grad():
            for name, parameter in trainer.parameters.items():
                parameter.copy_(before[name])
        rate = learning_rate(trainer.stage, 1)
        return loss, {name: (before[name] - after[name]) / rate for name in before}

    # A large step, so that the difference of the weights has digits left.
    trainer.stage = replace(trainer.stage, clip_norm=0.0, warmup_from=10.0)
    accumulated_loss, accumulated = change([first, second])
    larger_loss, larger = change([both])
    assert accumulated_loss == pytest.approx(larger_loss, rel=1e-5)
    for name in larger:
        torch.testing.assert_close(accumulated[name], larger[name], rtol=1e-3, atol=1e-5)


def test_gradients_are_scaled_down_to_the_clip_norm(trainer: Trainer) -> None:
    update = [trainer.maker.make(*trainer.plan.pairs(0))]
    norms = []

    class Spy(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            norms.append(torch.stack([p.grad.norm() for group in self.param_groups for p in group["params"]]).norm().item())

    for limit in (0.0, 0.01):
        trainer.stage = replace(trainer.stage, clip_norm=limit)
        trainer._update(update, Spy(trainer.parameters.values()), 0)
    assert norms[0] > 0.1
    assert norms[1] == pytest.approx(0.01, rel=1e-3)


def test_dropout_differs_from_step_to_step_and_not_from_time_to_time(trainer: Trainer) -> None:
    trainer.model.set_dropout(0.3)
    update = [trainer.maker.make(*trainer.plan.pairs(0))]

    def loss(step: int) -> float:
        return float(trainer._update(update, torch.optim.SGD(trainer.parameters.values()), step))

    trainer.stage = replace(trainer.stage, learning_rate=0.0, warmup_from=0.0)
    assert loss(3) == loss(3) != loss(4)


def test_the_log_states_the_loss_and_the_rate_of_each_step(uninterrupted: Path, short_config) -> None:
    config = short_config(uninterrupted)
    for number, stage in enumerate(config.stages):
        events = [event for event in read_log(uninterrupted / "log.jsonl") if event["stage"] == number]
        steps = [event for event in events if event["event"] == "train"]
        assert [event["step"] for event in steps] == list(range(1, stage.steps + 1))
        assert [event["learning_rate"] for event in steps] == [learning_rate(stage, event["step"]) for event in steps]
        validations = [event["step"] for event in events if event["event"] == "validation"]
        assert validations == sorted({*range(8, stage.steps + 1, 8), stage.steps})


def test_the_loss_goes_down_and_the_toy_task_is_learned(toy_run: Path) -> None:
    log = read_log(toy_run / "log.jsonl")
    losses = [event["loss"] for event in log if event["event"] == "train"]
    assert losses[-1] < 0.5 * losses[0]
    validations = [event for event in log if event["event"] == "validation"]
    for direction in ("en-xa", "xb-en"):
        assert validations[-1][f"{direction}/chrf"] > 90
        assert validations[-1][f"{direction}/bleu"] > 80
        assert validations[-1][f"{direction}/loss"] < 0.5 * validations[0][f"{direction}/loss"] + 0.5
    mean = sum(validations[-1][f"{direction}/chrf"] for direction in ("en-xa", "xb-en")) / 2
    assert validations[-1]["chrf"] == pytest.approx(mean)


def script_validation(monkeypatch: pytest.MonkeyPatch, losses: list[float]) -> None:
    """Validations give these losses, one after the other."""
    scripted: Iterator[float] = iter(losses)

    def validate(*_: Any, **__: Any) -> dict[str, Any]:
        loss = next(scripted)
        return {"loss": loss, "chrf": 100 - loss, "directions": {}}

    monkeypatch.setattr("graftmt.training.validation.Validator.validate", validate)


@pytest.mark.parametrize("metric", ["loss", "chrf"])
def test_the_best_checkpoint_is_the_best_and_the_base_is_made_of_it(
    tmp_path: Path, one_stage, train, monkeypatch: pytest.MonkeyPatch, metric: str
) -> None:
    script_validation(monkeypatch, [3.0, 1.0, 2.0, 1.0, 2.5])
    every = ("validation.every=2", "checkpoint_every=2", "keep_checkpoints=9", "stages.0.steps=10")
    config = one_stage(tmp_path / "run", *every, f"validation.metric={metric}")
    train(config)
    best = config.run / "checkpoints" / "stage1-best"
    assert json.loads((best / "best.json").read_text())["step"] == 4  # of two that are as good, the first
    assert same(weights(best), weights(checkpoint(config, 1, 4)))
    assert same(weights(best), weights(config.run / "base"))
    assert not same(weights(best), weights(checkpoint(config, 1, 10)))


class Killed(BaseException):
    """In place of a kill: nothing is saved."""


def killed_after(step: int, losses: dict[int, float]) -> type[Trainer]:
    """A trainer that is killed after so many updates, whose validations give these losses at these steps."""

    class Scripted(Trainer):
        def _scores(self, state: RunState) -> dict[str, Any]:
            return {**super()._scores(state), "loss": losses[state.step]}

        def _update(self, *arguments: Any) -> Any:
            if arguments[2] == step:
                raise Killed
            return super()._update(*arguments)

    return Scripted


def last_state(run: Path) -> dict[str, Any]:
    latest = Checkpoints(run / "checkpoints", 1).latest()
    assert latest is not None
    return {**json.loads((latest / "state.json").read_text(encoding="utf-8"))["state"], "seconds": 0}


@pytest.mark.slow
def test_killed_after_the_best_was_stored_a_run_goes_on_as_if_it_had_not_been(
    tmp_path: Path, one_stage, train, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Between the checkpoint at 10 and the kill there is a validation that brings nothing, and two that do. Those that are gone
    # through again do not count towards patience, which ends the stage at 20.
    losses = {2: 9.0, 4: 8.0, 6: 7.0, 8: 6.0, 10: 5.0, 12: 5.5, 14: 4.0, 16: 3.0, 18: 3.5, 20: 3.2}
    options = ("validation.every=2", "checkpoint_every=10", "stages.0.patience=2", "validation.translate=false")
    whole, again = (one_stage(tmp_path / name, *options) for name in ("whole", "again"))
    monkeypatch.setattr("graftmt.training.stages.Trainer", killed_after(99, losses))
    train(whole)
    monkeypatch.setattr("graftmt.training.stages.Trainer", killed_after(17, losses))
    with pytest.raises(Killed):
        train(again)
    monkeypatch.setattr("graftmt.training.stages.Trainer", killed_after(99, losses))
    assert "resuming at stage1-step00000010" in train(again)
    assert last_state(again.run) == last_state(whole.run)
    assert (last_state(whole.run)["step"], last_state(whole.run)["best_step"]) == (20, 16)
    assert same(weights(again.run / "base"), weights(whole.run / "base"))


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["loss", "chrf"])
def test_a_card_names_the_weights_that_are_stored_though_a_validation_comes_out_otherwise_the_second_time(
    tmp_path: Path, one_stage, train, monkeypatch: pytest.MonkeyPatch, metric: str
) -> None:
    config = one_stage(tmp_path / "run", "validation.every=8", "checkpoint_every=10", f"validation.metric={metric}")
    script_validation(monkeypatch, [5.0, 4.0])
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr("graftmt.training.stages.Trainer", killed_after(17, {8: 5.0, 16: 4.0}))
        train(config)
    script_validation(monkeypatch, [6.0, 7.0])  # such as on another device
    assert "resuming at stage1-step00000010" in train(config)
    card = json.loads((config.run / "base" / "base.json").read_text(encoding="utf-8"))["card"]
    best = json.loads((config.run / "checkpoints" / "stage1-best" / "best.json").read_text(encoding="utf-8"))
    assert card["validation"] == best
    assert (best["step"], best["loss"]) == (16, 4.0)


def test_patience_ends_a_stage_and_a_run_that_goes_on_knows_it(
    tmp_path: Path, short_config, train, monkeypatch: pytest.MonkeyPatch
) -> None:
    script_validation(monkeypatch, [3.0, 2.0, 2.1, 2.2, *[1.0] * 20])
    config = short_config(
        tmp_path / "run", "validation.every=2", "stages.0.patience=2", "stages.1.steps=2", "keep_checkpoints=99"
    )
    train(config)
    events = read_log(config.run / "log.jsonl")
    assert max(event["step"] for event in events if event["stage"] == 0) == 8
    assert checkpoint(config, 1, 8).is_dir()
    assert checkpoint(config, 2, 2).is_dir()

    # As if it had been killed just after the first stage: that stage stays over.
    for path in (config.run / "checkpoints").glob("stage2*"):
        path.rename(config.run / f"moved-{path.name}")
    train(config)
    assert max(event["step"] for event in read_log(config.run / "log.jsonl") if event["stage"] == 0) == 8


def test_the_second_stage_starts_from_the_best_of_the_first_with_a_new_optimiser(
    tmp_path: Path, short_config, train, monkeypatch: pytest.MonkeyPatch
) -> None:
    script_validation(monkeypatch, [3.0, 1.0, 2.0, *[5.0] * 20])
    config = short_config(
        tmp_path / "run",
        "stages.1.learning_rate=0.0",
        "stages.1.warmup=0",
        "stages.1.steps=4",
        "checkpoint_every=4",
        "keep_checkpoints=99",
    )
    train(config)
    best = weights(config.run / "checkpoints" / "stage1-best")
    assert not same(best, weights(checkpoint(config, 1, 24)))
    # Without a learning rate the second stage leaves the weights it began with.
    assert same(best, weights(checkpoint(config, 2, 4)))
    for stage, steps in ((1, 24), (2, 4)):
        state = load_file(checkpoint(config, stage, steps) / "optimizer.safetensors")
        assert {float(tensor) for name, tensor in state.items() if name.endswith("/step")} == {steps}


class PoisonAt:
    """A loss function that does something bad to one update, and remembers the batches of that update."""

    def __init__(self, step: int, accumulate: int, poison: Callable[[Any, torch.Tensor], torch.Tensor]) -> None:
        self.first, self.last = (step - 1) * accumulate, step * accumulate
        self.poison, self.calls, self.sources = poison, 0, []

    def __call__(self, model: Any, source: torch.Tensor, *arguments: Any) -> torch.Tensor:
        loss = smoothed_loss(model, source, *arguments)
        self.calls += 1
        if self.first < self.calls <= self.last:
            self.sources += source.tolist()
        return self.poison(model, loss) if self.calls == self.last else loss


def infinite_loss(model: Any, loss: torch.Tensor) -> torch.Tensor:
    return loss * float("inf")


def infinite_gradient(model: Any, loss: torch.Tensor) -> torch.Tensor:
    """The value of the loss stays as it is."""
    return loss + (model.source_embedding.weight.sum() * 0).sqrt()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("poison", "step", "problem"),
    [(infinite_loss, 7, "a loss of inf"), (infinite_gradient, 10, "weights that are not finite")],
)
def test_what_is_not_finite_stops_the_run_and_names_the_lines(
    tmp_path: Path,
    one_stage,
    train,
    customise_trainer,
    toy_corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
    poison: Any,
    step: int,
    problem: str,
) -> None:
    bad = PoisonAt(step, 2, poison)
    trainers: list[Trainer] = []

    customise_trainer(trainers.append)
    monkeypatch.setattr("graftmt.training.loop.smoothed_loss", bad)
    # Losses are looked at every ten steps only, so step 7 is found out at step 10.
    config = one_stage(tmp_path / "run", "log_every=10", "validation.every=10", "stages.0.clip_norm=0")
    with pytest.raises(TrainingError, match=f"step {step} of stage 'first' gave {problem}.*stage1-step00000005"):
        train(config)

    report = json.loads((config.run / "bad-batch.json").read_text(encoding="utf-8"))
    assert report["step"] == step
    decode = trainers[0].maker.codec.source_tokenizer("en").decode
    assert [example["source"] for example in report["examples"]] == [decode(row) for row in bad.sources]
    for example in report["examples"]:
        for side, language in zip(("source", "target"), example["direction"].split("-"), strict=True):
            lines = (toy_corpus / f"train.{language}.txt").read_text(encoding="utf-8").splitlines()
            assert example[side] == lines[example["line"] - 1]

    kept = list((config.run / "checkpoints").iterdir())
    assert [path.name for path in kept] == ["stage1-step00000005"]
    assert all(tensor.isfinite().all() for tensor in weights(kept[0]).values())

    # Where the cause was outside (a broken GPU, say), the same command goes on from there.
    monkeypatch.undo()
    assert "resuming at stage1-step00000005" in train(config)
    assert (config.run / "base" / "base.json").is_file()


def test_a_learning_rate_far_too_high_is_an_error_and_not_a_base(tmp_path: Path, one_stage, train) -> None:
    config = one_stage(tmp_path / "run", "stages.0.learning_rate=1e30", "stages.0.warmup=0")
    with pytest.raises(TrainingError, match="Try a lower learning_rate"):
        train(config)
    assert not (config.run / "base").exists()


def test_a_validation_loss_that_is_not_finite_is_never_the_best(
    tmp_path: Path, one_stage, train, monkeypatch: pytest.MonkeyPatch
) -> None:
    script_validation(monkeypatch, [float("nan")])
    config = one_stage(tmp_path / "run")
    with pytest.raises(TrainingError, match="a validation loss of nan"):
        train(config)
    assert not (config.run / "checkpoints" / "stage1-best").exists()


@pytest.mark.slow
def test_bfloat16_learns_and_keeps_its_weights_in_single_precision(tmp_path: Path, one_stage, train) -> None:
    config = one_stage(tmp_path / "run", "precision=bf16", "stages.0.steps=60", "validation.every=60")
    train(config)
    losses = [event["loss"] for event in read_log(config.run / "log.jsonl") if event["event"] == "train"]
    assert losses[-1] < 0.9 * losses[0]
    assert {tensor.dtype for tensor in weights(checkpoint(config, 1, 60)).values()} == {torch.float32}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a compiler")
def test_a_compiled_run_learns_the_same(tmp_path: Path, one_stage, train) -> None:
    overrides = ("stages.0.dropout=0", "stages.0.steps=20", "validation.every=20")
    plain, compiled = one_stage(tmp_path / "plain", *overrides), one_stage(tmp_path / "compiled", *overrides, "compile=true")
    train(plain)
    train(compiled)
    plain_losses, compiled_losses = (
        [event["loss"] for event in read_log(config.run / "log.jsonl") if event["event"] == "train"]
        for config in (plain, compiled)
    )
    # The same up to rounding, which training magnifies a little with each step.
    assert compiled_losses == pytest.approx(plain_losses, rel=1e-2)
    assert plain_losses[-1] < 0.9 * plain_losses[0]
