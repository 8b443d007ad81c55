"""Hugging Face: a folder that AutoModelForSeq2SeqLM loads as M2M100ForConditionalGeneration, in every version of it. Layer 5.

That class has what pre-norm models need. A serial adapter becomes a layer whose attentions have weights of zero; FFNs are as
wide as the widest one. Rows that one side lacks, and biases of the output, are made from the norm before the output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from graftmt.files import write_json, write_text
from graftmt.interop.export.joint_rows import PADDING, JointRows, joint_rows
from graftmt.interop.export.library_tokenizer import tokenizer_config
from graftmt.interop.export.plain_model import PlainModel, PlainStack
from graftmt.interop.export.target import ExportTarget, Job
from graftmt.interop.export.target_registry import text_form
from graftmt.interop.export.text_files import copy_standalone, names_of_rows, requirements, text_problem, write_texts
from graftmt.interop.export.text_for_import import write_text_for_import
from graftmt.interop.export.text_form import LibraryTextForm
from graftmt.model.plain_layers import AttentionPart, PlainLayer
from graftmt.tensor_files import write_tensors
from graftmt.text.layout import SIDES

NEVER = -100.0
"""The score of a row that must not come out: a probability below 1e-40."""
LARGEST = 1e4
"""Of the weights of such a row; larger ones would lose the other digits."""
EPSILON = 1e-5
LONGEST = 1024
FORMAT = {"format": "pt"}
"""What transformers expects in a safetensors file."""
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


class HuggingFace(ExportTarget):
    name = "hugging-face"
    title = "Hugging Face"
    quantizations = tuple(DTYPES)
    one_direction = True

    def problem(self, job: Job) -> str:
        config = job.model.config
        layout = job.composition.codec.base.layout
        if config.norm != "pre":
            return "its layers are post-norm, and the class for them has no place for packs. Export to CTranslate2."
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
        return text_problem(job)

    def write(self, job: Job, folder: Path) -> dict[str, Any]:
        rows = joint_rows(job)
        tensors = dict(_tensors(job.model, rows))
        dtype = DTYPES[job.quantization]
        write_tensors(folder / "model.safetensors", {name: _stored(tensor, dtype) for name, tensor in tensors.items()}, FORMAT)
        write_json(folder / "config.json", _config(job, rows, tied="model.encoder.embed_tokens.weight" not in tensors))
        write_json(folder / "generation_config.json", _generation(job, rows))
        copy_standalone("hugging_face_translate.py", folder)
        first = job.directions[0]
        about: dict[str, Any] = {
            "directions": [{"source": first.source, "target": first.target}],
            "forced": [rows.id_of("target", row) for row in first.decoder[1:]],
        }
        if _write_tokenizer(job, rows, folder):
            return {**about, "texts": None, **write_text_for_import(job, rows, folder)}
        names = names_of_rows(job)
        tokens = {
            side: [None if row is None else names[side][row] for row in placed]
            for side, placed in (("source", rows.source), ("target", rows.target))
        }
        write_json(folder / "vocabulary.json", tokens)
        sentence = {side: [rows.id_of("source", row) for row in getattr(first, side)] for side in ("before", "after")}
        return {**about, **sentence, "texts": write_texts(job, folder)}

    def usage(self, job: Job, about: Mapping[str, Any]) -> list[str]:
        first = job.directions[0]
        lines = [
            "## How to use it",
            "",
            f"    pip install torch transformers {' '.join(requirements(job))}",
            f"    python translate.py {first.source} {first.target} < input.txt > output.txt",
            "",
        ]
        if about["texts"] is not None:
            return [
                *lines,
                "`AutoModelForSeq2SeqLM.from_pretrained` loads the model. There is no tokenizer for `AutoTokenizer`, since "
                "inline casing has no form there; `translate.py` shows how text becomes ids. Packs trained with "
                "`subwords.casing=none` on a base with plain text have one.",
            ]
        return [
            *lines,
            "```python",
            "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer",
            "",
            'tokenizer = AutoTokenizer.from_pretrained(".")',
            'model = AutoModelForSeq2SeqLM.from_pretrained(".")',
            f'inputs = tokenizer([{job.example!r}], return_tensors="pt", padding=True)',
            "print(tokenizer.batch_decode(model.generate(**inputs), skip_special_tokens=True))",
            "```",
            "",
            "`generation_config.json` has beam search with 5 hypotheses.",
        ]


def _stored(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.to(dtype, copy=True).contiguous()


def _config(job: Job, rows: JointRows, *, tied: bool) -> dict[str, Any]:
    model, config = job.model, job.model.config
    return {
        "architectures": ["M2M100ForConditionalGeneration"],
        "model_type": "m2m_100",
        "is_encoder_decoder": True,
        "vocab_size": len(rows.tokens),
        "d_model": config.model_dim,
        "encoder_layers": len(model.encoder.layers),
        "decoder_layers": len(model.decoder.layers),
        "encoder_ffn_dim": model.encoder.widest_ffn,
        "decoder_ffn_dim": model.decoder.widest_ffn,
        "encoder_attention_heads": model.encoder.heads,
        "decoder_attention_heads": model.decoder.heads,
        "activation_function": config.activation,
        "scale_embedding": config.scale_embeddings,
        "max_position_embeddings": LONGEST,
        "tie_word_embeddings": tied,
        "dtype": job.quantization,
        **dict.fromkeys(("dropout", "attention_dropout", "activation_dropout", "encoder_layerdrop", "decoder_layerdrop"), 0.0),
        **_special_ids(job, rows),
    }


def _special_ids(job: Job, rows: JointRows) -> dict[str, int]:
    start = rows.id_of("target", job.directions[0].decoder[0])
    return {"bos_token_id": 0, "pad_token_id": PADDING, "eos_token_id": 2, "decoder_start_token_id": start}


def _generation(job: Job, rows: JointRows) -> dict[str, Any]:
    codec, decoder = job.composition.codec, job.directions[0].decoder
    forced = {"forced_bos_token_id": rows.id_of("target", decoder[1])} if len(decoder) > 1 else {}
    never = [rows.id_of("target", row) for row in codec.forbidden if row not in decoder[1:]]
    settings = {
        "num_beams": 5,
        "max_length": LONGEST,
        "early_stopping": True,
        "suppress_tokens": sorted(never),
        **forced,
        **_special_ids(job, rows),
    }
    if not rows.is_shared and constant_row(job.model.decoder.norm) is None:
        missing = [number for number, row in enumerate(rows.target) if row is None]
        settings |= {"suppress_tokens": sorted({*never, *missing}), "renormalize_logits": True}
    return settings


# Weights


def _tensors(model: PlainModel, rows: JointRows) -> Iterator[tuple[str, Tensor]]:
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
    for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for number, layer in enumerate(stack.layers):
            for leaf, tensor in _layer(layer, stack, decodes=name == "decoder"):
                yield f"model.{name}.layers.{number}.{leaf}", tensor
        assert stack.norm is not None, "pre-norm stacks end in a norm"
        yield from _named(f"model.{name}.layer_norm", stack.norm)


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


def _layer(layer: PlainLayer, stack: PlainStack, *, decodes: bool) -> Iterator[tuple[str, Tensor]]:
    width = layer.up.in_features
    yield from _attention("self_attn", "self_attn_layer_norm", layer.self_attention, width)
    if decodes:
        yield from _attention("encoder_attn", "encoder_attn_layer_norm", layer.cross_attention, width)
    missing = stack.widest_ffn - layer.up.out_features
    yield "fc1.weight", torch.cat([layer.up.weight, layer.up.weight.new_zeros(missing, width)])
    yield "fc1.bias", torch.cat([_bias(layer.up), layer.up.weight.new_zeros(missing)])
    yield "fc2.weight", torch.cat([layer.down.weight, layer.down.weight.new_zeros(width, missing)], dim=1)
    yield "fc2.bias", _bias(layer.down)
    yield from _named("final_layer_norm", layer.ffn_norm)


def _attention(name: str, norm: str, part: AttentionPart | None, width: int) -> Iterator[tuple[str, Tensor]]:
    """One that gives zero where there is none."""
    for ours, theirs in ATTENTION.items():
        linear = None if part is None else getattr(part.attention, ours)
        yield f"{name}.{theirs}.weight", torch.zeros(width, width) if linear is None else linear.weight.detach()
        yield f"{name}.{theirs}.bias", torch.zeros(width) if linear is None else _bias(linear)
    yield from _named(norm, nn.LayerNorm(width) if part is None else part.norm)


def _named(name: str, norm: nn.LayerNorm) -> Iterator[tuple[str, Tensor]]:
    yield f"{name}.weight", norm.weight.detach()
    yield f"{name}.bias", norm.bias.detach()


def _bias(linear: nn.Linear) -> Tensor:
    return linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias.detach()


# Text


def _write_tokenizer(job: Job, rows: JointRows, folder: Path) -> bool:
    """tokenizer.json and its configuration; False where the text of a side has no such form."""
    first, codec = job.directions[0], job.composition.codec
    form, other = (text_form(codec.text_of(side).kind) for side in SIDES)
    if not isinstance(form, LibraryTextForm) or not isinstance(other, LibraryTextForm):
        return False
    template = [rows.tokens[rows.id_of("source", row)] for row in first.before]
    template += ["$A", *(rows.tokens[rows.id_of("source", row)] for row in first.after)]
    special = {**{name: number for number, name in enumerate(rows.tokens[:4])}, **rows.codes}
    content = form.library_form(codec.text_of("source"), rows.tokens, rows.mark, special, template)
    write_text(folder / "tokenizer.json", content)
    names = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), rows.tokens, strict=False))
    write_text(folder / "tokenizer_config.json", tokenizer_config(names, LONGEST))
    return True
