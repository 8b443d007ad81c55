"""The text of an exported model: its files, its Python file, and the tokens around each sentence. Layer 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from graftmt.files import write_text
from graftmt.interop.export import standalone
from graftmt.interop.export.row_names import row_names
from graftmt.interop.export.target import Job
from graftmt.interop.export.target_registry import text_form
from graftmt.text.protocol import SIDES

COMMON = "exported_folder.py"


def copy_standalone(name: str, folder: Path) -> None:
    """translate.py, which is a Python file of `standalone/` as it is, with the file that it needs."""
    for file, place in ((name, "translate.py"), (COMMON, COMMON)):
        write_text(folder / place, files(standalone).joinpath(file).read_text(encoding="utf-8"))


def text_problem(job: Job) -> str:
    """Why the text of a side cannot leave graftmt; "" where it can."""
    for side in SIDES:
        text = job.composition.codec.text_of(side)
        if problem := text_form(text.kind).problem(text):
            return f"the {side} text: {problem}"
    return ""


def write_texts(job: Job, folder: Path) -> dict[str, Any]:
    """Writes the files of both sides; returns the field `texts` of export.json."""
    about: dict[str, Any] = {}
    source, target = (job.composition.codec.text_of(side) for side in SIDES)
    for side, text in zip(SIDES, (source, target), strict=True):
        form = text_form(text.kind)
        name, content = form.file(text)
        if source is not target:
            name = f"{side}-{name}"
        (folder / name).write_bytes(content)
        write_text(folder / f"{form.module}.py", form.source_code())
        about[side] = {"module": form.module, "file": name}
    return about


def directions_in_tokens(job: Job, names: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """The field `directions`; `decoder` leaves out the start, which the model's configuration names."""
    return [
        {
            "source": one.source,
            "target": one.target,
            "before": [names["source"][row] for row in one.before],
            "after": [names["source"][row] for row in one.after],
            "decoder": [names["target"][row] for row in one.decoder[1:]],
        }
        for one in job.directions
    ]


def names_of_rows(job: Job) -> dict[str, list[str]]:
    """By side."""
    rows = {"source": len(job.model.encoder.embedding), "target": len(job.model.decoder.embedding)}
    return {side: row_names(job.composition, side, rows[side]) for side in SIDES}


def requirements(job: Job) -> list[str]:
    """The packages that the text of both sides needs."""
    forms = [text_form(job.composition.codec.text_of(side).kind) for side in SIDES]
    return list(dict.fromkeys(package for form in forms for package in form.requirements))


def example_tokens(job: Job, about: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> list[str]:
    """The tokens of the example, with those around it."""
    first = job.directions[0]
    text = job.composition.codec.source_tokenizer(first.source).encode(job.example)
    return [names["source"][row] for row in (*first.before, *text, *first.after)]
