"""Hugging Face: a folder that AutoModelForSeq2SeqLM loads, with its text where that has a form there. Layer 5.

Which of the library's classes holds a model is for `library_class`: one for pre-norm models, and Marian's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graftmt.documents import write_json
from graftmt.files import write_text
from graftmt.interop.export.joint_rows import JointRows, joint_rows
from graftmt.interop.export.library_class import LONGEST, LibraryClass
from graftmt.interop.export.library_tokenizer import tokenizer_config
from graftmt.interop.export.marian_class import MarianClass
from graftmt.interop.export.pre_norm_class import PreNormClass
from graftmt.interop.export.target import ExportTarget, Job
from graftmt.interop.export.target_registry import text_form
from graftmt.interop.export.text_files import copy_standalone, names_of_rows, requirements, text_problem, write_texts
from graftmt.interop.export.text_for_import import write_text_for_import
from graftmt.interop.export.text_form import LibraryTextForm
from graftmt.tensor_files import write_tensors
from graftmt.text.protocol import SIDES

FORMAT = {"format": "pt"}
"""What transformers expects in a safetensors file."""
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def class_for(job: Job) -> LibraryClass:
    """The class that may hold a model."""
    return MarianClass() if job.model.config.norm == "post" else PreNormClass()


class HuggingFace(ExportTarget):
    name = "hugging-face"
    title = "Hugging Face"
    quantizations = tuple(DTYPES)
    one_direction = True

    def problem(self, job: Job) -> str:
        return class_for(job).problem(job) or text_problem(job)

    def write(self, job: Job, folder: Path) -> dict[str, Any]:
        rows, library_class = joint_rows(job), class_for(job)
        tensors = dict(library_class.tensors(job.model, rows))
        dtype = DTYPES[job.quantization]
        write_tensors(folder / "model.safetensors", {name: _stored(tensor, dtype) for name, tensor in tensors.items()}, FORMAT)
        tied = "model.encoder.embed_tokens.weight" not in tensors
        write_json(folder / "config.json", library_class.config(job, rows, tied=tied))
        write_json(folder / "generation_config.json", library_class.generation(job, rows))
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
