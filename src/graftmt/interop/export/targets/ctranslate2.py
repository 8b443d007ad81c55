"""CTranslate2: one model file, with a vocabulary each for source and target. Layer 5.

A serial adapter becomes a layer whose attention has weights of zero: in a pre-norm model its output is x + 0, then x + FFN.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from graftmt.errors import ExportError
from graftmt.interop.export.component_check import check_components
from graftmt.interop.export.plain_model import PlainModel, plain_model
from graftmt.interop.export.row_names import row_names
from graftmt.interop.export.target import ExportTarget, Job
from graftmt.interop.export.text_files import (
    copy_standalone,
    directions_in_tokens,
    names_of_rows,
    requirements,
    text_problem,
    write_texts,
)
from graftmt.model.plain_layers import AttentionPart, PlainLayer
from graftmt.packs import Composition
from graftmt.text.protocol import decoder_start

QUANTIZATIONS = ("float32", "float16", "bfloat16", "int8", "int8_float32")
NEVER = -1e4
"""The bias of a row that must not come out: a probability of zero in every precision."""
LONGEST = 1056
"""Positions in the table: those of the longest line that graftmt translates, its codes, and some more."""


class CTranslate2(ExportTarget):
    name = "ctranslate2"
    title = "CTranslate2"
    quantizations = QUANTIZATIONS

    def problem(self, job: Job) -> str:
        return problem_of(job.model) or text_problem(job)

    def write(self, job: Job, folder: Path) -> dict[str, Any]:
        write_model(job.composition, folder, job.quantization, model=job.model)
        copy_standalone("ctranslate2_translate.py", folder)
        names = names_of_rows(job)
        never = [names["target"][row] for row in job.composition.codec.forbidden]
        return {"directions": directions_in_tokens(job, names), "never": never, "texts": write_texts(job, folder)}

    def usage(self, job: Job, about: Mapping[str, Any]) -> list[str]:
        first = job.directions[0]
        return [
            "## How to use it",
            "",
            f"    pip install ctranslate2 {' '.join(requirements(job))}",
            f"    python translate.py {first.source} {first.target} < input.txt > output.txt",
            "",
            "`translate.py` is a short file that uses CTranslate2's own Python package; in a program:",
            "",
            "```python",
            "from translate import Translator",
            "",
            'translator = Translator(".", device="cpu", compute_type="default")',
            f'translator.translate([{job.example!r}], "{first.source}", "{first.target}")',
            "```",
            "",
            "`compute_type` may be another one than that of the stored weights, such as `int8`. CTranslate2 divides scores by "
            "lengths in its own way: translations can differ from graftmt's where two are about equally good.",
        ]


def write_model(
    composition: Composition, folder: Path, quantization: str = "float32", *, model: PlainModel | None = None
) -> None:
    """Writes model.bin, config.json and the vocabularies of a composition, made with `fold=True`, to a folder that exists.

    The tokens of the vocabularies are `row_names` of the two matrices, in the order of their rows.
    """
    if model is None:
        check_components(composition)
        model = plain_model(composition.model)
    if problem := problem_of(model):
        raise ExportError(f"CTranslate2 cannot hold this model: {problem}")
    spec = model_spec(model)
    source = row_names(composition, "source", len(model.encoder.embedding))
    target = row_names(composition, "target", len(model.decoder.embedding))
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    text = composition.codec.text_of("target")
    spec.config.eos_token = target[text.end_id]
    spec.config.bos_token = target[text.end_id if text.beginning_id is None else text.beginning_id]
    spec.config.unk_token = target[text.padding_id if text.unknown_id is None else text.unknown_id]
    spec.config.decoder_start_token = target[decoder_start(text, composition.codec.base.layout)]
    spec.config.layer_norm_epsilon = model.config.norm_epsilon
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))


def problem_of(model: PlainModel) -> str:
    """Why CTranslate2 cannot hold a model; "" where it can."""
    if model.config.norm == "post" and any(layer.is_ffn_alone for layer in (*model.encoder.layers, *model.decoder.layers)):
        return "a serial adapter after post-norm layers has no equivalent there. Use a pack with parallel adapters, or graftmt."
    return ""


def model_spec(model: PlainModel) -> Any:
    """CTranslate2's description of the model, with copies of its weights: they are quantised in place."""
    specs = _library()
    encoder = specs.TransformerEncoderSpec(0, model.encoder.heads, **_options(model))
    decoder = specs.TransformerDecoderSpec(0, model.decoder.heads, **_options(model))
    for spec, stack in ((encoder, model.encoder), (decoder, model.decoder)):
        spec.scale_embeddings = float(model.scale)
        spec.position_encodings.encodings = _array(stack.table(LONGEST))
        if stack.embedding_norm is not None:
            _set_norm(spec.layernorm_embedding, stack.embedding_norm)
        spec.layer = [_layer(layer, stack.heads, specs, decodes=spec is decoder) for layer in stack.layers]
        if stack.norm is not None:
            _set_norm(spec.layer_norm, stack.norm)
    encoder.embeddings[0].weight = _array(model.encoder.embedding)
    decoder.embeddings.weight = _array(model.decoder.embedding)
    weight, bias = _projection(model)
    decoder.projection.weight = _array(weight)
    if bias is not None:
        decoder.projection.bias = _array(bias)
    return specs.TransformerSpec(encoder, decoder)


def _library() -> Any:
    try:
        from ctranslate2.specs import transformer_spec
    except ImportError:
        raise ExportError("exporting to CTranslate2 needs it: pip install 'graftmt[ctranslate2]'.") from None
    return transformer_spec


def _options(model: PlainModel) -> dict[str, Any]:
    from ctranslate2.specs.common_spec import Activation

    activations = {"relu": Activation.RELU, "gelu": Activation.GELU, "silu": Activation.SWISH}
    return {
        "pre_norm": model.config.norm == "pre",
        "activation": activations[model.config.activation],
        "layernorm_embedding": model.config.embedding_norms,
    }


def _projection(model: PlainModel) -> tuple[Tensor, Tensor | None]:
    """Weight and bias, with a row for each row of the decoder's embedding."""
    rows, missing = len(model.output), len(model.decoder.embedding) - len(model.output)
    weight, bias = model.output, model.output_bias
    if missing:
        weight = torch.cat([weight, weight.new_zeros(missing, weight.shape[1])])
        known = weight.new_zeros(rows) if bias is None else bias
        bias = torch.cat([known, known.new_full((missing,), NEVER)])
    return weight, bias


def _layer(layer: PlainLayer, heads: int, specs: Any, *, decodes: bool) -> Any:
    kind = specs.TransformerDecoderLayerSpec if decodes else specs.TransformerEncoderLayerSpec
    spec = kind(head_dim=1) if layer.is_ffn_alone else kind()
    if layer.self_attention is None:
        _set_nothing(spec.self_attention, heads, layer.up.in_features, together=3)
    else:
        _set_attention(spec.self_attention, layer.self_attention, together=3)
    if layer.cross_attention is not None:
        _set_attention(spec.attention, layer.cross_attention, together=1)
    elif decodes:  # a layer without one would do, but then CTranslate2 fails as soon as one line of a batch is finished
        _set_nothing(spec.attention, heads, layer.up.in_features, together=1)
    _set_norm(spec.ffn.layer_norm, layer.ffn_norm)
    _set_linear(spec.ffn.linear_0, layer.up)
    _set_linear(spec.ffn.linear_1, layer.down)
    return spec


def _set_attention(spec: Any, part: AttentionPart, *, together: int) -> None:
    """`together`: how many of the maps of queries, keys and values are the first one here; the others are the second."""
    attention = part.attention
    maps = [attention.query, attention.key, attention.value]
    joined = [group for group in (maps[:together], maps[together:]) if group]
    for linear, group in zip(spec.linear, [*joined, [attention.output]], strict=True):
        _set_linear(linear, *group)
    _set_norm(spec.layer_norm, part.norm)


def _set_nothing(spec: Any, heads: int, width: int, *, together: int) -> None:
    """An attention of one dimension a head that gives zero."""
    for linear, count in zip(spec.linear, [count for count in (together, 3 - together) if count], strict=False):
        linear.weight = np.zeros((count * heads, width), dtype=np.float32)
    spec.linear[-1].weight = np.zeros((width, heads), dtype=np.float32)
    spec.layer_norm.gamma, spec.layer_norm.beta = np.ones(width, dtype=np.float32), np.zeros(width, dtype=np.float32)


def _set_linear(spec: Any, *maps: nn.Linear) -> None:
    """Several maps of the same input as one."""
    spec.weight = _array(torch.cat([linear.weight for linear in maps]))
    if any(linear.bias is not None for linear in maps):
        zero = maps[0].weight.new_zeros
        spec.bias = _array(torch.cat([zero(len(one.weight)) if one.bias is None else one.bias for one in maps]))


def _set_norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(tensor: Tensor) -> np.ndarray[Any, Any]:
    """A copy."""
    return tensor.detach().to("cpu", torch.float32).numpy().copy()
