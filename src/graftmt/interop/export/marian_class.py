"""MarianMTModel, the class of transformers for post-norm models with Marian's positions: OPUS-MT with its packs. Layer 5.

It has a bias for each row of the output. Rows that one side lacks get theirs from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from graftmt.interop.export.joint_rows import JointRows
from graftmt.interop.export.library_class import EPSILON, NEVER, LibraryClass, stack_tensors
from graftmt.interop.export.plain_model import PlainModel
from graftmt.interop.export.target import Job


class MarianClass(LibraryClass):
    name = "MarianMTModel"
    model_type = "marian"

    def problem(self, job: Job) -> str:
        config = job.model.config
        if config.positions != "sinusoidal-even" or config.position_offset or config.embedding_norms:
            return (
                f"its layers are post-norm and its positions {config.positions}; of such models {self.name} takes those with "
                "Marian's positions alone. Export to CTranslate2."
            )
        if config.norm_epsilon != EPSILON:
            return f"its norms add {config.norm_epsilon:g}, and that class adds {EPSILON:g}. Export to CTranslate2."
        return ""

    def tensors(self, model: PlainModel, rows: JointRows) -> Iterator[tuple[str, Tensor]]:
        yield "model.encoder.embed_tokens.weight", rows.place(model.encoder.embedding, "source").clone()
        yield "model.decoder.embed_tokens.weight", rows.place(model.decoder.embedding, "target").clone()
        yield "lm_head.weight", rows.place(model.output, "target").clone()
        own = model.output.new_zeros(len(model.output)) if model.output_bias is None else model.output_bias
        bias = rows.place(own[:, None], "target", torch.full((1,), NEVER))
        yield "final_logits_bias", bias.T
        yield from stack_tensors(model)

    def config(self, job: Job, rows: JointRows, *, tied: bool) -> dict[str, Any]:
        assert not tied, "the matrices are written apart"
        apart = {"decoder_vocab_size": len(rows.tokens), "share_encoder_decoder_embeddings": False}
        return {**super().config(job, rows, tied=False), **apart}
