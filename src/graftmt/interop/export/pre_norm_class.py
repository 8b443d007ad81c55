"""M2M100ForConditionalGeneration, which has what pre-norm models need, in every version of transformers. Layer 5.

A serial adapter becomes a layer whose attentions have weights of zero. Rows that one side lacks, and biases of the output, are
made from the norm before the output.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from graftmt.interop.export.joint_rows import PADDING, JointRows
from graftmt.interop.export.library_class import EPSILON, NEVER, LibraryClass, norm_tensors, stack_tensors
from graftmt.interop.export.plain_model import PlainModel
from graftmt.interop.export.target import Job

LARGEST = 1e4
"""Of the weights of a row that must not come out; larger ones would lose the other digits."""


class PreNormClass(LibraryClass):
    name = "M2M100ForConditionalGeneration"
    model_type = "m2m_100"

    def problem(self, job: Job) -> str:
        config = job.model.config
        layout = job.composition.codec.base.layout
        if config.norm_epsilon != EPSILON:
            return f"its norms add {config.norm_epsilon:g}, and that class adds {EPSILON:g}. Export to CTranslate2."
        if config.positions != "sinusoidal" or config.embedding_norms:
            return f"its positions are {config.positions}, which that class has no place for. Export to CTranslate2."
        if config.position_offset != PADDING + 1:
            return f"its positions begin with {config.position_offset}, not with {PADDING + 1}. Export to CTranslate2."
        if layout.decoder_start == "padding":
            return "its decoder starts from padding. Export to CTranslate2."
        if job.model.output_bias is not None and constant_row(job.model.decoder.norm) is None:
            return "its output has biases that the norm before it cannot give. Export to CTranslate2."
        return ""

    def tensors(self, model: PlainModel, rows: JointRows) -> Iterator[tuple[str, Tensor]]:
        source, target, output = model.encoder.embedding, model.decoder.embedding, model.output
        one = rows.is_shared and model.output_bias is None and torch.equal(source, target) and torch.equal(target, output)
        if one:
            yield "model.shared.weight", source
        else:
            matrix = rows.place(source, "source")
            yield "model.shared.weight", matrix
            yield "model.encoder.embed_tokens.weight", matrix.clone()
            yield "model.decoder.embed_tokens.weight", rows.place(target, "target")
            yield "lm_head.weight", _output(model, rows)
        yield from stack_tensors(model)
        for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
            assert stack.norm is not None, "pre-norm stacks end in a norm"
            yield from norm_tensors(f"model.{name}.layer_norm", stack.norm)

    def generation(self, job: Job, rows: JointRows) -> dict[str, Any]:
        settings = super().generation(job, rows)
        if not rows.is_shared and constant_row(job.model.decoder.norm) is None:
            missing = [number for number, row in enumerate(rows.target) if row is None]
            never = sorted({*settings["suppress_tokens"], *missing})
            settings |= {"suppress_tokens": never, "renormalize_logits": True}
        return settings


def constant_row(norm: nn.LayerNorm | None) -> Tensor | None:
    """A row of the output whose score is always 1: the values that a norm gives, before its weights, add up to zero.

    None where that would take weights too large to be exact.
    """
    assert norm is not None, "pre-norm models end in a norm"
    weight, bias = norm.weight.detach().double().cpu(), norm.bias.detach().double().cpu()
    total = (bias / weight).sum() if (weight != 0).all() else torch.tensor(0.0)
    if total.abs() < 1e-6:
        return None
    row = 1 / (weight * total)
    return row if (NEVER * row).abs().max() <= LARGEST else None


def _output(model: PlainModel, rows: JointRows) -> Tensor:
    one = constant_row(model.decoder.norm)
    output = model.output
    if model.output_bias is not None:
        assert one is not None, "checked before"
        output = (output.double() + model.output_bias.double()[:, None] * one).float()
    return rows.place(output, "target", None if one is None else NEVER * one)
