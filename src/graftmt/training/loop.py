"""The training loop: one for bases, baselines and packs. Layer 4.

It optimises the parameters it is given and nothing else; whatever owns them decides what trains.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graftmt.data import BatchMaker, BatchPlan, BatchStream, PackedBatch
from graftmt.documents import write_json
from graftmt.errors import TrainingError
from graftmt.model import Transformer
from graftmt.progress import Progress
from graftmt.training.capture import CapturedStep
from graftmt.training.checkpoints import Checkpoints, RunState
from graftmt.training.distribution import AnyBatch, Processes
from graftmt.training.journal import Journal, Pace
from graftmt.training.optimization import StageConfig, learning_rate, make_optimizer, packed_loss, smoothed_loss
from graftmt.training.run_configuration import RunConfig
from graftmt.training.sharding import clip_gradients, group_shards, own_part
from graftmt.training.stopping import Stopped, StopRequest
from graftmt.training.validation import Validator

ASK_EVERY = 10
"""Updates between two questions to the other processes whether one was told to stop."""


@dataclass
class Trainer:
    """All that stays the same during a stage."""

    config: RunConfig
    stage: StageConfig
    model: Transformer
    parameters: Mapping[str, nn.Parameter]
    """What is learned, by name; those that take no gradient stay as they are in this stage."""
    plan: BatchPlan
    maker: BatchMaker
    validator: Validator | None
    checkpoints: Checkpoints
    journal: Journal
    request: StopRequest
    report: Progress
    resolved: Any
    """The configuration as plain values, kept in checkpoints."""
    data: str
    """The fingerprint of the text …"""
    marks: Mapping[str, str]
    """… and of what else it comes from."""
    stage_seed: int
    team: Processes = field(default_factory=Processes)
    """The processes that train together; this one alone unless `torchrun` started several."""
    captured: CapturedStep | None = None
    unchecked: list[Tensor] = field(default_factory=list)
    """Losses of the updates since the last look at them: looking waits for the device, so it is done rarely."""

    @cached_property
    def trained(self) -> list[nn.Parameter]:
        return [parameter for parameter in self.parameters.values() if parameter.requires_grad]

    def run(self, state: RunState, resume_from: Path | None) -> None:
        """Trains from `state.step` to the end of the stage; raises `Stopped`, having saved, when asked to stop."""
        optimizer = make_optimizer(self.trained, self.stage)
        group_shards(optimizer)
        if resume_from is not None:
            self.checkpoints.load_optimizer(resume_from, self.parameters, optimizer)
        self.model.set_dropout(self.stage.dropout)
        captured = self.stage.packed and self.config.capture and self.model.device.type == "cuda"
        if captured:
            self._capture()
        elif self.config.compile:
            self._warm_up(optimizer)
        micro = self.stage.accumulate
        pin = self.model.device.type == "cuda"
        stream = BatchStream(self.plan, self.maker, state.step * micro, self.stage.steps * micro, pin=pin)
        batches = iter(stream)
        pace = Pace(state)
        saved = state.step
        try:
            while state.step < self.stage.steps and not self._out_of_patience(state):
                with pace.waiting():
                    update = [next(batches) for _ in range(micro)]
                self.unchecked.append(self._update(update, optimizer, state.step))
                state.step += 1
                state.target_tokens += sum(batch.target_tokens for batch in update)
                pace.count(update)
                last = state.step == self.stage.steps
                if state.step % self.config.log_every == 0 or last:
                    self._log(state, pace)
                if state.step % self.config.validation.every == 0 or last:
                    self._validate(state, pace)
                if state.step % self.config.checkpoint_every == 0 or last:
                    self._save(state, optimizer, pace)
                    saved = state.step
                # Asking the others waits for the device, so it is not done at every update.
                if (self.team.size == 1 or state.step % ASK_EVERY == 0) and self.team.agree(
                    self.request.asked, self.model.device
                ):
                    self.request.stop()
        except Stopped:
            if saved != state.step:
                self._save(state, optimizer, pace)
            best = f", best so far at step {state.best_step:,}" if state.best_step else ""
            self.report.message(f"stopped at step {state.step:,} of {self.stage.steps:,}{best}")
            raise
        finally:
            stream.close()
            self.captured = None
            optimizer.zero_grad(set_to_none=True)
        if saved != state.step:
            self._save(state, optimizer, pace)

    def _warm_up(self, optimizer: torch.optim.Optimizer) -> None:
        """Compiles the layers on a made-up batch. Its sizes differ from each other and from the model's, so that none of
        them is taken for a constant and compiled anew for the next batch."""
        started = time.monotonic()
        self.model.train()
        rows = max(33, self.stage.batch_tokens // 40)
        paddings = ((40, self.model.source_padding_id), (37, self.model.target_padding_id))
        source, target = (
            torch.full((rows, length), int(not padding), device=self.model.device) for length, padding in paddings
        )
        if self.stage.packed:  # all batches have the shape of the first
            loss = self._loss(self.maker.make(*self.plan.pairs(0)).to(self.model.device))
        else:
            with self._precision():
                loss = smoothed_loss(self.model, source, target, target, self.stage.label_smoothing, True)
        loss.backward()
        optimizer.zero_grad(set_to_none=True)
        self.report.message(f"compiled in {time.monotonic() - started:.0f} s")

    def _capture(self) -> None:
        started = time.monotonic()
        self.model.train()
        batch = self.maker.make(*self.plan.pairs(0))
        assert isinstance(batch, PackedBatch)
        adding = self.stage.accumulate > 1
        self.captured = CapturedStep(self._loss, self.trained, batch, self.model.device, adding=adding)
        done = "compiled and recorded" if self.config.compile else "recorded"
        self.report.message(f"{done} in {time.monotonic() - started:.0f} s")

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.model.device.type, torch.bfloat16, enabled=self.config.precision == "bf16")

    def _loss(self, batch: AnyBatch) -> Tensor:
        """Summed over the target tokens of a batch that is on the device."""
        smoothing, compiled = self.stage.label_smoothing, self.config.compile
        with self._precision():
            if isinstance(batch, PackedBatch):
                return packed_loss(self.model, batch, smoothing, compiled)
            source = aligned(batch.source, self.model.source_padding_id) if compiled else batch.source
            return smoothed_loss(self.model, source, batch.decoder_input, batch.labels, smoothing, compiled)

    def _backward(self, batch: AnyBatch, tokens: int) -> Tensor:
        """Adds the gradients of a batch's loss divided by `tokens`, and returns that."""
        if self.captured is not None and isinstance(batch, PackedBatch):
            return self.captured(batch, tokens)
        loss = self._loss(batch.to(self.model.device)) / tokens
        loss.backward()
        return loss.detach()

    def _update(self, update: Sequence[AnyBatch], optimizer: torch.optim.Optimizer, step: int) -> Tensor:
        """One step of the optimiser over one or several batches; returns the mean loss of a target token."""
        self.model.train()
        # Dropout is a function of (seed, stage, step) too: nothing of the random state needs to be stored.
        torch.manual_seed(mix_seed(self.stage_seed, step) + self.team.rank)
        if self.captured is not None:
            self.captured.clear()
        tokens = sum(batch.target_tokens for batch in update)
        total = torch.zeros((), device=self.model.device)
        for batch in update:
            part = self.team.share(batch, self.model.target_padding_id)
            if part is not None:
                total += self._backward(part, tokens)
        total = self.team.sum_gradients(self.trained, total)
        if self.stage.clip_norm > 0:
            clip_gradients(self.trained, self.stage.clip_norm)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(self.stage, step + 1)
        optimizer.step()
        if self.captured is None:
            optimizer.zero_grad(set_to_none=True)
        return total

    def _check(self, state: RunState) -> None:
        """Before weights are kept, they and the losses that led to them must be finite."""
        self._check_losses(state)
        # A gradient can overflow where the loss does not: the loss would only show it one update later.
        finite = torch.stack([own_part(parameter).isfinite().all() for parameter in self.parameters.values()]).all()
        if self.team.agree(not finite, self.model.device):
            self._report_bad_batch(state.step - 1, "weights that are not finite")

    def _log(self, state: RunState, pace: Pace) -> None:
        loss = self._check_losses(state)
        rates = pace.rates(state)
        rate = learning_rate(self.stage, state.step)
        self.journal.write("train", state.stage, state.step, loss=loss, learning_rate=rate, **rates)
        note = f"loss {loss:.3f}  {rates['target_tokens_per_second']:,.0f} target tokens/s"
        self.report.update(state.step, note)

    def _check_losses(self, state: RunState) -> float:
        """The mean loss since the last look; one that is not finite ends the run with the batch that caused it."""
        if not self.unchecked:
            return float("nan")
        losses = torch.stack(self.unchecked).tolist()
        self.unchecked.clear()
        for index, loss in enumerate(losses):
            if not math.isfinite(loss):
                self._report_bad_batch(state.step - len(losses) + index, f"a loss of {loss}")
        return float(sum(losses) / len(losses))

    def _report_bad_batch(self, step: int, problem: str) -> None:
        """Batches are a function of the step, so the one at fault can be made again and written down."""
        examples = []
        for micro in range(step * self.stage.accumulate, (step + 1) * self.stage.accumulate):
            batch = self.maker.make(*self.plan.pairs(micro))
            for row, (direction, line) in enumerate(zip(batch.directions, batch.lines, strict=True)):
                codec, start = self.maker.codec, len(self.maker.codec.source_prefix(*direction))
                source_ids, label_ids = batch.pair(row)
                source = codec.source_tokenizer(direction.source).decode(source_ids[start:])
                target = codec.target_tokenizer(direction.target).decode(label_ids)
                examples.append({"direction": str(direction), "line": line + 1, "source": source, "target": target})
        path = self.config.run / "bad-batch.json"
        write_json(path, {"stage": self.stage.name, "step": step + 1, "problem": problem, "examples": examples})
        latest = self.checkpoints.latest()
        raise TrainingError(
            f"step {step + 1} of stage {self.stage.name!r} gave {problem}; the {len(examples)} line pairs of that step are in "
            f"{path}. The last good checkpoint is {latest.name if latest else 'none yet'}. Try a lower "
            "learning_rate, a longer warmup, clip_norm=1, or precision=fp32, in a new run folder."
        )

    def _validate(self, state: RunState, pace: Pace) -> None:
        """Scores the model and keeps it where it is the best so far."""
        self._check(state)
        if self.validator is None:
            return
        started = time.monotonic()
        options = self.config.validation
        scores = self.team.of_model(lambda: self._scores(state), self.model.device)
        if not math.isfinite(scores["loss"]):
            self._report_bad_batch(state.step - 1, f"a validation loss of {scores['loss']}")
        value = options.score(scores)
        improved = state.best_score is None or value > state.best_score
        if improved:
            state.best_score, state.best_step, state.without_improvement = value, state.step, 0
        elif state.step > state.best_step:  # not on the way, again, to a best that is stored
            state.without_improvement += 1
        event = {"stage": state.stage, "step": state.step, **scores}
        state.validations.append(event)
        flat = {f"{d}/{name}": value for d, entry in scores["directions"].items() for name, value in entry.items()}
        averages = {name: value for name, value in scores.items() if name not in ("directions", "watched")}
        self.journal.write("validation", state.stage, state.step, **averages, **flat)
        if improved:
            self.checkpoints.save_best(state.stage, self.parameters, event)
        words = "  ".join(
            f"{name} {value:.3f}" if name == "loss" else f"{name} {value:.1f}" for name, value in averages.items()
        )
        if "chrf" in scores.get("watched", {}):
            words += f"  other directions {scores['watched']['chrf']:.1f}"
        self.report.message(
            f"validation at step {state.step:,}: {words}{f'  (best so far by {options.metric})' if improved else ''}"
        )
        if warning := forgetting(state.validations):
            self.journal.write("warning", state.stage, state.step, text=warning)
            self.report.message(f"warning: {warning}")
        pace.exclude(time.monotonic() - started)

    def _scores(self, state: RunState) -> dict[str, Any]:
        """Of the model as it is; those of the best where that is of this step, which then was reached before a kill."""
        assert self.validator is not None
        if state.step == state.best_step:
            stored = self.checkpoints.read_best(state.stage)
            return {name: value for name, value in stored.items() if name not in ("stage", "step")}
        return self.validator.validate(
            self.model,
            smoothing=self.stage.label_smoothing,
            precision=self.config.precision,
            translate=self.config.validation.translates,
        )

    def _save(self, state: RunState, optimizer: torch.optim.Optimizer, pace: Pace) -> None:
        started = time.monotonic()
        self._check(state)
        state.seconds = pace.seconds()
        self.checkpoints.save(state, self.parameters, optimizer, self.resolved, self.data, self.marks)
        self.team.wait()
        pace.exclude(time.monotonic() - started)

    def _out_of_patience(self, state: RunState) -> bool:
        return 0 < self.stage.patience <= state.without_improvement


FORGOTTEN = 0.75
"""Of the best score so far: a direction that falls below is being forgotten."""


def forgetting(validations: list[dict[str, Any]]) -> str:
    """Words of warning where the last validation shows that directions which do not train fall while the others do not.

    This is the paper's language-code forgetting (its Figure 3): parameters of the encoder that only ever see one code
    learn to do without it.
    """
    both = [(entry["watched"]["chrf"], entry["chrf"]) for entry in validations if "chrf" in entry.get("watched", {})]
    if not _forgotten(both) or _forgotten(both[:-1]):  # the latter: said before
        return ""
    (watched, trained), best = both[-1], max(others for others, _ in both)
    return (
        f"other directions fall: chrF {watched:.1f} after {best:.1f}, while the trained ones are at {trained:.1f}. The "
        "other language codes are being forgotten, since training sees one of them only. Train with more languages (--with, "
        "--augment 1k-bt), or tune less of the encoder: `embed` or `embed + enc-norm + enc-biases`."
    )


def _forgotten(both: list[tuple[float, float]]) -> bool:
    """Whether the last score of other directions is far below the best one, and the last trained score is not: chrF of each."""
    if len(both) < 2:
        return False
    watched, trained = both[-1]
    best_watched, best_trained = max(pair[0] for pair in both), max(pair[1] for pair in both)
    return best_watched >= 10 and watched < FORGOTTEN * best_watched and trained >= FORGOTTEN * best_trained


def aligned(source: Tensor, padding_id: int) -> Tensor:
    """Sources padded to a multiple of 8: attention masks of other widths take another path, to be compiled as well."""
    return F.pad(source, (0, -source.shape[1] % 8), value=padding_id)


def mix_seed(seed: int, step: int) -> int:
    """A seed for each step, far from those of its neighbours."""
    return (seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9 + 1) & 0x7FFFFFFFFFFFFFFF
