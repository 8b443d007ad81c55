"""What an exported Hugging Face folder says of its text for `graftmt import`, which needs rows by their names. Layer 5."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from graftmt.interop.export.joint_rows import SPECIALS, JointRows
from graftmt.interop.export.target import Job, Sentences
from graftmt.text import BaseText, Text
from graftmt.text.foreign.row_table import FILE as ROWS
from graftmt.text.foreign.row_table import RowTable
from graftmt.text.foreign.subword_text import ForeignText, options_of
from graftmt.text.kinds import text_kind
from graftmt.text.kinds.two_sided import TwoSidedText
from graftmt.text.protocol import Layout, Side
from graftmt.text.stored import TextDocument, files_to_store


def write_text_for_import(job: Job, rows: JointRows, folder: Path) -> dict[str, TextDocument]:
    """Writes the text's files; returns the field `text` of export.json, empty where this kind of text cannot be imported."""
    text = _text(job, rows)
    if text is None:
        return {}
    files = files_to_store(text)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return {"text": {"kind": text.kind, "options": text.options(), "files": sorted(files)}}


def _text(job: Job, rows: JointRows) -> BaseText | None:
    codec, composition = job.composition.codec, job.composition
    source, target = codec.text_of("source"), codec.text_of("target")
    if composition.source is None and composition.target is None and rows.is_shared:
        return codec.base if codec.base.kind == source.kind and isinstance(source, ForeignText) else None
    if not isinstance(source, ForeignText) or not isinstance(target, ForeignText):
        return None
    return TwoSidedText(_side(job, rows, "source", source), _side(job, rows, "target", target))


def _side(job: Job, rows: JointRows, side: Side, text: ForeignText) -> ForeignText:
    """The text of a side with the numbers of the tokenizer, for one direction."""
    first = job.directions[0]
    layout = _layout(job.composition.codec.base.layout, first)
    placed = rows.source if side == "source" else rows.target
    pieces = tuple(None if row is None else _piece(text, row) for row in placed)
    names = {"source": first.source, "target": first.target}
    whose = layout.codes_in(side)
    code = _code(first, text) if side == "source" else first.decoder[1:]
    codes = {} if whose is None or not code else {names[whose]: rows.id_of(side, code[0])}
    specials = dict(zip(("beginning", "padding", "end", "unknown"), range(len(SPECIALS)), strict=True))
    known = {name: number for name, number in specials.items() if placed[number] is not None}
    table = RowTable(pieces=pieces, codes=codes, **known)
    options = {**text.model_options(), **options_of(table, layout, [first.source], [first.target])}
    made: ForeignText = text_kind(text.kind).read({**text.model_files(), ROWS: table.content()}, options, "an export")
    return made


def _piece(text: ForeignText, row: int) -> str | None:
    return text.table.pieces[row] if row < len(text) else None


def _code(sentences: Sentences, text: Text) -> list[int]:
    """The rows around a source text that are codes."""
    return [row for row in (*sentences.before, *sentences.after) if row != text.end_id]


def _layout(layout: Layout, sentences: Sentences) -> Layout:
    """The base's, without the codes that a pack goes without."""
    has_code = bool(sentences.before) or len(sentences.after) > 1
    return replace(
        layout,
        source_code=layout.source_code if has_code else None,
        decoder_code=layout.decoder_code and len(sentences.decoder) > 1,
    )
